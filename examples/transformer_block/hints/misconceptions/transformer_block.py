"""Known misconceptions of the stage transformer_block."""

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


class _MLP(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        self.norm = _Norm(d_model)
        self.w_in = nn.Linear(d_model, d_ff)
        self.w_out = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.dropout(self.w_out(F.gelu(self.w_in(self.norm(x)))))


class _Base(nn.Module):
    """A right block in steps; each misconception replaces one."""

    def __init__(self, attention: nn.Module, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = _Norm(d_model)
        self.attention = attention
        self.mlp = _MLP(d_model, d_ff, dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.mlp(x + self.seen(x, mask))

    def seen(self, x: Tensor, mask: Tensor | None) -> Tensor:
        h = self.norm(x)
        return self.attention(h, h, h, mask)[0]


@misconception(
    "block_without_the_sum",
    replaces="TransformerBlock",
    says="The attention's output goes on alone. Add it to x: that is the first residual.",
    hint=1,
)
class BlockWithoutTheSum(_Base):
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.mlp(self.seen(x, mask))


@misconception(
    "block_side_by_side",
    replaces="TransformerBlock",
    says="The MLP gets x, beside the attention. It comes after it, and gets the sum.",
    hint=1,
)
class BlockSideBySide(_Base):
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.mlp(x) + self.seen(x, mask)


@misconception(
    "block_norm_after_the_sum",
    replaces="TransformerBlock",
    says="You normalise after the first sum (post-norm). The norm belongs in front of the "
    "attention.",
    hint=1,
)
class BlockNormAfterTheSum(_Base):
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.mlp(self.norm(x + self.attention(x, x, x, mask)[0]))


@misconception(
    "block_only_queries_normalised",
    replaces="TransformerBlock",
    says="Only the queries are normalised. Queries, keys and values are the same tensor, the "
    "normalised one.",
    hint=1,
)
class BlockOnlyQueriesNormalised(_Base):
    def seen(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return self.attention(self.norm(x), x, x, mask)[0]


@misconception(
    "block_adds_to_the_norm",
    replaces="TransformerBlock",
    says="You add the attention's output to the normalised tokens. Add it to x as it came in.",
    hint=1,
)
class BlockAddsToTheNorm(_Base):
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.mlp(self.norm(x) + self.seen(x, mask))


@misconception(
    "block_forgets_the_mask",
    replaces="TransformerBlock",
    says="The mask does not reach the attention, so every token sees all others.",
    hint=3,
)
class BlockForgetsTheMask(_Base):
    def seen(self, x: Tensor, mask: Tensor | None) -> Tensor:
        h = self.norm(x)
        return self.attention(h, h, h)[0]


@misconception(
    "block_adds_x_again",
    replaces="TransformerBlock",
    says="You add the sum once more after the MLP, which adds to its input by itself.",
    hint=2,
)
class BlockAddsXAgain(_Base):
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        h = x + self.seen(x, mask)
        return h + self.mlp(h)
