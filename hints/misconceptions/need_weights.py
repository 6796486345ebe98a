"""Known misconceptions of the stage need_weights: what people really write, and a sentence each.

Those that other stages share are in _attention.py. `_Base` is a correct module cut into steps; each
misconception replaces one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from _attention import Attention, usual_mistakes, values_from_heads, values_to_heads
from torch import Tensor

from grader.misconceptions import Value, misconception, values


class _Base(Attention):
    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        need_weights: bool = True,
    ) -> Any:
        q, k, v = self.heads(*self.project(query, key, value))
        context, weights = self.mix(q, k, v, mask, need_weights)
        return self.answer(self.out(self.combine(context), query), weights, need_weights)

    def mix(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor]:
        weights = self.drop(self.attend(self.scores(q, k), mask))
        return weights @ v, weights

    def answer(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, weights if need_weights else None


@values(of="OptionalWeightsAttention")
def way(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
) -> Iterator[Value | tuple[Value, ...]]:
    """The values on the way to the output; weights are those before dropout.

    Without need_weights a shorter way makes neither scores nor weights.
    """
    q, k, v = yield from values_to_heads(module, query, key, value)
    for value in values_from_heads(module, q, k, v, mask):
        if need_weights or value.axes != "B H Tq Tk":
            yield value


usual = usual_mistakes(
    _Base,
    "OptionalWeightsAttention",
    "need",
    check=None,
    bias=None,
    start=None,
    inputs=None,
    layers=None,
    heads=None,
    scale=None,
    mask=5,
    softmax=5,
    blocked=5,
    dropout=None,
)


# What comes back


@misconception(
    "need_switch_ignored",
    replaces="OptionalWeightsAttention",
    says="Your need_weights has no effect: the weights come back in any case. With False, return "
    "None in their place.",
    hint=1,
)
class SwitchIgnored(_Base):
    def answer(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, weights


@misconception(
    "need_output_alone",
    replaces="OptionalWeightsAttention",
    says="Without the weights you return only the output. A caller unpacks two results: return "
    "None as the second.",
    hint=1,
)
class OutputAlone(_Base):
    def answer(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return (output, weights) if need_weights else output


@misconception(
    "need_none_alone",
    replaces="OptionalWeightsAttention",
    says="Without the weights you return None alone, and the output is lost. The result stays a "
    "pair: the output, and None as the second.",
    hint=1,
)
class NoneAlone(_Base):
    def answer(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return (output, weights) if need_weights else None


@misconception(
    "need_inverted",
    replaces="OptionalWeightsAttention",
    says="Your switch is inverted: with need_weights=False the weights come back.",
    hint=1,
)
class Inverted(_Base):
    def answer(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, None if need_weights else weights


@misconception(
    "need_empty_tensor",
    replaces="OptionalWeightsAttention",
    says="You return an empty tensor when there are no weights. Return None: an empty tensor "
    "looks like an answer.",
    hint=1,
)
class EmptyTensor(_Base):
    def answer(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, weights if need_weights else weights.new_empty(0)


@misconception(
    "need_detached",
    replaces="OptionalWeightsAttention",
    says="No gradient flows through the weights that you return, so no loss can use them. Return "
    "them as they are, not detached and not computed again.",
    hint=4,
)
class Detached(_Base):
    def answer(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, weights.detach() if need_weights else None


@misconception(
    "need_averaged",
    replaces="OptionalWeightsAttention",
    says="You average the weights over the heads, as nn.MultiheadAttention does by default. "
    "Return each head's own: [B, H, Tq, Tk].",
    hint=1,
)
class Averaged(_Base):
    def answer(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, weights.mean(dim=1) if need_weights else None


@misconception(
    "need_false_by_default",
    replaces="OptionalWeightsAttention",
    says="need_weights is False by default. It must be True, so that existing calls keep working.",
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
    says="The weights never come back: you return None whatever need_weights says. With "
    "need_weights=True, the default, return them.",
    hint=1,
)
class NeverGiven(_Base):
    def answer(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, None


@misconception(
    "need_given_in_training_only",
    replaces="OptionalWeightsAttention",
    says="After eval() you return None, whatever need_weights says. It alone decides, in training "
    "and in evaluation mode.",
    hint=1,
)
class GivenInTrainingOnly(_Base):
    def answer(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, weights if need_weights and self.training else None


# What stays behind


@misconception(
    "need_kept_for_plotting",
    replaces="OptionalWeightsAttention",
    says="Something as large as the weights stays on the module after the call, so it takes "
    "memory in every layer of a model. Keep nothing: return the weights to callers who ask for "
    "them.",
    hint=3,
)
class KeptForPlotting(_Base):
    def answer(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        self.attention = weights
        return super().answer(output, weights, need_weights)


@misconception(
    "need_old_ones_kept",
    replaces="OptionalWeightsAttention",
    says="You keep the weights of a call that asked for them, and they are still there after one "
    "that did not. Keep no results on the module.",
    hint=3,
)
class OldOnesKept(_Base):
    def answer(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        if need_weights:
            self.attention = weights
        return super().answer(output, weights, need_weights)


# A shorter path that computes something else


class _Fast(_Base):
    """A fused kernel where the weights are not asked for."""

    def mix(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor]:
        if need_weights:
            return super().mix(q, k, v, mask, need_weights)
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
    says="With need_weights=False you forget the mask. The output must be the same with and "
    "without the weights.",
    hint=5,
)
class FastWithoutMask(_Fast):
    def fast(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return super().fast(q, k, v, None)


@misconception(
    "need_fast_mask_inverted",
    replaces="OptionalWeightsAttention",
    says="With need_weights=False you invert the mask. nn.MultiheadAttention needs that; "
    "F.scaled_dot_product_attention reads True as allowed, like this course.",
    hint=5,
)
class FastMaskInverted(_Fast):
    def fast(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return super().fast(q, k, v, None if mask is None else ~mask)


@misconception(
    "need_fast_mask_made_numbers",
    replaces="OptionalWeightsAttention",
    says="With need_weights=False your mask of 1 and 0 is added to the scores, as "
    "F.scaled_dot_product_attention does with a mask of numbers, so blocked keys only fall behind "
    "by 1: make the mask boolean.",
    hint=5,
)
class FastMaskMadeNumbers(_Fast):
    def fast(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return F.scaled_dot_product_attention(
            q, k, v, None if mask is None else mask.to(q.dtype), self.rate()
        )


@misconception(
    "need_fast_mask_of_numbers",
    replaces="OptionalWeightsAttention",
    says="With need_weights=False a mask of True and False works, but one of floats is added to "
    "the scores, as F.scaled_dot_product_attention does, so blocked keys only fall behind by 1: "
    "make the mask boolean.",
    hint=5,
)
class FastMaskOfNumbers(_Fast):
    def mix(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor]:
        if need_weights:
            return super().mix(q, k, v, mask, need_weights)
        return F.scaled_dot_product_attention(q, k, v, mask, self.rate()), q


@misconception(
    "need_fast_scaled_twice",
    replaces="OptionalWeightsAttention",
    says="With need_weights=False you divide the scores by d_k, perhaps by its root twice: "
    "F.scaled_dot_product_attention scales them itself. Scale only once.",
    hint=5,
)
class FastScaledTwice(_Fast):
    def fast(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return super().fast(q / math.sqrt(q.shape[-1]), k, v, mask)


@misconception(
    "need_fast_any_mask_causal",
    replaces="OptionalWeightsAttention",
    says="With need_weights=False you take any mask for the causal one: is_causal blocks later "
    "keys, whatever the mask says. Pass the mask itself.",
    hint=5,
)
class FastAnyMaskCausal(_Fast):
    def fast(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        is_causal = mask is not None
        return F.scaled_dot_product_attention(q, k, v, dropout_p=self.rate(), is_causal=is_causal)


@misconception(
    "need_fast_without_dropout",
    replaces="OptionalWeightsAttention",
    says="With need_weights=False you drop nothing in training. need_weights must not change what "
    "the module learns.",
    hint=5,
)
class FastWithoutDropout(_Fast):
    def rate(self) -> float:
        return 0.0


@misconception(
    "need_fast_drops_always",
    replaces="OptionalWeightsAttention",
    says="With need_weights=False your dropout is still active after eval(): F.dropout drops "
    "unless you pass training=self.training, F.scaled_dot_product_attention unless dropout_p is "
    "0.0.",
    hint=5,
)
class FastDropsAlways(_Fast):
    def rate(self) -> float:
        return self.dropout.p


@misconception(
    "need_slow_drops_always",
    replaces="OptionalWeightsAttention",
    says="With need_weights=True your dropout is still active after eval(): F.dropout drops "
    "unless you pass training=self.training.",
    hint=5,
)
class SlowDropsAlways(_Base):
    def mix(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor]:
        weights = self.attend(self.scores(q, k), mask)
        weights = F.dropout(weights, self.dropout.p, self.training or need_weights)
        return weights @ v, weights
