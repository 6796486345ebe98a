"""Known misconceptions of the stage rms_norm."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from grader.misconceptions import misconception


class _Base(nn.Module):
    """A right module in steps; each misconception replaces one."""

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        h = self.widened(x)
        return (h / self.size(h)).to(x.dtype) * self.weight

    def widened(self, x: Tensor) -> Tensor:
        return x.to(torch.promote_types(x.dtype, torch.float32))

    def size(self, x: Tensor) -> Tensor:
        return torch.sqrt((x**2).mean(dim=-1, keepdim=True) + self.eps)


@misconception(
    "rms_with_the_mean",
    replaces="RMSNorm",
    says="You subtract the mean first. RMS normalisation only divides.",
    hint=1,
)
class RmsWithTheMean(_Base):
    def widened(self, x: Tensor) -> Tensor:
        wide = super().widened(x)
        return wide - wide.mean(dim=-1, keepdim=True)


@misconception(
    "rms_of_the_sum",
    replaces="RMSNorm",
    says="You divide by the length of the token, the root of the sum of squares. Take their mean.",
    hint=1,
)
class RmsOfTheSum(_Base):
    def size(self, x: Tensor) -> Tensor:
        return torch.sqrt((x**2).sum(dim=-1, keepdim=True) + self.eps)


@misconception(
    "rms_without_the_root",
    replaces="RMSNorm",
    says="You divide by the mean square. Divide by its root.",
    hint=2,
)
class RmsWithoutTheRoot(_Base):
    def size(self, x: Tensor) -> Tensor:
        return (x**2).mean(dim=-1, keepdim=True) + self.eps


@misconception(
    "rms_eps_beside_the_root",
    replaces="RMSNorm",
    says="You add eps to the root. It stands under it, beside the mean square.",
    hint=2,
)
class RmsEpsBesideTheRoot(_Base):
    def size(self, x: Tensor) -> Tensor:
        return torch.sqrt((x**2).mean(dim=-1, keepdim=True)) + self.eps


@misconception(
    "rms_in_half_precision",
    replaces="RMSNorm",
    says="You square in float16, where the square of 300 is infinite already. Take the mean "
    "square in float32.",
    hint=3,
)
class RmsInHalfPrecision(_Base):
    def widened(self, x: Tensor) -> Tensor:
        return x


@misconception(
    "rms_of_all_tokens",
    replaces="RMSNorm",
    says="You take one mean square of the whole tensor. Each token has its own, over the last "
    "axis.",
    hint=1,
)
class RmsOfAllTokens(_Base):
    def size(self, x: Tensor) -> Tensor:
        return torch.sqrt((x**2).mean() + self.eps)
