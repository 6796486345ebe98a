"""Known misconceptions of the stage need_weights: what people really write, and a sentence each.

`_Base` is a correct module cut into steps; each misconception replaces one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grader.misconceptions import Value, misconception, values


class _Base(nn.Module):
    """Attention in steps, drawing random numbers in the order of a usual solution."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        self.check(d_model, num_heads)
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            self.initialise(layer)

    def check(self, d_model: int, num_heads: int) -> None:
        if d_model % num_heads != 0:
            raise ValueError(f"d_model={d_model} does not divide into num_heads={num_heads}")

    def initialise(self, layer: nn.Linear) -> None:
        nn.init.xavier_uniform_(layer.weight)
        if layer.bias is not None:
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
        return self.result(self.out(context.transpose(1, 2).flatten(2)), weights, need_weights)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, self.d_k)).transpose(1, 2)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor]:
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = self.drop(self.weigh(scores))
        return weights @ v, weights

    def weigh(self, scores: Tensor) -> Tensor:
        blocked = (scores == float("-inf")).all(dim=-1, keepdim=True)
        return torch.softmax(scores.masked_fill(blocked, 0.0), dim=-1).masked_fill(blocked, 0.0)

    def drop(self, weights: Tensor) -> Tensor:
        return self.dropout(weights)

    def out(self, joined: Tensor) -> Tensor:
        return self.w_o(joined)

    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
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
    B, Tq, D = query.shape
    H = module.num_heads

    def heads(x: Tensor) -> Tensor:
        return x.reshape(B, -1, H, D // H).transpose(1, 2)  # (B, H, T, d_k)

    q, k, v = module.w_q(query), module.w_k(key), module.w_v(value)
    yield (
        Value("the projected query", q, "B Tq D"),
        Value("the projected key", k, "B Tk D"),
        Value("the projected value", v, "B Tk D"),
    )
    q, k, v = heads(q), heads(k), heads(v)
    yield (
        Value("the query's heads", q, "B H Tq d_k"),
        Value("the key's heads", k, "B H Tk d_k"),
        Value("the value's heads", v, "B H Tk d_k"),
    )
    scores = q @ k.transpose(-2, -1) / math.sqrt(D // H)
    if need_weights:
        yield Value("the scaled scores", scores, "B H Tq Tk")
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    if mask is not None and need_weights:
        yield Value("the masked scores", scores, "B H Tq Tk")
    blocked = (scores == float("-inf")).all(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(blocked, 0.0), dim=-1).masked_fill(blocked, 0.0)
    if need_weights:
        yield Value("the weights", weights, "B H Tq Tk")
    context = weights @ v
    yield Value("each head's context", context, "B H Tq d_k")
    joined = context.transpose(1, 2).reshape(B, Tq, D)
    yield Value("the joined heads", joined, "B Tq D")
    yield Value("the output", module.w_o(joined), "B Tq D")


# What comes back


@misconception(
    "need_switch_ignored",
    replaces="OptionalWeightsAttention",
    says="Your need_weights has no effect: the weights come back in any case. With False, return "
    "None in their place.",
    hint=1,
)
class SwitchIgnored(_Base):
    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, weights


@misconception(
    "need_output_alone",
    replaces="OptionalWeightsAttention",
    says="Without the weights you return only the output. A caller unpacks two results: return "
    "None as the second.",
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
    says="You return an empty tensor when there are no weights. Return None: an empty tensor "
    "looks like an answer.",
    hint=1,
)
class EmptyTensor(_Base):
    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, weights if need_weights else weights.new_empty(0)


@misconception(
    "need_detached",
    replaces="OptionalWeightsAttention",
    says="No gradient flows through the weights that you return, so no loss can use them. Return "
    "them as they are, not detached and not computed again.",
    hint=4,
)
class Detached(_Base):
    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, weights.detach() if need_weights else None


@misconception(
    "need_averaged",
    replaces="OptionalWeightsAttention",
    says="You average the weights over the heads, as nn.MultiheadAttention does by default. "
    "Return each head's own: [B, H, Tq, Tk].",
    hint=1,
)
class Averaged(_Base):
    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
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
    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        return output, None


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
    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        self.attention = weights
        return super().result(output, weights, need_weights)


@misconception(
    "need_old_ones_kept",
    replaces="OptionalWeightsAttention",
    says="You keep the weights of a call that asked for them, and they are still there after one "
    "that did not. Keep no results on the module.",
    hint=3,
)
class OldOnesKept(_Base):
    def result(self, output: Tensor, weights: Tensor, need_weights: bool) -> Any:
        if need_weights:
            self.attention = weights
        return super().result(output, weights, need_weights)


# A shorter path that computes something else


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
    says="Without weights, your shorter path forgets the mask. Both paths must give the same "
    "output.",
    hint=5,
)
class FastWithoutMask(_Fast):
    def fast(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return super().fast(q, k, v, None)


@misconception(
    "need_fast_mask_inverted",
    replaces="OptionalWeightsAttention",
    says="Without weights, your shorter path inverts the mask. nn.MultiheadAttention needs that; "
    "F.scaled_dot_product_attention reads True as allowed, like this course.",
    hint=5,
)
class FastMaskInverted(_Fast):
    def fast(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return super().fast(q, k, v, None if mask is None else ~mask)


@misconception(
    "need_fast_mask_made_numbers",
    replaces="OptionalWeightsAttention",
    says="Without weights, your shorter path turns the mask into numbers. "
    "F.scaled_dot_product_attention adds those to the scores, so blocked keys only fall behind by "
    "1: make the mask boolean.",
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
    says="Without weights, your shorter path passes the mask on as it is. A mask of True and False "
    "works, but F.scaled_dot_product_attention adds floats to the scores, so blocked keys only "
    "fall behind by 1: make the mask boolean.",
    hint=5,
)
class FastMaskOfNumbers(_Fast):
    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor]:
        if need_weights:
            return super().attend(q, k, v, mask, need_weights)
        return F.scaled_dot_product_attention(q, k, v, mask, self.rate()), q


@misconception(
    "need_fast_without_dropout",
    replaces="OptionalWeightsAttention",
    says="Without weights, your shorter path drops nothing in training. need_weights must not "
    "change what the module learns.",
    hint=5,
)
class FastWithoutDropout(_Fast):
    def rate(self) -> float:
        return 0.0


@misconception(
    "need_fast_drops_always",
    replaces="OptionalWeightsAttention",
    says="F.scaled_dot_product_attention ignores train() and eval(): your shorter path drops "
    "weights in evaluation mode too. Pass dropout_p=0.0 there.",
    hint=5,
)
class FastDropsAlways(_Fast):
    def rate(self) -> float:
        return self.dropout.p


@misconception(
    "need_blocked_nan",
    replaces="OptionalWeightsAttention",
    says="If a query may look at nothing, your softmax gives NaN, which spreads through the "
    "output. Your attention_weights gives zeros instead: use it.",
    hint=5,
)
class BlockedNan(_Base):
    def weigh(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, dim=-1)


@misconception(
    "need_blocked_equal",
    replaces="OptionalWeightsAttention",
    says="A query that may look at nothing gets the same weight for every key, as when you block "
    "with -1e9. Block with -inf, and give such a query zeros.",
    hint=5,
)
class BlockedEqual(_Base):
    def weigh(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores.clamp(min=-1e9), dim=-1)


@misconception(
    "need_mask_in_place",
    replaces="OptionalWeightsAttention",
    says="You invert the mask in place. It belongs to the caller, whose next call would get it "
    "inverted: make a new tensor.",
    hint=5,
)
class MaskInPlace(_Base):
    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor]:
        allowed = None if mask is None else mask.eq_(0) == 0
        return super().attend(q, k, v, allowed, need_weights)


# Dropout, biases and starts


@misconception(
    "need_dropout_never",
    replaces="OptionalWeightsAttention",
    says="Your dropout drops nothing. In training it acts on the attention weights, and returns "
    "new ones: use those.",
)
class DropoutNever(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        return weights


@misconception(
    "need_dropout_ends_with_eval",
    replaces="OptionalWeightsAttention",
    says="After one call in evaluation mode your module drops nothing any more, not even in "
    "training mode: the call changes a rate that the module keeps. Leave it, and choose in each "
    "call by self.training, or use nn.Dropout.",
)
class DropoutEndsWithEval(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        if not self.training:
            self.dropout.p = 0.0
        return super().drop(weights)


@misconception(
    "need_dropout_always",
    replaces="OptionalWeightsAttention",
    says="Your dropout is still active after eval(): F.dropout drops unless you pass "
    "training=self.training. An nn.Dropout layer knows the mode by itself.",
)
class DropoutAlways(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        return F.dropout(weights, self.dropout.p)


@misconception(
    "need_dropout_on_output",
    replaces="OptionalWeightsAttention",
    says="You drop parts of the output. Dropout acts on the attention weights, before they "
    "meet the values.",
)
class DropoutOnOutput(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        return weights

    def out(self, joined: Tensor) -> Tensor:
        return self.dropout(self.w_o(joined))


@misconception(
    "need_dropout_twice",
    replaces="OptionalWeightsAttention",
    says="You apply dropout twice, to the weights and to the output. Apply it once, to the "
    "weights.",
)
class DropoutTwice(_Base):
    def out(self, joined: Tensor) -> Tensor:
        return self.dropout(self.w_o(joined))


@misconception(
    "need_dropout_default",
    replaces="OptionalWeightsAttention",
    says="Your dropout is 0.1 by default. The default is 0.0.",
)
class DropoutDefault(_Base):
    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.1, bias: bool = True
    ) -> None:
        super().__init__(d_model, num_heads, dropout, bias)


@misconception(
    "need_bias_always",
    replaces="OptionalWeightsAttention",
    says="Your layers have a bias even with bias=False. Pass the argument on to each of them.",
)
class BiasAlways(_Base):
    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__(d_model, num_heads, dropout, True)


@misconception(
    "need_random_biases",
    replaces="OptionalWeightsAttention",
    says="Your weights start right, but nn.Linear starts its biases at random. Set them to zero.",
)
class RandomBiases(_Base):
    def initialise(self, layer: nn.Linear) -> None:
        nn.init.xavier_uniform_(layer.weight)


@misconception(
    "need_default_start",
    replaces="OptionalWeightsAttention",
    says="Your layers keep nn.Linear's own starting values. Once they exist, set Xavier weights "
    "and zero biases.",
)
class DefaultStart(_Base):
    def initialise(self, layer: nn.Linear) -> None:
        pass


@misconception(
    "need_no_value_error",
    replaces="OptionalWeightsAttention",
    says="Your constructor accepts a d_model that the heads do not divide. Check it at the "
    "start and raise a ValueError.",
)
class NoValueError(_Base):
    def check(self, d_model: int, num_heads: int) -> None:
        pass
