"""Known misconceptions of the stage grouped_query: what people really write, and a sentence.

`_Base` is a correct module cut into steps; each misconception replaces one or two of them.
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
    """Grouped-query attention in steps, drawing random numbers in the order of a usual solution."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.check(d_model, num_heads, num_kv_heads)
        self.num_heads, self.num_kv_heads = num_heads, self.key_heads(num_heads, num_kv_heads)
        self.d_k = d_model // num_heads
        self.make_layers(d_model, self.num_kv_heads * self.d_k, bias)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            self.initialise(layer, d_model)
        self.dropout = nn.Dropout(dropout)

    def check(self, d_model: int, num_heads: int, num_kv_heads: int) -> None:
        if d_model % num_heads != 0:
            raise ValueError(f"d_model={d_model} does not divide into num_heads={num_heads}")
        if num_heads % num_kv_heads != 0:
            raise ValueError(f"{num_heads} query heads cannot share {num_kv_heads} key heads")

    def key_heads(self, num_heads: int, num_kv_heads: int) -> int:
        return num_kv_heads

    def make_layers(self, d_model: int, narrow: int, bias: bool) -> None:
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, narrow, bias=bias)
        self.w_v = nn.Linear(d_model, narrow, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)

    def initialise(self, layer: nn.Linear, d_model: int) -> None:
        nn.init.xavier_uniform_(layer.weight)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        q = self.split(self.w_q(query), self.num_heads)  # (B, H, Tq, d_k)
        k, v = self.share(*self.narrow_heads(key, value))  # (B, H, Tk, d_k)
        scores = q @ k.transpose(-2, -1) / self.scale()  # (B, H, Tq, Tk)
        if mask is not None:
            scores = scores.masked_fill(self.allowed(mask) == 0, float("-inf"))
        weights = self.drop(self.weights(scores))  # (B, H, Tq, Tk)
        return self.result(self.out((weights @ v).transpose(1, 2).flatten(2)), weights)

    def narrow_heads(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        k, v = self.w_k(key), self.w_v(value)
        return self.split(k, self.num_kv_heads), self.split(v, self.num_kv_heads)

    def split(self, x: Tensor, heads: int) -> Tensor:
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)

    @property
    def group(self) -> int:
        return self.num_heads // self.num_kv_heads

    def share(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return k.repeat_interleave(self.group, dim=1), v.repeat_interleave(self.group, dim=1)

    def scale(self) -> float:
        return math.sqrt(self.d_k)

    def allowed(self, mask: Tensor) -> Tensor:
        return mask

    def weights(self, scores: Tensor) -> Tensor:
        blocked = (scores == float("-inf")).all(dim=-1, keepdim=True)
        return torch.softmax(scores.masked_fill(blocked, 0.0), dim=-1).masked_fill(blocked, 0.0)

    def drop(self, weights: Tensor) -> Tensor:
        return self.dropout(weights)

    def out(self, joined: Tensor) -> Tensor:
        return self.w_o(joined)

    def result(self, output: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return output, weights


@values(of="GroupedQueryAttention")
def way(
    module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Iterator[Value | tuple[Value, ...]]:
    """The values on the way to the output; weights are those before dropout."""
    B, Tq, D = query.shape
    H, shared = module.num_heads, module.num_kv_heads

    def heads(x: Tensor) -> Tensor:
        return x.reshape(B, x.shape[1], -1, D // H).transpose(1, 2)  # (B, Hkv, T, d_k)

    q, k, v = module.w_q(query), module.w_k(key), module.w_v(value)
    yield (
        Value("the projected query", q, "B Tq D"),
        Value("the projected key", k, "B Tk Hkv*d_k"),
        Value("the projected value", v, "B Tk Hkv*d_k"),
    )
    q, k, v = heads(q), heads(k), heads(v)
    yield (
        Value("the query's heads", q, "B H Tq d_k"),
        Value("the key's heads", k, "B Hkv Tk d_k"),
        Value("the value's heads", v, "B Hkv Tk d_k"),
    )
    k, v = k.repeat_interleave(H // shared, dim=1), v.repeat_interleave(H // shared, dim=1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(D // H)
    yield Value("the scaled scores", scores, "B H Tq Tk")
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
        yield Value("the masked scores", scores, "B H Tq Tk")
    blocked = (scores == float("-inf")).all(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(blocked, 0.0), dim=-1).masked_fill(blocked, 0.0)
    yield Value("the weights", weights, "B H Tq Tk")
    context = weights @ v
    yield Value("each head's context", context, "B H Tq d_k")
    joined = context.transpose(1, 2).reshape(B, Tq, D)
    yield Value("the joined heads", joined, "B Tq D")
    yield Value("the output", module.w_o(joined), "B Tq D")


# Who shares with whom


@misconception(
    "gqa_in_turns",
    replaces="GroupedQueryAttention",
    says="You hand out the key heads in turns, 0, 1, 0, 1: that is what repeat does. Neighbours "
    "must share a head here: 0, 0, 1, 1.",
    hint=4,
)
class InTurns(_Base):
    def share(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return k.repeat(1, self.group, 1, 1), v.repeat(1, self.group, 1, 1)


@misconception(
    "gqa_features_repeated",
    replaces="GroupedQueryAttention",
    says="You repeat single features of keys and values, not whole heads, so no head keeps its own "
    "numbers. Split them first, then repeat along the axis of heads.",
    hint=4,
)
class FeaturesRepeated(_Base):
    def narrow_heads(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        k, v = self.w_k(key), self.w_v(value)
        return self.wide_heads(k), self.wide_heads(v)

    def wide_heads(self, x: Tensor) -> Tensor:
        return self.split(x.repeat_interleave(self.group, dim=-1), self.num_heads)

    def share(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return k, v


@misconception(
    "gqa_values_in_turns",
    replaces="GroupedQueryAttention",
    says="Neighbours share keys in your code, but you hand out the values in turns. A head that "
    "reads key head 1 must read value head 1.",
    hint=4,
)
class ValuesInTurns(_Base):
    def share(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return k.repeat_interleave(self.group, dim=1), v.repeat(1, self.group, 1, 1)


@misconception(
    "gqa_keys_in_turns",
    replaces="GroupedQueryAttention",
    says="Neighbours share values in your code, but you hand out the keys in turns. A head that "
    "reads value head 1 must read key head 1.",
    hint=4,
)
class KeysInTurns(_Base):
    def share(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return k.repeat(1, self.group, 1, 1), v.repeat_interleave(self.group, dim=1)


@misconception(
    "gqa_queries_in_turns",
    replaces="GroupedQueryAttention",
    says="You cut the query heads into (H / Hkv, Hkv), so that heads 0, Hkv, 2 Hkv ... share a key "
    "head. Neighbours must share one: cut them into (Hkv, H / Hkv).",
    hint=4,
)
class QueriesInTurns(_Base):
    def split(self, x: Tensor, heads: int) -> Tensor:
        split = super().split(x, heads)
        if heads != self.num_heads:
            return split
        return split.unflatten(1, (self.group, -1)).transpose(1, 2).flatten(1, 2)


@misconception(
    "gqa_groups_reversed",
    replaces="GroupedQueryAttention",
    says="Your first query heads read the last key head. The groups must be in the order of the "
    "key heads.",
    hint=4,
)
class GroupsReversed(_Base):
    def share(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return super().share(k.flip(1), v.flip(1))


@misconception(
    "gqa_first_key_head",
    replaces="GroupedQueryAttention",
    says="All your query heads read the first key head; the others are computed and never used.",
    hint=4,
)
class FirstKeyHead(_Base):
    def share(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        heads = (-1, self.num_heads, -1, -1)
        return k[:, :1].expand(heads), v[:, :1].expand(heads)


@misconception(
    "gqa_wrong_divisor",
    replaces="GroupedQueryAttention",
    says="Query head h reads key head h // num_kv_heads in your code. Divide h by the size of a "
    "group, num_heads / num_kv_heads.",
    hint=4,
)
class WrongDivisor(_Base):
    def share(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        heads = [head // self.num_kv_heads for head in range(self.num_heads)]
        return k[:, heads], v[:, heads]


@misconception(
    "gqa_place_in_group",
    replaces="GroupedQueryAttention",
    says="Query head h reads key head h % (num_heads / num_kv_heads) in your code: that is its "
    "place in its group, not the number of the group.",
    hint=4,
)
class PlaceInGroup(_Base):
    def share(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        heads = [head % self.group for head in range(self.num_heads)]
        return k[:, heads], v[:, heads]


@misconception(
    "gqa_keys_averaged",
    replaces="GroupedQueryAttention",
    says="You average the key heads and value heads into one. People average once, to convert an "
    "old model into a grouped one; here each group keeps a head of its own.",
    hint=4,
)
class KeysAveraged(_Base):
    def share(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        heads = (-1, self.num_heads, -1, -1)
        return k.mean(1, keepdim=True).expand(heads), v.mean(1, keepdim=True).expand(heads)


@misconception(
    "gqa_cut_off",
    replaces="GroupedQueryAttention",
    says="You copy the shared heads out of the graph, so w_k and w_v get no gradient and never "
    "learn. Repeat them with torch's operations: gradients flow through these.",
    hint=4,
)
class CutOff(_Base):
    def share(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return super().share(k.detach(), v.detach())


# The layers


@misconception(
    "gqa_all_key_heads",
    replaces="GroupedQueryAttention",
    says="Your w_k and w_v still make all H heads, so nothing is saved: this is stage 6 again. "
    "They must make num_kv_heads heads of size d_k.",
    hint=2,
)
class AllKeyHeads(_Base):
    def key_heads(self, num_heads: int, num_kv_heads: int) -> int:
        return num_heads


@misconception(
    "gqa_always_one",
    replaces="GroupedQueryAttention",
    says="You always have a single key head. That is multi-query attention, the case "
    "num_kv_heads = 1; the argument may ask for more.",
    hint=2,
)
class AlwaysOne(_Base):
    def key_heads(self, num_heads: int, num_kv_heads: int) -> int:
        return 1


@misconception(
    "gqa_group_size",
    replaces="GroupedQueryAttention",
    says="You read num_kv_heads as the size of a group. It is the number of key heads; a group has "
    "num_heads / num_kv_heads query heads.",
    hint=2,
)
class GroupSize(_Base):
    def key_heads(self, num_heads: int, num_kv_heads: int) -> int:
        return num_heads // num_kv_heads


@misconception(
    "gqa_repeated_too_often",
    replaces="GroupedQueryAttention",
    says="You repeat each key head num_kv_heads times. Repeat it num_heads / num_kv_heads times, "
    "once for each query head of its group.",
    hint=4,
)
class RepeatedTooOften(_Base):
    @property
    def group(self) -> int:
        return self.num_kv_heads


@misconception(
    "gqa_values_full",
    replaces="GroupedQueryAttention",
    says="You share the keys but not the values: w_v still makes all H heads. Both go into the "
    "cache, so both must be shared.",
    hint=2,
)
class ValuesFull(_Base):
    def make_layers(self, d_model: int, narrow: int, bias: bool) -> None:
        super().make_layers(d_model, narrow, bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)

    def narrow_heads(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        k = self.split(self.w_k(key), self.num_kv_heads)
        return k, self.split(self.w_v(value), self.num_heads)

    def share(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return k.repeat_interleave(self.group, dim=1), v


@misconception(
    "gqa_keys_and_values_full",
    replaces="GroupedQueryAttention",
    says="w_k and w_v have D outputs, as if there were num_heads key heads. There are only "
    "num_kv_heads, each of size d_k.",
    hint=1,
)
class KeysAndValuesFull(_Base):
    def make_layers(self, d_model: int, narrow: int, bias: bool) -> None:
        super().make_layers(d_model, d_model, bias)


@misconception(
    "gqa_layers_by_key_heads",
    replaces="GroupedQueryAttention",
    says="w_k and w_v have D / Hkv outputs, so more key heads would make them narrower. They make "
    "Hkv heads of size d_k = D / H: Hkv * d_k outputs.",
    hint=1,
)
class LayersByKeyHeads(_Base):
    def make_layers(self, d_model: int, narrow: int, bias: bool) -> None:
        super().make_layers(d_model, d_model // self.num_kv_heads, bias)


@misconception(
    "gqa_values_from_key",
    replaces="GroupedQueryAttention",
    says="You compute the values from the key, so the argument value is ignored. Heads share; "
    "keys and values stay two different things.",
    hint=3,
)
class ValuesFromKey(_Base):
    def narrow_heads(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        return super().narrow_heads(key, key)


@misconception(
    "gqa_layers_swapped",
    replaces="GroupedQueryAttention",
    says="Your keys come from w_v and your values from w_k. Swap the two layers.",
    hint=3,
)
class LayersSwapped(_Base):
    def narrow_heads(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        k, v = self.w_v(key), self.w_k(value)
        return self.split(k, self.num_kv_heads), self.split(v, self.num_kv_heads)


@misconception(
    "gqa_no_scale",
    replaces="GroupedQueryAttention",
    says="Your scores are not scaled. Divide them by sqrt(d_k), or use your scaled_scores.",
    hint=5,
)
class NoScale(_Base):
    def scale(self) -> float:
        return 1.0


@misconception(
    "gqa_split_by_view",
    replaces="GroupedQueryAttention",
    says="You reshape keys and values straight to [B, Hkv, Tk, d_k]. The shape is right, but a "
    "head then holds the next Tk * d_k numbers, not its part of every token: your split_heads "
    "does it properly, for any number of heads.",
    hint=3,
)
class SplitByView(_Base):
    def narrow_heads(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        k, v = self.w_k(key), self.w_v(value)
        shape = (len(k), self.num_kv_heads, k.shape[1], self.d_k)
        return k.reshape(shape), v.reshape(shape)


@misconception(
    "gqa_no_check",
    replaces="GroupedQueryAttention",
    says="Your constructor accepts numbers of heads that do not divide, and some query heads would "
    "be left without a key head. Check both divisions and raise a ValueError.",
    hint=1,
)
class NoCheck(_Base):
    def check(self, d_model: int, num_heads: int, num_kv_heads: int) -> None:
        if d_model % num_heads != 0:
            raise ValueError("d_model must be divisible by num_heads")


@misconception(
    "gqa_assert",
    replaces="GroupedQueryAttention",
    says="Your constructor refuses sizes with an AssertionError, as assert does, which vanishes "
    "under python -O. A wrong argument deserves a ValueError.",
    hint=1,
)
class Assert(_Base):
    def check(self, d_model: int, num_heads: int, num_kv_heads: int) -> None:
        assert d_model % num_heads == 0
        assert num_heads % num_kv_heads == 0


@misconception(
    "gqa_d_model_by_key_heads",
    replaces="GroupedQueryAttention",
    says="You check that num_kv_heads divides d_model. It must divide num_heads, so that all "
    "groups are equally large.",
    hint=1,
)
class DModelByKeyHeads(_Base):
    def check(self, d_model: int, num_heads: int, num_kv_heads: int) -> None:
        if d_model % num_heads != 0 or d_model % num_kv_heads != 0:
            raise ValueError("d_model must be divisible by both numbers of heads")


@misconception(
    "gqa_narrow_spread",
    replaces="GroupedQueryAttention",
    says="You start all four layers with the standard deviation 1 / sqrt(D). Xavier uses the "
    "sizes of each layer, and w_k and w_v are narrower.",
    hint=2,
)
class NarrowSpread(_Base):
    def initialise(self, layer: nn.Linear, d_model: int) -> None:
        nn.init.normal_(layer.weight, std=d_model**-0.5)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


@misconception(
    "gqa_default_start",
    replaces="GroupedQueryAttention",
    says="Your layers keep nn.Linear's own starting values. Once they exist, set Xavier weights "
    "and zero biases, as in stage 6.",
    hint=2,
)
class DefaultStart(_Base):
    def initialise(self, layer: nn.Linear, d_model: int) -> None:
        pass


@misconception(
    "gqa_bias_always",
    replaces="GroupedQueryAttention",
    says="Your w_k and w_v have a bias even with bias=False. Pass the argument on to all four.",
    hint=2,
)
class BiasAlways(_Base):
    def make_layers(self, d_model: int, narrow: int, bias: bool) -> None:
        super().make_layers(d_model, narrow, bias)
        self.w_k, self.w_v = nn.Linear(d_model, narrow), nn.Linear(d_model, narrow)


# Scores, mask, weights


@misconception(
    "gqa_scale_by_width",
    replaces="GroupedQueryAttention",
    says="You divide the scores by the root of all key features, Hkv * d_k. One product sums over "
    "the d_k features of one head only.",
    hint=5,
)
class ScaleByWidth(_Base):
    def scale(self) -> float:
        return math.sqrt(self.num_kv_heads * self.d_k)


@misconception(
    "gqa_mask_per_group",
    replaces="GroupedQueryAttention",
    says="If each head has its own mask, you use the first head's for the whole group. Heads "
    "share keys, not masks: the mask's axis counts query heads.",
    hint=5,
)
class MaskPerGroup(_Base):
    def allowed(self, mask: Tensor) -> Tensor:
        if mask.dim() < 4 or mask.shape[1] != self.num_heads:
            return mask
        return mask[:, :: self.group].repeat_interleave(self.group, dim=1)


@misconception(
    "gqa_blocked_nan",
    replaces="GroupedQueryAttention",
    says="If a query may look at nothing, your softmax gives NaN, which spreads through the "
    "output. Your attention_weights gives zeros instead: use it.",
    hint=5,
)
class BlockedNan(_Base):
    def weights(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, dim=-1)


@misconception(
    "gqa_blocked_equal",
    replaces="GroupedQueryAttention",
    says="A query that may look at nothing looks at all keys alike, as when you block with -1e9. "
    "Block with -inf, and give such a query zeros.",
    hint=5,
)
class BlockedEqual(_Base):
    def weights(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores.clamp(min=-1e9), dim=-1)


@misconception(
    "gqa_dropout_per_group",
    replaces="GroupedQueryAttention",
    says="The heads of a group drop the same weights. They share keys and values, but each head "
    "has weights of its own, and drops its own.",
    hint=5,
)
class DropoutPerGroup(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        kept = self.dropout(torch.ones_like(weights[:, :: self.group]))
        return weights * kept.repeat_interleave(self.group, dim=1)


@misconception(
    "gqa_weights_averaged",
    replaces="GroupedQueryAttention",
    says="You average the weights over the heads of a group. Each query head looks elsewhere, so "
    "return them all: [B, H, Tq, Tk].",
    hint=6,
)
class WeightsAveraged(_Base):
    def result(self, output: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return output, weights.unflatten(1, (self.num_kv_heads, self.group)).mean(2)


@misconception(
    "gqa_weights_five_axes",
    replaces="GroupedQueryAttention",
    says="Your weights have five axes, with groups and their heads apart. Merge these two into "
    "one axis of H query heads: [B, H, Tq, Tk].",
    hint=6,
)
class WeightsFiveAxes(_Base):
    def result(self, output: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return output, weights.unflatten(1, (self.num_kv_heads, self.group))


@misconception(
    "gqa_mask_in_place",
    replaces="GroupedQueryAttention",
    says="You invert the mask in place. It belongs to the caller, whose next call would get it "
    "inverted: make a new tensor.",
    hint=5,
)
class MaskInPlace(_Base):
    def allowed(self, mask: Tensor) -> Tensor:
        return mask.eq_(0) == 0


# Dropout, biases and starts


@misconception(
    "gqa_dropout_never",
    replaces="GroupedQueryAttention",
    says="Your dropout drops nothing. In training it acts on the attention weights, and returns "
    "new ones: use those.",
)
class DropoutNever(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        return weights


@misconception(
    "gqa_dropout_ends_with_eval",
    replaces="GroupedQueryAttention",
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
    "gqa_dropout_always",
    replaces="GroupedQueryAttention",
    says="Your dropout is still active after eval(): F.dropout drops unless you pass "
    "training=self.training. An nn.Dropout layer knows the mode by itself.",
)
class DropoutAlways(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        return F.dropout(weights, self.dropout.p)


@misconception(
    "gqa_dropout_on_output",
    replaces="GroupedQueryAttention",
    says="You drop parts of the output. Dropout acts on the attention weights, before they "
    "meet the values.",
)
class DropoutOnOutput(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        return weights

    def out(self, joined: Tensor) -> Tensor:
        return self.dropout(self.w_o(joined))


@misconception(
    "gqa_dropout_twice",
    replaces="GroupedQueryAttention",
    says="You apply dropout twice, to the weights and to the output. Apply it once, to the "
    "weights.",
)
class DropoutTwice(_Base):
    def out(self, joined: Tensor) -> Tensor:
        return self.dropout(self.w_o(joined))


@misconception(
    "gqa_dropout_default",
    replaces="GroupedQueryAttention",
    says="Your dropout is 0.1 by default. The default is 0.0.",
)
class DropoutDefault(_Base):
    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int,
        dropout: float = 0.1,
        bias: bool = True,
    ) -> None:
        super().__init__(d_model, num_heads, num_kv_heads, dropout, bias)


@misconception(
    "gqa_random_biases",
    replaces="GroupedQueryAttention",
    says="Your weights start right, but nn.Linear starts its biases at random. Set them to zero.",
)
class RandomBiases(_Base):
    def initialise(self, layer: nn.Linear, d_model: int) -> None:
        nn.init.xavier_uniform_(layer.weight)
