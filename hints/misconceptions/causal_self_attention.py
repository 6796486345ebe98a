"""Known misconceptions of the stage causal_self_attention: what people really write.

Those that other stages share are in _attention.py. `_Base` is a correct module cut into steps; each
misconception replaces one or two of them.

A learner's buffer may be any. If the misconception is not about it, the buffer is the solution's
and the hidden part is recomputed: otherwise learners with another buffer would get no diagnosis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from _attention import Attention, usual_mistakes, values_from_heads, values_to_heads
from torch import Tensor, nn

from grader.misconceptions import Value, misconception, values


class _Base(Attention):
    mask: Tensor | nn.Parameter

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_size: int,
        num_heads: int,
        dropout: float | None = None,
        qkv_bias: bool = False,
    ) -> None:
        nn.Module.__init__(self)
        self.check(d_in, d_out, num_heads)
        self.num_heads, self.d_k, self.context_size = num_heads, d_out // num_heads, context_size
        self.make_layers(d_in, d_out, qkv_bias)
        self.initialise()
        self.dropout = self.make_dropout(self.default_dropout() if dropout is None else dropout)
        self.make_mask(context_size)

    def check(self, *sizes: int) -> None:
        _, d_out, num_heads = sizes
        if d_out % num_heads != 0:
            raise ValueError(f"num_heads={num_heads} does not divide d_out={d_out}")

    def make_layers(self, d_in: int, d_out: int, qkv_bias: bool) -> None:
        self.w_q = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_k = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_v = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_o = nn.Linear(d_out, d_out)

    def make_mask(self, size: int) -> None:
        allowed = torch.ones(1, 1, size, size, dtype=torch.bool).tril()
        self.register_buffer("mask", allowed, persistent=False)

    def later(self, size: int) -> Tensor:
        """[size, size], True where a token would see a later one."""
        return torch.ones(size, size, dtype=torch.bool).triu(1)

    def forward(self, x: Tensor) -> Any:
        x = self.refuse(x)
        q, k, v = self.heads(*self.project(x, x, x))
        weights = self.drop(self.weights(self.hide(self.scores(q, k))))  # (B, H, T, T)
        return self.out(self.combine(weights @ v), x)

    def refuse(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.context_size:
            raise ValueError(f"{x.shape[1]} tokens are more than {self.context_size}")
        return x

    def hide(self, scores: Tensor) -> Tensor:
        T = scores.shape[-1]
        return scores.masked_fill(self.later(self.context_size)[:T, :T], float("-inf"))

    def weights(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, dim=-1)


@values(of="CausalSelfAttention")
def way(module: Any, x: Tensor) -> Iterator[Value | tuple[Value, ...]]:
    """The values on the way to the output; weights are those before dropout."""
    q, k, v = yield from values_to_heads(module, x, x, x, tokens=("T", "T"), width="d_out")
    T = x.shape[1]
    mask = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
    yield from values_from_heads(module, q, k, v, mask, tokens="T", width="d_out")


usual = usual_mistakes(
    _Base,
    "CausalSelfAttention",
    "csa",
    without=(
        "dropout_on_heads",
        "layers_exchanged",
        "scale_by_d_model",
        "scaled_after_softmax",
        "value_not_projected",
        "value_through_w_k",
    ),
    check=1,
    start=1,
    layers=5,
    heads=5,
    scale=5,
    softmax=5,
    dropout=5,
)


# The mask and the length of the text


@misconception(
    "csa_not_cut",
    replaces="CausalSelfAttention",
    says="Your mask keeps context_size rows or columns, so it fits only the longest texts. Use its "
    "first T rows and its first T columns.",
    hint=3,
)
class NotCut(_Base):
    def hide(self, scores: Tensor) -> Tensor:
        return scores.masked_fill(self.later(self.context_size), float("-inf"))


@misconception(
    "csa_not_cut_in_place",
    replaces="CausalSelfAttention",
    says="Your mask keeps all its context_size rows and columns, so it fits only the longest "
    "texts. Use its first T rows and its first T columns.",
    hint=3,
)
class NotCutInPlace(_Base):
    def hide(self, scores: Tensor) -> Tensor:
        return scores.masked_fill_(self.later(self.context_size), float("-inf"))


@misconception(
    "csa_cut_kept",
    replaces="CausalSelfAttention",
    says="You replace the whole mask by the cropped one, so the next longer text has none. Crop "
    "it again in each call.",
    hint=3,
)
class CutKept(_Base):
    def hide(self, scores: Tensor) -> Tensor:
        self.kept = min(scores.shape[-1], getattr(self, "kept", self.context_size))
        return scores.masked_fill(self.later(self.kept), float("-inf"))


@misconception(
    "csa_buffer_replaced",
    replaces="CausalSelfAttention",
    says="You replace the whole mask by the cropped one, so the next longer text has none, and the "
    "cropped one is saved with the weights. Crop it again in each call.",
    hint=3,
)
class BufferReplaced(_Base):
    def make_mask(self, size: int) -> None:
        self.register_buffer("mask", torch.ones(size, size).triu(1))

    def hide(self, scores: Tensor) -> Tensor:
        T = scores.shape[-1]
        self.mask = self.mask[:T, :T]
        return scores.masked_fill(self.mask.bool(), float("-inf"))


@misconception(
    "csa_not_registered",
    replaces="CausalSelfAttention",
    says="Your module has no buffer. Register the mask as one: a mask that you merely assign stays "
    "behind when the module moves, one made in each call is wasted work, and a parameter would "
    "be trained.",
    hint=2,
)
class NotRegistered(_Base):
    def make_mask(self, size: int) -> None:
        self.mask = self.later(size)


@misconception(
    "csa_mask_is_parameter",
    replaces="CausalSelfAttention",
    says="Your mask is a parameter, though nothing in it is learnt. Register it as a buffer, "
    "which moves with the module just as well.",
    hint=2,
)
class MaskIsParameter(_Base):
    def make_mask(self, size: int) -> None:
        self.mask = nn.Parameter(self.later(size).float(), requires_grad=False)


@misconception(
    "csa_mask_is_trained",
    replaces="CausalSelfAttention",
    says="Your mask is a parameter, so it is among those that an optimiser gets to train. "
    "Register it as a buffer, which moves with the module just as well.",
    hint=2,
)
class MaskIsTrained(_Base):
    def make_mask(self, size: int) -> None:
        self.mask = nn.Parameter(self.later(size).float())


@misconception(
    "csa_cuts_the_text",
    replaces="CausalSelfAttention",
    says="You silently drop the end of a text that is too long. "
    "Raise a ValueError, so that the caller knows.",
    hint=4,
)
class CutsTheText(_Base):
    def refuse(self, x: Tensor) -> Tensor:
        return x[:, : self.context_size]


@misconception(
    "csa_length_unchecked",
    replaces="CausalSelfAttention",
    says="A text that is too long ends in a RuntimeError, torch's or your own. Compare T with "
    "context_size first and raise a ValueError.",
    hint=4,
)
class LengthUnchecked(_Base):
    def refuse(self, x: Tensor) -> Tensor:
        return x


@misconception(
    "csa_length_assert",
    replaces="CausalSelfAttention",
    says="You refuse a text that is too long with assert, which vanishes under python -O. Raise a "
    "ValueError.",
    hint=4,
)
class LengthAssert(_Base):
    def refuse(self, x: Tensor) -> Tensor:
        assert x.shape[1] <= self.context_size, "the text is too long"
        return x


@misconception(
    "csa_full_refused",
    replaces="CausalSelfAttention",
    says="You refuse a text of exactly context_size tokens. It still fits.",
    hint=4,
)
class FullRefused(_Base):
    def refuse(self, x: Tensor) -> Tensor:
        if x.shape[1] >= self.context_size:
            raise ValueError(f"{x.shape[1]} tokens are more than {self.context_size}")
        return x


# What the mask hides


@misconception(
    "csa_inverted",
    replaces="CausalSelfAttention",
    says="Your mask hides the past and shows the future. Token 0 must see only itself: look at "
    "the first row.",
    hint=3,
)
class Inverted(_Base):
    def later(self, size: int) -> Tensor:
        return super().later(size).T.contiguous()


@misconception(
    "csa_one_ahead",
    replaces="CausalSelfAttention",
    says="Each token sees the next one, the very one that it has to predict. Block from the first "
    "diagonal above the main one.",
    hint=3,
)
class OneAhead(_Base):
    def later(self, size: int) -> Tensor:
        return torch.ones(size, size, dtype=torch.bool).triu(2)


@misconception(
    "csa_not_itself",
    replaces="CausalSelfAttention",
    says="Your tokens do not see themselves, so the first sees nothing at all: NaN. The diagonal "
    "is allowed.",
    hint=3,
)
class NotItself(_Base):
    def later(self, size: int) -> Tensor:
        return torch.ones(size, size, dtype=torch.bool).triu(0)


class _BlockedMended(_Base):
    """A query that may look at nothing gets zeros, as with the attention_weights of this course."""

    def weights(self, scores: Tensor) -> Tensor:
        blocked = (scores == float("-inf")).all(dim=-1, keepdim=True)
        shares = super().weights(scores.masked_fill(blocked, 0.0))
        return shares.masked_fill(blocked, 0.0)


@misconception(
    "csa_not_itself_blocked_mended",
    replaces="CausalSelfAttention",
    says="Your tokens do not see themselves, so the first sees nothing at all and gets no more "
    "than the bias of w_o. The diagonal is allowed: block from the one above it.",
    hint=3,
)
class NotItselfBlockedMended(NotItself, _BlockedMended):
    pass


@misconception(
    "csa_nothing_but_later",
    replaces="CausalSelfAttention",
    says="You block the lower triangle with its diagonal, as if 1 in it meant blocked, so the "
    "last token sees nothing: NaN. Block the later tokens instead.",
    hint=3,
)
class NothingButLater(_Base):
    def later(self, size: int) -> Tensor:
        return torch.ones(size, size, dtype=torch.bool).tril()


@misconception(
    "csa_nothing_but_later_blocked_mended",
    replaces="CausalSelfAttention",
    says="You block the lower triangle with its diagonal, so each token sees only what comes after "
    "it, and the last one nothing. Block the later tokens instead.",
    hint=3,
)
class NothingButLaterBlockedMended(NothingButLater, _BlockedMended):
    pass


@misconception(
    "csa_cut_from_the_end",
    replaces="CausalSelfAttention",
    says="You take the first T columns of the mask's last rows, so each token sees too much. A "
    "text of T tokens needs the first T rows, too.",
    hint=3,
)
class CutFromTheEnd(_Base):
    def hide(self, scores: Tensor) -> Tensor:
        T = scores.shape[-1]
        return scores.masked_fill(self.later(self.context_size)[-T:, :T], float("-inf"))


@misconception(
    "csa_keeps_the_last",
    replaces="CausalSelfAttention",
    says="You silently drop the beginning of a text that is too long. "
    "Raise a ValueError, so that the caller knows.",
    hint=4,
)
class KeepsTheLast(_Base):
    def refuse(self, x: Tensor) -> Tensor:
        return x[:, -self.context_size :]


@misconception(
    "csa_unused",
    replaces="CausalSelfAttention",
    says="Your mask has no effect: every token sees the whole text. Apply its first T rows and "
    "columns before the softmax, and use the result: masked_fill returns a new tensor.",
    hint=5,
)
class Unused(_Base):
    def hide(self, scores: Tensor) -> Tensor:
        return scores


@misconception(
    "csa_multiplied",
    replaces="CausalSelfAttention",
    says="Your blocked scores become 0, as when you multiply by the mask or fill in 1e-9. exp(0) "
    "is 1, so they still get weight; only -inf becomes 0 in the softmax.",
    hint=5,
)
class Multiplied(_Base):
    def hide(self, scores: Tensor) -> Tensor:
        return scores * ~self.later(scores.shape[-1])


@misconception(
    "csa_zero_scores_blocked",
    replaces="CausalSelfAttention",
    says="You also block allowed scores that are exactly 0, as when you set the later scores to 0 "
    "and then fill all zeros. Look only at the mask.",
    hint=5,
)
class ZeroScoresBlocked(_Base):
    def hide(self, scores: Tensor) -> Tensor:
        scores = scores.tril()
        return scores.masked_fill(scores == 0, float("-inf"))


@misconception(
    "csa_added",
    replaces="CausalSelfAttention",
    says="Your mask of 1 and 0 is added to the scores, as F.scaled_dot_product_attention does with "
    "a mask of numbers, so later tokens only fall behind by 1. Make it boolean, or fill with -inf.",
    hint=5,
)
class Added(_Base):
    def hide(self, scores: Tensor) -> Tensor:
        return scores + ~self.later(scores.shape[-1])


@misconception(
    "csa_after_softmax",
    replaces="CausalSelfAttention",
    says="You mask the weights after the softmax, so later tokens have already taken their "
    "share. Mask the scores, before the softmax.",
    hint=5,
)
class AfterSoftmax(_Base):
    def hide(self, scores: Tensor) -> Tensor:
        return scores

    def weights(self, scores: Tensor) -> Tensor:
        return super().weights(scores) * ~self.later(scores.shape[-1])


# The layers


@misconception(
    "csa_qkv_bias_default",
    replaces="CausalSelfAttention",
    says="Your w_q, w_k and w_v have a bias that nobody asked for. qkv_bias is False by default; "
    "pass it on to each of the three.",
    hint=1,
)
class QkvBiasDefault(_Base):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_size: int,
        num_heads: int,
        dropout: float = 0.0,
        qkv_bias: bool = True,
    ) -> None:
        super().__init__(d_in, d_out, context_size, num_heads, dropout, qkv_bias)


@misconception(
    "csa_qkv_bias_for_all",
    replaces="CausalSelfAttention",
    says="With qkv_bias=False your w_o has no bias. The argument is only for w_q, w_k and w_v; "
    "w_o always has a bias.",
    hint=1,
)
class QkvBiasForAll(_Base):
    def make_layers(self, d_in: int, d_out: int, qkv_bias: bool) -> None:
        super().make_layers(d_in, d_out, qkv_bias)
        self.w_o = nn.Linear(d_out, d_out, bias=qkv_bias)


@misconception(
    "csa_per_head",
    replaces="CausalSelfAttention",
    says="You take d_out as the width of one head. It is the width of all heads together.",
    hint=1,
)
class PerHead(_Base):
    def make_layers(self, d_in: int, d_out: int, qkv_bias: bool) -> None:
        super().make_layers(d_in, d_out * self.num_heads, qkv_bias)
        self.w_o = nn.Linear(d_out * self.num_heads, d_out)
        self.d_k = d_out


@misconception(
    "csa_back_to_d_in",
    replaces="CausalSelfAttention",
    says="Your w_o maps back to d_in features. Heads and output are d_out wide.",
    hint=1,
)
class BackToDIn(_Base):
    def make_layers(self, d_in: int, d_out: int, qkv_bias: bool) -> None:
        super().make_layers(d_in, d_out, qkv_bias)
        self.w_o = nn.Linear(d_out, d_in)


@misconception(
    "csa_d_in_divides",
    replaces="CausalSelfAttention",
    says="You check whether the heads divide d_in. They must divide d_out.",
    hint=1,
)
class DInDivides(_Base):
    def check(self, *sizes: int) -> None:
        d_in, d_out, num_heads = sizes
        super().check(d_out, d_in, num_heads)


@misconception(
    "csa_scale_by_d_out",
    replaces="CausalSelfAttention",
    says="You divide the scores by the root of d_out. One head's product sums over its own d_k "
    "features only.",
    hint=5,
)
class ScaleByDOut(_Base):
    def scale(self) -> float:
        return math.sqrt(self.num_heads * self.d_k)


@misconception(
    "csa_scale_by_d_in",
    replaces="CausalSelfAttention",
    says="You divide the scores by the root of d_in, the size of x. One head's product sums over "
    "its own d_k features only.",
    hint=5,
)
class ScaleByDIn(_Base):
    def scale(self) -> float:
        return math.sqrt(self.w_q.in_features)


@misconception(
    "csa_weights_too",
    replaces="CausalSelfAttention",
    says="You return the weights as well. This module returns only the output.",
    hint=5,
)
class WeightsToo(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        self.last = super().drop(weights)
        return self.last

    def out(self, joined: Tensor, query: Tensor) -> Any:
        return self.w_o(joined), self.last


# Dropout


@misconception(
    "csa_dropout_on_scores_before_the_mask",
    replaces="CausalSelfAttention",
    says="You apply dropout before the softmax. A score of 0 still gets weight there; drop the "
    "weights, after the softmax.",
    hint=5,
)
class DropoutOnScoresBeforeTheMask(_Base):
    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return self.dropout(super().scores(q, k))

    def drop(self, weights: Tensor) -> Tensor:
        return weights


@misconception(
    "csa_input_in_place",
    replaces="CausalSelfAttention",
    says="You scale x itself before you compute the queries. x belongs to the caller: scale the "
    "scores, or a new tensor.",
    hint=5,
)
class InputInPlace(_Base):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        k, v = self.w_k(key), self.w_v(value)
        query /= math.sqrt(self.d_k)
        return self.w_q(query) * math.sqrt(self.d_k), k, v


@misconception(
    "csa_w_o_without_bias",
    replaces="CausalSelfAttention",
    says="Your w_o has no bias. It always has one; only those of w_q, w_k and w_v depend on "
    "qkv_bias.",
)
class OutputWithoutBias(_Base):
    def make_layers(self, d_in: int, d_out: int, qkv_bias: bool) -> None:
        super().make_layers(d_in, d_out, qkv_bias)
        self.w_o = nn.Linear(d_out, d_out, bias=False)


@misconception(
    "csa_qkv_bias_never",
    replaces="CausalSelfAttention",
    says="Your w_q, w_k and w_v never have a bias. Pass qkv_bias on to each of the three.",
)
class QkvBiasNever(_Base):
    def make_layers(self, d_in: int, d_out: int, qkv_bias: bool) -> None:
        super().make_layers(d_in, d_out, False)
