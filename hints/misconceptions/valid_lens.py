"""Known misconceptions of the stage valid_lens: what people really write, and a sentence.

`_Base` is a correct module cut into steps; each misconception of it replaces one or two of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from _attention import values_from_heads
from torch import Tensor, nn

from grader.misconceptions import Value, misconception, values


@values(of="ValidLensAttention")
def way(
    module: Any, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
) -> Iterator[Value | tuple[Value, ...]]:
    """The values on the way to the output; weights are those before dropout.

    B and H are two axes here, because a right answer may also keep them apart.
    """
    B, H = len(queries), module.num_heads

    def heads(x: Tensor) -> Tensor:
        return x.reshape(B, x.shape[1], H, -1).transpose(1, 2)  # (B, H, T, d_k)

    q, k, v = module.w_q(queries), module.w_k(keys), module.w_v(values)
    yield (
        Value("the projected queries", q, "B Tq num_hiddens"),
        Value("the projected keys", k, "B Tk num_hiddens"),
        Value("the projected values", v, "B Tk num_hiddens"),
    )
    q, k, v = heads(q), heads(k), heads(v)
    yield (
        Value("the queries' heads", q, "B H Tq d_k"),
        Value("the keys' heads", k, "B H Tk d_k"),
        Value("the values' heads", v, "B H Tk d_k"),
    )
    mask = None
    if valid_lens is not None:
        mask = torch.arange(k.shape[2], device=k.device) < valid_lens.reshape(B, 1, -1, 1)
    yield from values_from_heads(module, q, k, v, mask, width="num_hiddens")


# The heads in the batch


@misconception(
    "qkv_not_turned",
    replaces="transpose_qkv",
    says="You reshape [B, T, D] straight to [B * H, T, d_k], which mixes tokens between the "
    "heads. First give the heads an axis, then move it before the tokens.",
    hint=1,
)
def qkv_not_turned(x: Tensor, num_heads: int) -> Tensor:
    B, T, D = x.shape
    return x.reshape(B * num_heads, T, D // num_heads)


@misconception(
    "qkv_heads_first",
    replaces="transpose_qkv",
    says="You put head 0 of all sequences first, then head 1. All heads of the first sequence come "
    "first: b * H + h.",
    hint=1,
)
def qkv_heads_first(x: Tensor, num_heads: int) -> Tensor:
    return torch.cat(x.chunk(num_heads, dim=-1))


@misconception(
    "qkv_not_folded",
    replaces="transpose_qkv",
    says="Your result has four axes. Fold the first two, batch and heads, into one.",
    hint=1,
)
def qkv_not_folded(x: Tensor, num_heads: int) -> Tensor:
    B, T, D = x.shape
    return x.reshape(B, T, num_heads, D // num_heads).transpose(1, 2)


@misconception(
    "qkv_interleaved",
    replaces="transpose_qkv",
    says="Your head h takes every H-th feature. It takes d_k neighbours: h * d_k and those after.",
    hint=1,
)
def qkv_interleaved(x: Tensor, num_heads: int) -> Tensor:
    B, T, D = x.shape
    heads = x.reshape(B, T, D // num_heads, num_heads).permute(0, 3, 1, 2)
    return heads.reshape(B * num_heads, T, D // num_heads)


@misconception(
    "qkv_tokens_folded",
    replaces="transpose_qkv",
    says="You fold batch and tokens together. Fold the heads into the batch instead; the tokens "
    "keep their axis.",
    hint=1,
)
def qkv_tokens_folded(x: Tensor, num_heads: int) -> Tensor:
    return x.reshape(-1, num_heads, x.shape[2] // num_heads)


@misconception(
    "output_not_turned",
    replaces="transpose_output",
    says="You reshape straight to [B, T, D]. Swap tokens and heads first, or features of several "
    "tokens end up in one.",
    hint=2,
)
def output_not_turned(x: Tensor, num_heads: int) -> Tensor:
    BH, T, d_k = x.shape
    return x.reshape(BH // num_heads, T, num_heads * d_k)


@misconception(
    "output_heads_first",
    replaces="transpose_output",
    says="You read the first axis as head by head. It goes sequence by sequence: b * H + h.",
    hint=2,
)
def output_heads_first(x: Tensor, num_heads: int) -> Tensor:
    return torch.cat(x.chunk(num_heads), dim=-1)


@misconception(
    "output_view",
    replaces="transpose_output",
    says="After you swap the axes the memory is not in order, so view fails. reshape copies when "
    "it must.",
    hint=2,
)
def output_view(x: Tensor, num_heads: int) -> Tensor:
    x = x.reshape(-1, num_heads, x.shape[1], x.shape[2])
    x = x.permute(0, 2, 1, 3)
    return x.view(x.shape[0], x.shape[1], -1)


# The module


class _Base(nn.Module):
    """The module in steps, drawing random numbers in the order of a usual solution."""

    def __init__(
        self, num_hiddens: int, num_heads: int, dropout: float = 0.0, bias: bool = False
    ) -> None:
        super().__init__()
        self.check(num_hiddens, num_heads)
        self.num_heads = num_heads
        self.make_layers(num_hiddens, bias)
        self.dropout = nn.Dropout(dropout)

    def check(self, num_hiddens: int, num_heads: int) -> None:
        if num_hiddens % num_heads != 0:
            raise ValueError(f"num_heads={num_heads} does not divide num_hiddens={num_hiddens}")

    def make_layers(self, size: int, bias: bool) -> None:
        self.w_q = nn.LazyLinear(size, bias=bias)
        self.w_k = nn.LazyLinear(size, bias=bias)
        self.w_v = nn.LazyLinear(size, bias=bias)
        self.w_o = nn.LazyLinear(size, bias=bias)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Any:
        q, k, v = (
            self.fold(self.w_q(queries)),
            self.fold(self.w_k(keys)),
            self.fold(self.w_v(values)),
        )
        lens = None if valid_lens is None else self.repeat(valid_lens)
        weights = self.weights(self.scores(q, k), lens)  # (B * H, Tq, Tk)
        heads = torch.bmm(self.drop(weights), v).unflatten(0, (-1, self.num_heads))
        return self.out(heads.transpose(1, 2).flatten(2))

    def fold(self, x: Tensor) -> Tensor:
        return x.unflatten(2, (self.num_heads, -1)).transpose(1, 2).flatten(0, 1)

    def repeat(self, lens: Tensor) -> Tensor:
        return lens.repeat_interleave(self.num_heads, dim=0)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])

    def weights(self, scores: Tensor, lens: Tensor | None) -> Tensor:
        if lens is None:
            return torch.softmax(scores, dim=-1)
        ends = lens.reshape(len(lens), -1, 1)  # (B * H, 1 or Tq, 1)
        return self.masked(scores, self.valid(scores, ends), ends)

    def valid(self, scores: Tensor, ends: Tensor) -> Tensor:
        return torch.arange(scores.shape[-1], device=scores.device) < ends

    def masked(self, scores: Tensor, valid: Tensor, ends: Tensor) -> Tensor:
        empty = ends == 0
        scores = scores.masked_fill(~valid, float("-inf")).masked_fill(empty, 0.0)
        return torch.softmax(scores, dim=-1).masked_fill(empty, 0.0)

    def drop(self, weights: Tensor) -> Tensor:
        dropped: Tensor = self.dropout(weights)
        return dropped

    def out(self, joined: Tensor) -> Any:
        return self.w_o(joined)


# The lengths


@misconception(
    "lens_in_place",
    replaces="ValidLensAttention",
    says="You turn lengths into last positions in place, so the caller's own valid_lens shrinks "
    "by one with every call. Make a new tensor.",
    hint=4,
)
class LensInPlace(_Base):
    def repeat(self, lens: Tensor) -> Tensor:
        return super().repeat(lens.sub_(1)) + 1


@misconception(
    "lens_repeated",
    replaces="ValidLensAttention",
    says="You repeat the lengths as a whole, 3 2 3 2, so heads get the length of another "
    "sequence. Repeat each length in turn, 3 3 2 2: that is repeat_interleave.",
    hint=3,
)
class Repeated(_Base):
    def repeat(self, lens: Tensor) -> Tensor:
        return lens.repeat(self.num_heads, *[1] * (lens.dim() - 1))


@misconception(
    "lens_flattened",
    replaces="ValidLensAttention",
    says="You flatten lengths of shape (B, Tq), as reshape does, or repeat_interleave without dim. "
    "Keep their rows, and repeat them along axis 0.",
    hint=3,
)
class Flattened(_Base):
    def repeat(self, lens: Tensor) -> Tensor:
        return lens.repeat_interleave(self.num_heads)


@misconception(
    "lens_not_repeated",
    replaces="ValidLensAttention",
    says="There are B lengths, but after folding there are B * H rows. Repeat each length for "
    "every head.",
    hint=3,
)
class NotRepeated(_Base):
    def repeat(self, lens: Tensor) -> Tensor:
        return lens


@misconception(
    "lens_ignored",
    replaces="ValidLensAttention",
    says="Your valid_lens has no effect: every query looks at all keys. Block the others before "
    "the softmax, and use the result: masked_fill returns a new tensor.",
    hint=4,
)
class Ignored(_Base):
    def weights(self, scores: Tensor, lens: Tensor | None) -> Tensor:
        return torch.softmax(scores, dim=-1)


@misconception(
    "lens_first_query",
    replaces="ValidLensAttention",
    says="You use the first query's length for all queries.",
    hint=4,
)
class FirstQuery(_Base):
    def valid(self, scores: Tensor, ends: Tensor) -> Tensor:
        return super().valid(scores, ends[:, :1])

    def masked(self, scores: Tensor, valid: Tensor, ends: Tensor) -> Tensor:
        return super().masked(scores, valid, ends[:, :1])


@misconception(
    "lens_of_queries_ignored",
    replaces="ValidLensAttention",
    says="Lengths for each query, (B, Tq), have no effect: every query looks at all keys.",
    hint=4,
)
class OfQueriesIgnored(_Base):
    def weights(self, scores: Tensor, lens: Tensor | None) -> Tensor:
        return super().weights(scores, None if lens is None or lens.dim() > 1 else lens)


@misconception(
    "lens_one_too_many",
    replaces="ValidLensAttention",
    says="You let one key too many through. Keys are counted from 0: for length 3, keys 0, 1 and "
    "2 are valid.",
    hint=4,
)
class OneTooMany(_Base):
    def valid(self, scores: Tensor, ends: Tensor) -> Tensor:
        return torch.arange(scores.shape[-1], device=scores.device) <= ends


@misconception(
    "lens_one_too_many_of_none",
    replaces="ValidLensAttention",
    says="You let one key too many through. Keys are counted from 0: for length 3, keys 0, 1 and "
    "2 are valid, and for length 0 none is.",
    hint=4,
)
class OneTooManyOfNone(OneTooMany):
    def masked(self, scores: Tensor, valid: Tensor, ends: Tensor) -> Tensor:
        return super().masked(scores, valid, ends + 1)  # no row is empty


@misconception(
    "lens_inverted",
    replaces="ValidLensAttention",
    says="You block the valid keys and show the others.",
    hint=4,
)
class Inverted(_Base):
    def masked(self, scores: Tensor, valid: Tensor, ends: Tensor) -> Tensor:
        empty = valid.all(dim=-1, keepdim=True)
        scores = scores.masked_fill(valid, float("-inf")).masked_fill(empty, 0.0)
        return torch.softmax(scores, dim=-1).masked_fill(empty, 0.0)


@misconception(
    "lens_of_queries",
    replaces="ValidLensAttention",
    says="You read the lengths as numbers of queries. They count the keys that a query may see.",
    hint=4,
)
class OfQueries(_Base):
    def masked(self, scores: Tensor, valid: Tensor, ends: Tensor) -> Tensor:
        rows = torch.arange(scores.shape[1], device=scores.device)[:, None] < ends
        return torch.softmax(scores, dim=-1) * rows


@misconception(
    "lens_minus_1e6",
    replaces="ValidLensAttention",
    says="A query without a valid key looks at all keys alike, as when you block with -1e6. Block "
    "with -inf, and give such a query zeros.",
    hint=5,
)
class Minus1e6(_Base):
    def masked(self, scores: Tensor, valid: Tensor, ends: Tensor) -> Tensor:
        return torch.softmax(scores.masked_fill(~valid, -1e6), dim=-1)


@misconception(
    "lens_nan",
    replaces="ValidLensAttention",
    says="A query without valid keys has only scores of -inf, and the softmax gives NaN. Your "
    "attention_weights gives zeros: use it.",
    hint=5,
)
class Nan(_Base):
    def masked(self, scores: Tensor, valid: Tensor, ends: Tensor) -> Tensor:
        return torch.softmax(scores.masked_fill(~valid, float("-inf")), dim=-1)


@misconception(
    "lens_after_softmax",
    replaces="ValidLensAttention",
    says="You mask the weights after the softmax, so invalid keys have already taken their "
    "share. Mask the scores, before the softmax.",
    hint=4,
)
class AfterSoftmax(_Base):
    def masked(self, scores: Tensor, valid: Tensor, ends: Tensor) -> Tensor:
        return torch.softmax(scores, dim=-1) * valid


# The layers


@misconception(
    "lens_not_lazy",
    replaces="ValidLensAttention",
    says="Your layers are nn.Linear, which fixes the size of the input in the constructor. "
    "nn.LazyLinear takes only the number of outputs and waits for the first call.",
    hint=6,
)
class NotLazy(_Base):
    def make_layers(self, size: int, bias: bool) -> None:
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(size, size, bias) for _ in range(4))


@misconception(
    "lens_w_o_not_lazy",
    replaces="ValidLensAttention",
    says="Your w_o is not an nn.LazyLinear. All four layers are lazy here.",
    hint=6,
)
class WONotLazy(_Base):
    def make_layers(self, size: int, bias: bool) -> None:
        super().make_layers(size, bias)
        self.w_o = nn.Linear(size, size, bias=bias)


@misconception(
    "lens_bias_default",
    replaces="ValidLensAttention",
    says="Your layers have a bias by default. Here bias must be False by default.",
    hint=6,
)
class BiasDefault(_Base):
    def __init__(
        self, num_hiddens: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__(num_hiddens, num_heads, dropout, bias)


@misconception(
    "lens_bias_never",
    replaces="ValidLensAttention",
    says="Your layers have no bias even with bias=True. Pass the argument on to each of the four.",
    hint=6,
)
class BiasNever(_Base):
    def make_layers(self, size: int, bias: bool) -> None:
        super().make_layers(size, bias=False)


@misconception(
    "lens_no_value_error",
    replaces="ValidLensAttention",
    says="Your constructor accepts a num_hiddens that the heads do not divide. "
    "Check it at the start and raise a ValueError.",
    hint=6,
)
class NoValueError(_Base):
    def check(self, num_hiddens: int, num_heads: int) -> None:
        pass


@misconception(
    "lens_assert",
    replaces="ValidLensAttention",
    says="Your constructor refuses sizes with an AssertionError, as assert does, which vanishes "
    "under python -O. A wrong argument deserves a ValueError.",
    hint=6,
)
class Assert(_Base):
    def check(self, num_hiddens: int, num_heads: int) -> None:
        assert num_hiddens % num_heads == 0, "num_hiddens must be divisible by num_heads"


@misconception(
    "lens_no_scale",
    replaces="ValidLensAttention",
    says="Your scores are not scaled. Divide them by sqrt(d_k), or use your scaled_scores.",
    hint=5,
)
class NoScale(_Base):
    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return torch.bmm(q, k.transpose(1, 2))


@misconception(
    "lens_scale_hiddens",
    replaces="ValidLensAttention",
    says="You divide the scores by the root of num_hiddens. One head's product sums over its own "
    "d_k features only.",
    hint=5,
)
class ScaleHiddens(_Base):
    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1] * self.num_heads)


@misconception(
    "lens_no_w_o",
    replaces="ValidLensAttention",
    says="You return the heads side by side without w_o. It is the only place where the heads are "
    "mixed.",
    hint=5,
)
class NoWO(_Base):
    def out(self, joined: Tensor) -> Any:
        return joined


@misconception(
    "lens_dropout_never",
    replaces="ValidLensAttention",
    says="Your dropout drops nothing. In training it acts on the attention weights, and returns "
    "new ones: use those.",
    hint=5,
)
class DropoutNever(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        return weights


@misconception(
    "lens_dropout_ends_with_eval",
    replaces="ValidLensAttention",
    says="After one call in evaluation mode your module drops nothing any more, not even in "
    "training mode: the call changes a rate that the module keeps. Leave it, and choose in each "
    "call by self.training, or use nn.Dropout.",
    hint=5,
)
class DropoutEndsWithEval(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        if not self.training:
            self.dropout.p = 0.0
        return super().drop(weights)


@misconception(
    "lens_dropout_always",
    replaces="ValidLensAttention",
    says="Your dropout is still active after eval(): F.dropout drops unless you pass "
    "training=self.training, F.scaled_dot_product_attention whatever the mode. An nn.Dropout made "
    "in __init__ knows the mode; one made in forward does not.",
    hint=5,
)
class DropoutAlways(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        return F.dropout(weights, p=self.dropout.p)


@misconception(
    "lens_dropout_default",
    replaces="ValidLensAttention",
    says="Your dropout is 0.5 by default, as in the book's example. The default is 0.0.",
    hint=6,
)
class DropoutDefault(_Base):
    def __init__(
        self, num_hiddens: int, num_heads: int, dropout: float = 0.5, bias: bool = False
    ) -> None:
        super().__init__(num_hiddens, num_heads, dropout, bias)
