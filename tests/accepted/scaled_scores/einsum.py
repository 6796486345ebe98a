from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor


def scaled_scores(q: Tensor, k: Tensor) -> Tensor:
    """Punktprodukt jeder Anfrage mit jedem Schlüssel, geteilt durch √d_k."""
    return torch.einsum("bhid,bhjd->bhij", q, k) / sqrt(q.shape[3])
