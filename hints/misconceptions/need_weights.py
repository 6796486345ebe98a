"""Known misconceptions of the stage need_weights: what people really write, and a sentence each.

`_Base` is a correct module cut into steps; each misconception replaces one of them.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grader.misconceptions import misconception


class _Base(nn.Module):
    """Attention in steps, drawing random numbers in the order of a usual solution."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"d_model={d_model} does not divide into num_heads={num_heads}")
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        need_weights: bool = True,
    ) -> Any:
        q, k, v = (
            self.split(self.w_q(query)),
            self.split(self.w_k(key)),
            self.split(self.w_v(value)),
        )
        context, weights = self.attend(q, k, v, mask, need_weights)
        return self.result(self.w_o(context.transpose(1, 2).flatten(2)), weights, need_weights)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, self.d_k)).transpose(1, 2)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor]:
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        blocked = (scores == float("-inf")).all(dim=-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(blocked, 0.0), dim=-1)
        weights = self.dropout(weights.masked_fill(blocked, 0.0))
        return weights @ v, weights

    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, weights if need_weights else None


# What comes back


@misconception(
    "need_switch_ignored",
    replaces="OptionalWeightsAttention",
    says="You take need_weights and do not look at it: the weights come back in any case. "
    "With False, None takes their place.",
    hint=1,
)
class SwitchIgnored(_Base):
    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, weights


@misconception(
    "need_output_alone",
    replaces="OptionalWeightsAttention",
    says="Without the weights you return the output alone. A caller unpacks two results: put None "
    "in the second place.",
    hint=1,
)
class OutputAlone(_Base):
    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return (output, weights) if need_weights else output


@misconception(
    "need_inverted",
    replaces="OptionalWeightsAttention",
    says="Your switch is inverted: with need_weights=False the weights come back.",
    hint=1,
)
class Inverted(_Base):
    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, None if need_weights else weights


@misconception(
    "need_empty_tensor",
    replaces="OptionalWeightsAttention",
    says="You return an empty tensor where there are no weights. None says so; an empty tensor "
    "looks like an answer.",
    hint=1,
)
class EmptyTensor(_Base):
    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, weights if need_weights else weights.new_empty(0)


@misconception(
    "need_detached",
    replaces="OptionalWeightsAttention",
    says="You detach the weights before you return them, so no loss can be put on them. "
    "Return them as they are.",
    hint=4,
)
class Detached(_Base):
    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, weights.detach() if need_weights else None


@misconception(
    "need_averaged",
    replaces="OptionalWeightsAttention",
    says="You average the weights over the heads, as nn.MultiheadAttention does by default. "
    "Return those of each head.",
    hint=1,
)
class Averaged(_Base):
    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, weights.mean(dim=1) if need_weights else None


@misconception(
    "need_false_by_default",
    replaces="OptionalWeightsAttention",
    says="Your switch is off by default. It is on unless a caller turns it off, so that old calls "
    "go on working.",
    hint=1,
)
class FalseByDefault(_Base):
    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        need_weights: bool = False,
    ) -> Any:
        return super().forward(query, key, value, mask, need_weights)


@misconception(
    "need_never_given",
    replaces="OptionalWeightsAttention",
    says="The weights never come back: None takes their place whatever the switch says. With "
    "need_weights=True, which is the default, return them.",
    hint=1,
)
class NeverGiven(_Base):
    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, None


# What stays behind


@misconception(
    "need_kept_for_plotting",
    replaces="OptionalWeightsAttention",
    says="Something as large as the weights stays on the module after the call, so it takes memory "
    "in every layer of a model. Keep nothing: whoever wants the weights asks for them.",
    hint=3,
)
class KeptForPlotting(_Base):
    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        self.attention = weights
        return super().result(output, weights, need_weights)


@misconception(
    "need_old_ones_kept",
    replaces="OptionalWeightsAttention",
    says="You keep the weights of a call that asked for them, and they are still there after one "
    "that did not. A result need not be kept at all.",
    hint=3,
)
class OldOnesKept(_Base):
    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        if need_weights:
            self.attention = weights
        return super().result(output, weights, need_weights)


# A fast way that is another one


class _Fast(_Base):
    """A fused kernel where the weights are not asked for."""

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor]:
        if need_weights:
            return super().attend(q, k, v, mask, need_weights)
        return self.fast(q, k, v, None if mask is None else mask.bool()), q

    def rate(self) -> float:
        return self.dropout.p if self.training else 0.0

    def fast(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=self.rate())
        if mask is None:
            return out
        return torch.where(mask.expand(*q.shape[:3], -1).any(-1, keepdim=True), out, 0.0)


@misconception(
    "need_fast_without_mask",
    replaces="OptionalWeightsAttention",
    says="Without weights, your shorter way forgets the mask. Both ways must give the same output.",
    hint=5,
)
class FastWithoutMask(_Fast):
    def fast(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return super().fast(q, k, v, None)


@misconception(
    "need_fast_without_dropout",
    replaces="OptionalWeightsAttention",
    says="Without weights, your shorter way drops nothing in training. The switch must "
    "not change what is learnt.",
    hint=5,
)
class FastWithoutDropout(_Fast):
    def rate(self) -> float:
        return 0.0


@misconception(
    "need_fast_drops_always",
    replaces="OptionalWeightsAttention",
    says="F.scaled_dot_product_attention knows nothing of train() and eval(): your shorter way "
    "drops weights in evaluation mode too. Give it 0 there.",
    hint=5,
)
class FastDropsAlways(_Fast):
    def rate(self) -> float:
        return self.dropout.p


@misconception(
    "need_mask_in_place",
    replaces="OptionalWeightsAttention",
    says="You turn the mask around in place. It belongs to the caller, whose next call would "
    "find it the other way round: make a new tensor.",
    hint=5,
)
class MaskInPlace(_Base):
    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor]:
        allowed = None if mask is None else mask.eq_(0) == 0
        return super().attend(q, k, v, allowed, need_weights)
