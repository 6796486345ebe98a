import torch
import torch.nn.functional as F

from masking import apply_mask
from scaled_scores import scaled_scores
from softmax import attention_weights


def flash_attention(q, k, v, mask=None, causal=False, dropout_p=0.0):
    Tq, Tk = q.size(2), k.size(2)
    while mask is not None and mask.dim() < 4:
        mask = mask[None]
    rows = []
    for start in range(0, Tq, 64):
        part = q[:, :, start : start + 64]
        scores = scaled_scores(part, k)
        if mask is not None:
            here = mask if mask.size(2) == 1 else mask[:, :, start : start + 64]
            scores = apply_mask(scores, here)
        if causal:
            steps = torch.arange(start, start + part.size(2), device=q.device)
            scores = apply_mask(scores, steps[:, None] >= torch.arange(Tk, device=q.device))
        rows.append(F.dropout(attention_weights(scores), dropout_p) @ v)
    return torch.cat(rows, dim=2)
