from __future__ import annotations

import torch
from torch import Tensor


def attention_weights(scores: Tensor) -> Tensor:
    """Erst das Maximum abziehen, dann exp – sonst läuft es über."""
    top = scores.max(dim=-1, keepdim=True).values
    top = torch.where(top == float("-inf"), torch.zeros_like(top), top)
    e = torch.exp(scores - top)
    total = e.sum(dim=-1, keepdim=True)
    return e / torch.where(total == 0, torch.ones_like(total), total)
