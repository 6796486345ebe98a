"""Known misconceptions of the stage grouped_query: what people really write, and a sentence.

Those that other stages share are in _attention.py. `_Base` is a correct module cut into steps; each
misconception replaces one or two of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from _attention import Attention, usual_mistakes, values_from_heads
from torch import Tensor, nn

from grader.misconceptions import Value, misconception, values


class _Base(Attention):
    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int,
        dropout: float | None = None,
        bias: bool = True,
    ) -> None:
        nn.Module.__init__(self)
        self.check(d_model, num_heads, num_kv_heads)
        self.d_model, self.num_heads, self.d_k = d_model, num_heads, d_model // num_heads
        self.num_kv_heads = self.key_heads(num_heads, num_kv_heads)
        self.make_layers(d_model, self.num_kv_heads * self.d_k, bias)
        self.initialise()
        self.dropout = self.make_dropout(self.default_dropout() if dropout is None else dropout)

    def check(self, *sizes: int) -> None:
        d_model, num_heads, num_kv_heads = sizes
        super().check(d_model, num_heads)
        if num_heads % num_kv_heads != 0:
            raise ValueError(f"{num_heads} query heads cannot share {num_kv_heads} key heads")

    def key_heads(self, num_heads: int, num_kv_heads: int) -> int:
        return num_kv_heads

    def make_layers(self, d_model: int, narrow: int, bias: bool) -> None:
        self.w_q = self.linear(d_model, d_model, bias)
        self.w_k = self.linear(d_model, narrow, bias)
        self.w_v = self.linear(d_model, narrow, bias)
        self.w_o = self.linear(d_model, d_model, bias)

    def heads(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.split(q), *self.share(self.narrow(k), self.narrow(v))  # (B, H, T, d_k)

    def narrow(self, x: Tensor) -> Tensor:
        if x.shape[-1] == self.num_kv_heads * self.d_k:
            return self.split(x)
        return x.unflatten(-1, (self.num_kv_heads, -1)).transpose(1, 2)

    @property
    def group(self) -> int:
        return self.num_heads // self.num_kv_heads

    def share(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return k.repeat_interleave(self.group, dim=1), v.repeat_interleave(self.group, dim=1)


@values(of="GroupedQueryAttention")
def way(
    module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Iterator[Value | tuple[Value, ...]]:
    """The values on the way to the output; weights are those before dropout."""
    B, _, D = query.shape
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
    yield from values_from_heads(module, q, k, v, mask)


usual = usual_mistakes(
    _Base,
    "GroupedQueryAttention",
    "gqa",
    without=(
        "all_through_w_v",
        "dropout_on_heads",
        "heads_attend_to_heads",
        "key_through_w_q",
        "layers_exchanged",
        "query_through_w_k",
        "query_through_w_v",
        "value_not_projected",
        "value_through_w_q",
    ),
    check=1,
    bias=2,
    start=2,
    inputs=3,
    layers=3,
    heads=3,
    scale=5,
    mask=5,
    softmax=5,
    blocked=5,
    dropout=5,
)


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
    def heads(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        k, v = (x.repeat_interleave(self.group, dim=-1) for x in (k, v))
        return self.split(q), self.split(k), self.split(v)


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
    def heads(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().heads(q, k, v)
        return q.unflatten(1, (self.group, -1)).transpose(1, 2).flatten(1, 2), k, v


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
    "gqa_tokens_repeated",
    replaces="GroupedQueryAttention",
    says="You repeat along axis 2 of [B, Hkv, Tk, d_k], which holds tokens: each key stands there "
    "several times. The heads are axis 1; Llama's own repeat_kv expects [B, Tk, Hkv, d_k].",
    hint=4,
)
class TokensRepeated(_Base):
    def share(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return k.repeat_interleave(self.group, dim=2), v.repeat_interleave(self.group, dim=2)


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

    def heads(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        k = self.narrow(k).repeat_interleave(self.group, dim=1)
        return self.split(q), k, self.split(v)


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
    "gqa_keys_split_by_view",
    replaces="GroupedQueryAttention",
    says="You reshape keys and values straight to [B, Hkv, Tk, d_k]. The shape is right, but a "
    "head then holds the next Tk * d_k numbers, not its part of every token: your split_heads "
    "does it properly, for any number of heads.",
    hint=3,
)
class KeysSplitByView(_Base):
    def narrow(self, x: Tensor) -> Tensor:
        return x.reshape(len(x), self.num_kv_heads, x.shape[1], self.d_k)


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
    def start_weight(self, layer: nn.Linear) -> None:
        nn.init.normal_(layer.weight, std=self.d_model**-0.5)


@misconception(
    "gqa_narrow_bias_always",
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
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        if mask.dim() == 4 and mask.shape[1] == self.num_heads:
            mask = mask[:, :: self.group].repeat_interleave(self.group, dim=1)
        return super().block(scores, mask)


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
