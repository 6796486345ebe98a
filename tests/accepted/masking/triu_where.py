from __future__ import annotations

import math

import torch
from torch import Tensor


def causal_mask(seq_len: int) -> Tensor:
    """Wahr auf und unter der Diagonalen – „Blick zurück“."""
    future = torch.triu(torch.ones((1, 1, seq_len, seq_len), dtype=torch.bool), diagonal=1)
    return ~future


def padding_mask(valid_lens: Tensor, seq_len: int) -> Tensor:
    steps = torch.arange(seq_len, device=valid_lens.device).view(1, 1, 1, -1)
    return steps.lt(valid_lens.view(-1, 1, 1, 1))


def apply_mask(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores.clone()
    return torch.where(mask.bool(), scores, -math.inf)
