"""Known misconceptions of the stage layer_norm."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from grader.misconceptions import misconception


class _Base(nn.Module):
    """A right module in steps; each misconception replaces one."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        return self.normal(x) * self.weight + self.bias

    def normal(self, x: Tensor) -> Tensor:
        centred = x - x.mean(dim=self.axes(x), keepdim=True)
        return centred / self.spread(x)

    def spread(self, x: Tensor) -> Tensor:
        return torch.sqrt(x.var(dim=self.axes(x), correction=0, keepdim=True) + self.eps)

    def axes(self, x: Tensor) -> tuple[int, ...]:
        return (-1,)


@misconception(
    "norm_over_tokens",
    replaces="LayerNorm",
    says="You normalise over the tokens, not over the features: each token has a mean and a "
    "variance of its own, over the last axis.",
    hint=1,
)
class NormOverTokens(_Base):
    def axes(self, x: Tensor) -> tuple[int, ...]:
        return (max(-2, -x.dim()),)


@misconception(
    "norm_over_everything",
    replaces="LayerNorm",
    says="You take one mean and one variance of the whole tensor. Each token has its own, over "
    "the last axis.",
    hint=1,
)
class NormOverEverything(_Base):
    def axes(self, x: Tensor) -> tuple[int, ...]:
        return tuple(range(x.dim()))


@misconception(
    "norm_divides_by_one_less",
    replaces="LayerNorm",
    says="Your variance is divided by D - 1, as torch.var does. Here it is the mean of the "
    "squares: divide by D.",
    hint=2,
)
class NormDividesByOneLess(_Base):
    def spread(self, x: Tensor) -> Tensor:
        return torch.sqrt(x.var(dim=-1, keepdim=True) + self.eps)


@misconception(
    "norm_eps_beside_the_root",
    replaces="LayerNorm",
    says="You add eps to the standard deviation. It stands under the root, beside the variance.",
    hint=3,
)
class NormEpsBesideTheRoot(_Base):
    def spread(self, x: Tensor) -> Tensor:
        return x.std(dim=-1, correction=0, keepdim=True) + self.eps


@misconception(
    "norm_without_eps",
    replaces="LayerNorm",
    says="eps is missing: a token whose features are all equal has variance 0, and 0 / 0 is NaN.",
    hint=3,
)
class NormWithoutEps(_Base):
    def spread(self, x: Tensor) -> Tensor:
        return x.std(dim=-1, correction=0, keepdim=True)


@misconception(
    "norm_by_the_variance",
    replaces="LayerNorm",
    says="You divide by the variance. Divide by its root, the standard deviation.",
    hint=2,
)
class NormByTheVariance(_Base):
    def spread(self, x: Tensor) -> Tensor:
        return x.var(dim=-1, correction=0, keepdim=True) + self.eps


@misconception(
    "norm_without_the_bias",
    replaces="LayerNorm",
    says="The bias is not added: after the scale comes a shift.",
    hint=4,
)
class NormWithoutTheBias(_Base):
    def forward(self, x: Tensor) -> Tensor:
        return self.normal(x) * self.weight
