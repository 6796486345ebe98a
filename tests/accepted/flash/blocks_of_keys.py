import math

import torch
import torch.nn.functional as F

BLOCK = 128


def flash_attention(q, k, v, mask=None, causal=False, dropout_p=0.0):
    B, H, Tq, d_k = q.shape
    Tk = k.shape[2]
    if mask is not None:
        mask = mask.bool().expand(B, H, Tq, Tk)
    best = q.new_full((B, H, Tq, 1), torch.finfo(q.dtype).min)
    total = q.new_zeros(B, H, Tq, 1)
    mixed = torch.zeros_like(q)
    rows = torch.arange(Tq, device=q.device)[:, None]
    for start in range(0, Tk, BLOCK):
        end = min(start + BLOCK, Tk)
        scores = q @ k[:, :, start:end].mT / math.sqrt(d_k)
        if mask is not None:
            scores = scores.masked_fill(~mask[..., start:end], float("-inf"))
        if causal:
            columns = torch.arange(start, end, device=q.device)
            scores = scores.masked_fill(columns > rows, float("-inf"))
        new = torch.maximum(best, scores.amax(-1, keepdim=True))
        powers = torch.exp(scores - new)
        shrink = torch.exp(best - new)
        total = total * shrink + powers.sum(-1, keepdim=True)
        mixed = mixed * shrink + F.dropout(powers, dropout_p) @ v[:, :, start:end]
        best = new
    return mixed / total.clamp_min(torch.finfo(q.dtype).tiny)
