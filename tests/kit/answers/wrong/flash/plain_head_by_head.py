# Head by head, but a whole matrix for each
import math

import torch
import torch.nn.functional as F


def one(q, k, v, mask=None, causal=False, dropout_p=0.0):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    if causal:
        seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
        scores = scores.masked_fill(~seen, float("-inf"))
    dead = (scores == float("-inf")).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(dead, 0.0), dim=-1).masked_fill(dead, 0.0)
    return F.dropout(weights, dropout_p) @ v


def flash_attention(q, k, v, mask=None, causal=False, dropout_p=0.0):
    B, H, Tq, d_k = q.shape
    if mask is not None:
        mask = mask.expand(B, H, Tq, k.shape[2])
    parts = [
        one(q[:, h : h + 1], k[:, h : h + 1], v[:, h : h + 1],
            None if mask is None else mask[:, h : h + 1], causal, dropout_p)
        for h in range(H)
    ]
    return torch.cat(parts, 1)
