"""Known misconceptions of the stage residual_mlp."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grader.misconceptions import misconception


class _Norm(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], self.weight, self.bias)


class _Base(nn.Module):
    """A right module in steps; each misconception replaces one or two."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = _Norm(d_model)
        self.w_in = nn.Linear(d_model, d_ff)
        self.w_out = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.dropout(self.change(self.norm(x)))

    def change(self, x: Tensor) -> Tensor:
        return self.w_out(self.step(self.w_in(x)))

    def step(self, x: Tensor) -> Tensor:
        return F.gelu(x)


@misconception(
    "mlp_norm_after_the_sum",
    replaces="ResidualMLP",
    says="You normalise the sum (post-norm), so the main road goes through the norm. Normalise "
    "what goes into w_in instead.",
    hint=1,
)
class MlpNormAfterTheSum(_Base):
    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.dropout(self.change(x)))


@misconception(
    "mlp_adds_to_the_norm",
    replaces="ResidualMLP",
    says="You add to the normalised tokens. Add to x as it came in.",
    hint=1,
)
class MlpAddsToTheNorm(_Base):
    def forward(self, x: Tensor) -> Tensor:
        normal = self.norm(x)
        return normal + self.dropout(self.change(normal))


@misconception(
    "mlp_without_the_sum",
    replaces="ResidualMLP",
    says="x itself is missing: you return only what should be added to it.",
    hint=1,
)
class MlpWithoutTheSum(_Base):
    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.change(self.norm(x)))


@misconception(
    "mlp_without_the_norm",
    replaces="ResidualMLP",
    says="w_in gets x as it is. It should get the normalised tokens.",
    hint=2,
)
class MlpWithoutTheNorm(_Base):
    def forward(self, x: Tensor) -> Tensor:
        return x + self.dropout(self.change(x))


@misconception(
    "mlp_without_gelu",
    replaces="ResidualMLP",
    says="Nothing stands between w_in and w_out, so together they are one linear layer. gelu "
    "belongs there.",
    hint=2,
)
class MlpWithoutGelu(_Base):
    def step(self, x: Tensor) -> Tensor:
        return x


@misconception(
    "mlp_with_relu",
    replaces="ResidualMLP",
    says="You use ReLU between the layers. Use your gelu from stage 3.",
    hint=2,
)
class MlpWithRelu(_Base):
    def step(self, x: Tensor) -> Tensor:
        return torch.relu(x)


@misconception(
    "mlp_gelu_at_the_end",
    replaces="ResidualMLP",
    says="You apply gelu a second time, after w_out. Only what is d_ff wide goes through it.",
    hint=2,
)
class MlpGeluAtTheEnd(_Base):
    def change(self, x: Tensor) -> Tensor:
        return F.gelu(super().change(x))


@misconception(
    "mlp_drops_the_sum",
    replaces="ResidualMLP",
    says="Dropout falls on the sum, so parts of x get lost. Only what is added may be dropped.",
    hint=4,
)
class MlpDropsTheSum(_Base):
    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x + self.change(self.norm(x)))


@misconception(
    "mlp_always_drops",
    replaces="ResidualMLP",
    says="Dropout falls after eval() too. It is for training only.",
    hint=4,
)
class MlpAlwaysDrops(_Base):
    def forward(self, x: Tensor) -> Tensor:
        return x + F.dropout(self.change(self.norm(x)), self.dropout.p)
