"""Known misconceptions of the stage rope: what people really write, and a sentence.

Those that other stages share are in _attention.py. `_angles`, `_turn` and `_Base` are right; each
misconception replaces a step of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from _attention import Attention, usual_mistakes, values_from_heads, values_to_heads
from torch import Tensor

from grader.misconceptions import Value, misconception, symptom, values


def _speeds(d_k: int, base: float) -> Tensor:
    return base ** (torch.arange(0, d_k, 2) / -d_k)


def _angles(seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0) -> Tensor:
    if d_k % 2 != 0:
        raise ValueError("d_k must be even")
    return torch.outer(torch.arange(offset, offset + seq_len).float(), _speeds(d_k, base))


def _cos_sin(x: Tensor, angles: Tensor) -> tuple[Tensor, Tensor]:
    return angles.cos().to(x), angles.sin().to(x)


def _turn(x: Tensor, angles: Tensor) -> Tensor:
    cos, sin = _cos_sin(x, angles)
    a, b = x[..., ::2], x[..., 1::2]
    return _interleaved(a * cos - b * sin, b * cos + a * sin)


def _interleaved(a: Tensor, b: Tensor) -> Tensor:
    return torch.stack((a, b), dim=-1).flatten(-2)


@values(of="RotaryMultiHeadAttention")
def way(
    module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Iterator[Value | tuple[Value, ...]]:
    """The values on the way to the output; weights are those before dropout.

    A query and a key that are turned the other way are right too, so they are no such values.
    """
    q, k, v = yield from values_to_heads(module, query, key, value)
    q, k = (_turn(x, _angles(x.shape[2], x.shape[3], module.base)) for x in (q, k))
    yield from values_from_heads(module, q, k, v, mask)


# The angles


@misconception(
    "rope_half_exponent",
    replaces="rope_angles",
    says="Your exponent grows by 1 / d_k from pair to pair. It must grow by 2 / d_k, so that the "
    "speeds go from 1 nearly down to 1 / base.",
    hint=2,
)
def half_exponent(seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0) -> Tensor:
    right = _angles(seq_len, d_k, base, offset)
    return right * base ** (torch.arange(d_k // 2) / d_k)


@misconception(
    "rope_double_exponent",
    replaces="rope_angles",
    says="Your exponent grows by 4 / d_k from pair to pair. If you already count in steps of 2, "
    "divide by d_k: the step is 2 / d_k.",
    hint=2,
)
def double_exponent(seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0) -> Tensor:
    return _angles(seq_len, d_k, base**2, offset)


@symptom(
    "rope_bare_exponent",
    of="rope_angles",
    says="From pair to pair your angles fall by base^2, not by base^(2 / d_k): the exponent is 2i "
    "alone. `**` binds before `/` in Python, so put 2i / d_k into brackets.",
    hint=2,
)
def bare_exponent(
    got: Tensor, expected: Tensor, seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0
) -> bool:
    bare = expected[:, :1].double() * base ** (-2.0 * torch.arange(d_k // 2))
    near = (torch.allclose(got.double(), bare * d_k**power, 1e-4, 1e-30) for power in (1, 0, -1))
    return got.shape == expected.shape and any(near)


@misconception(
    "rope_faster_and_faster",
    replaces="rope_angles",
    says="Your later pairs turn faster instead of slower. The exponent lacks its minus sign.",
    hint=2,
)
def faster_and_faster(seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0) -> Tensor:
    return _angles(seq_len, d_k, 1 / base, offset)


@misconception(
    "rope_ends_at_base",
    replaces="rope_angles",
    says="Your speeds run from 1 to 1 / base with both ends included. The last exponent is one "
    "step short of -1.",
    hint=2,
)
def ends_at_base(seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0) -> Tensor:
    _angles(seq_len, d_k)
    speeds = base ** -torch.linspace(0, 1, d_k // 2)
    return torch.outer(torch.arange(offset, offset + seq_len).float(), speeds)


@misconception(
    "rope_from_one",
    replaces="rope_angles",
    says="You count positions from 1. The first token is at position offset, 0 by default, where "
    "nothing turns.",
    hint=2,
)
def from_one(seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0) -> Tensor:
    return _angles(seq_len, d_k, base, offset + 1)


@misconception(
    "rope_offset_ignored",
    replaces="rope_angles",
    says="Your offset has no effect. It is the position of the first token; the others follow.",
    hint=2,
)
def offset_ignored(seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0) -> Tensor:
    return _angles(seq_len, d_k, base)


@symptom(
    "rope_other_start",
    of="rope_angles",
    says="Your angles grow from token to token as they should, but they start at another position. "
    "The first token is at position offset.",
    hint=2,
)
def other_start(
    got: Tensor, expected: Tensor, seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0
) -> bool:
    start = float(got[0, 0])  # the first pair turns by 1 radian a token
    started = (start + torch.arange(seq_len))[:, None] * _speeds(d_k, base)
    return abs(start - offset) > 0.5 and torch.allclose(got.double(), started.double(), 1e-4, 1e-5)


@misconception(
    "rope_offset_on_the_angle",
    replaces="rope_angles",
    says="You add the offset to the angles. It counts tokens: add it to the position, before you "
    "multiply by each pair's speed.",
    hint=2,
)
def offset_on_the_angle(seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0) -> Tensor:
    return _angles(seq_len, d_k, base) + offset


@misconception(
    "rope_offset_cuts",
    replaces="rope_angles",
    says="You count from offset to seq_len, so a large offset leaves nothing. There are seq_len "
    "tokens, whatever the offset.",
    hint=2,
)
def offset_cuts(seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0) -> Tensor:
    return _angles(seq_len, d_k, base)[: max(0, seq_len - offset)] + _angles(1, d_k, base, offset)


@misconception(
    "rope_base_ignored",
    replaces="rope_angles",
    says="You take a base but always compute with 10000.",
    hint=2,
)
def base_ignored(seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0) -> Tensor:
    return _angles(seq_len, d_k, offset=offset)


@misconception(
    "rope_angle_per_feature",
    replaces="rope_angles",
    says="You return every angle twice, d_k of them. Return one angle for each pair, d_k / 2; "
    "apply_rope repeats them if it needs to.",
    hint=1,
)
def angle_per_feature(seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0) -> Tensor:
    return _angles(seq_len, d_k, base, offset).repeat_interleave(2, dim=-1)


@misconception(
    "rope_angles_twice",
    replaces="rope_angles",
    says="You return all angles twice, one half after the other, as libraries do that pair feature "
    "i with feature i + d_k / 2. Return one angle for each pair, d_k / 2 of them.",
    hint=1,
)
def angles_twice(seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0) -> Tensor:
    angles = _angles(seq_len, d_k, base, offset)
    return torch.cat((angles, angles), dim=-1)


@misconception(
    "rope_base_and_offset_ignored",
    replaces="rope_angles",
    says="You use neither base nor offset: your base is always 10000, and your first position "
    "always 0.",
    hint=2,
)
def base_and_offset_ignored(
    seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0
) -> Tensor:
    return _angles(seq_len, d_k)


@misconception(
    "rope_odd_accepted",
    replaces="rope_angles",
    says="You accept an odd d_k, and one feature would have no partner. Raise a ValueError first.",
    hint=1,
)
def odd_accepted(seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0) -> Tensor:
    return torch.outer(torch.arange(offset, offset + seq_len).float(), _speeds(d_k, base))


# The turn


@misconception(
    "rope_halves",
    replaces="apply_rope",
    says="You pair feature i with feature i + d_k / 2, as some libraries do. Here neighbours are a "
    "pair: features 2i and 2i + 1.",
    hint=3,
)
def halves(x: Tensor, angles: Tensor) -> Tensor:
    cos, sin = _cos_sin(x, angles)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


@misconception(
    "rope_halves_turned_back",
    replaces="apply_rope",
    says="You pair feature i with feature i + d_k / 2, as some libraries do. Here neighbours are a "
    "pair: features 2i and 2i + 1. (You also turn the other way, which is allowed.)",
    hint=3,
)
def halves_turned_back(x: Tensor, angles: Tensor) -> Tensor:
    return halves(x, -angles)


@misconception(
    "rope_halves_in",
    replaces="apply_rope",
    says="You pair feature i with feature i + d_k / 2, but put the results in the places 2i and "
    "2i + 1. Take each pair from these places, too: neighbours are a pair.",
    hint=3,
)
def halves_in(x: Tensor, angles: Tensor) -> Tensor:
    cos, sin = _cos_sin(x, angles)
    a, b = x.chunk(2, dim=-1)
    return _interleaved(a * cos - b * sin, b * cos + a * sin)


@misconception(
    "rope_partners_in_halves",
    replaces="apply_rope",
    says="You put all -b in front of all a before you multiply by the sines. Each belongs in the "
    "place of its partner, -b a -b a: stack them along a new last axis and flatten it.",
    hint=4,
)
def partners_in_halves(x: Tensor, angles: Tensor) -> Tensor:
    cos, sin = (each.repeat_interleave(2, dim=-1) for each in _cos_sin(x, angles))
    a, b = x[..., ::2], x[..., 1::2]
    return x * cos + torch.cat((-b, a), dim=-1) * sin


@misconception(
    "rope_halves_by_neighbours_angles",
    replaces="apply_rope",
    says="You mix two conventions: you pair feature i with feature i + d_k / 2, but give features "
    "2i and 2i + 1 the same angle. Here features 2i and 2i + 1 are a pair.",
    hint=3,
)
def halves_by_neighbours_angles(x: Tensor, angles: Tensor) -> Tensor:
    cos, sin = (each.repeat_interleave(2, dim=-1) for each in _cos_sin(x, angles))
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


@misconception(
    "rope_neighbours_by_halves_angles",
    replaces="apply_rope",
    says="You mix two conventions: you pair neighbours, but lay out cos and sin as for pairs of "
    "feature i and feature i + d_k / 2. Each angle must stand twice in a row: a a b b, not a b "
    "a b.",
    hint=4,
)
def neighbours_by_halves_angles(x: Tensor, angles: Tensor) -> Tensor:
    cos, sin = (torch.cat((each, each), dim=-1) for each in _cos_sin(x, angles))
    a, b = x[..., ::2], x[..., 1::2]
    return x * cos + _interleaved(-b, a) * sin


@misconception(
    "rope_left_in_halves",
    replaces="apply_rope",
    says="You turn neighbours, but put all first features before all second ones. Put each number "
    "back in the place it came from.",
    hint=5,
)
def left_in_halves(x: Tensor, angles: Tensor) -> Tensor:
    turned = _turn(x, angles)
    return torch.cat((turned[..., ::2], turned[..., 1::2]), dim=-1)


@misconception(
    "rope_mirror",
    replaces="apply_rope",
    says="Both of your signs are plus, which is no rotation: pairs change their length. Subtract "
    "one of the two sines.",
    hint=4,
)
def mirror(x: Tensor, angles: Tensor) -> Tensor:
    cos, sin = _cos_sin(x, angles)
    a, b = x[..., ::2], x[..., 1::2]
    return _interleaved(a * cos + b * sin, b * cos + a * sin)


@misconception(
    "rope_both_minus",
    replaces="apply_rope",
    says="Both of your signs are minus, which is no rotation: pairs change their length. Add one "
    "of the two sines.",
    hint=4,
)
def both_minus(x: Tensor, angles: Tensor) -> Tensor:
    cos, sin = _cos_sin(x, angles)
    a, b = x[..., ::2], x[..., 1::2]
    return _interleaved(a * cos - b * sin, b * cos - a * sin)


@misconception(
    "rope_mirrored_second",
    replaces="apply_rope",
    says="The second number of a pair needs a plus: a sin + b cos. With a minus the pair is "
    "mirrored, not turned, and even an angle of 0 changes it.",
    hint=4,
)
def mirrored_second(x: Tensor, angles: Tensor) -> Tensor:
    cos, sin = _cos_sin(x, angles)
    a, b = x[..., ::2], x[..., 1::2]
    return _interleaved(a * cos - b * sin, a * sin - b * cos)


@misconception(
    "rope_cos_and_sin_swapped",
    replaces="apply_rope",
    says="You swapped sine and cosine, so that an angle of 0 turns by a right angle.",
    hint=4,
)
def cos_and_sin_swapped(x: Tensor, angles: Tensor) -> Tensor:
    sin, cos = _cos_sin(x, angles)
    a, b = x[..., ::2], x[..., 1::2]
    return _interleaved(a * cos - b * sin, b * cos + a * sin)


@misconception(
    "rope_new_a_for_b",
    replaces="apply_rope",
    says="You compute the second number of a pair from the first after turning that. Both need "
    "the old pair.",
    hint=4,
)
def new_a_for_b(x: Tensor, angles: Tensor) -> Tensor:
    cos, sin = _cos_sin(x, angles)
    b = x[..., 1::2]
    a = x[..., ::2] * cos - b * sin
    return _interleaved(a, b * cos + a * sin)


@misconception(
    "rope_in_place",
    replaces="apply_rope",
    says="You write the turned pairs into x itself, which belongs to the caller: return a new "
    "tensor.",
    hint=5,
)
def in_place(x: Tensor, angles: Tensor) -> Tensor:
    turned = _turn(x, angles)
    with torch.no_grad():
        x.copy_(turned)
    return turned


@misconception(
    "rope_turns_by_head",
    replaces="apply_rope",
    says="You line the angles up with the heads. The angles' first axis counts tokens, as does "
    "x's last axis but one: broadcasting from the right fits them.",
    hint=3,
)
def turns_by_head(x: Tensor, angles: Tensor) -> Tensor:
    heads = torch.arange(x.shape[1]) % len(angles)
    return _turn(x, angles[heads][:, None])


@misconception(
    "rope_dtype_of_angles",
    replaces="apply_rope",
    says="Your result takes its dtype from the angles: float32 from float16, float64 from "
    "float32. Convert cosine and sine to the dtype of x.",
    hint=4,
)
def dtype_of_angles(x: Tensor, angles: Tensor) -> Tensor:
    a, b, cos, sin = x[..., ::2], x[..., 1::2], angles.cos(), angles.sin()
    cos, sin = cos.to(x.device), sin.to(x.device)
    return _interleaved(a * cos - b * sin, b * cos + a * sin)


@misconception(
    "rope_added",
    replaces="apply_rope",
    says="You add sines and cosines to x, as the first transformer did with its inputs. Rotate "
    "the pairs instead: multiply, so that their lengths stay the same.",
    hint=4,
)
def added(x: Tensor, angles: Tensor) -> Tensor:
    cos, sin = _cos_sin(x, angles)
    return x + _interleaved(sin, cos)


@symptom(
    "rope_without_partner",
    of="apply_rope",
    says="Your numbers are those of x, each times its own cos plus or minus its own sin. A turn "
    "mixes the two of a pair: each result takes a cos of one and a sin of the other.",
    hint=4,
)
def without_partner(got: Tensor, expected: Tensor, x: Tensor, angles: Tensor) -> bool:
    cos, sin = (x * each.repeat_interleave(2, dim=-1) for each in _cos_sin(x, angles))
    return torch.allclose((got - cos).abs(), sin.abs(), 1e-4, 1e-5)


# The module


class _Base(Attention):
    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float | None = None,
        bias: bool = True,
        base: float = 10000.0,
    ) -> None:
        super().__init__(d_model, num_heads, dropout, bias)
        self.base = base

    def check(self, *sizes: int) -> None:
        super().check(*sizes)
        d_model, num_heads = sizes
        if d_model // num_heads % 2 != 0:
            raise ValueError("every head needs an even number of features")

    def heads(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.turned(*super().heads(q, k, v))

    def turned(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.turn(q), self.turn(k), v

    def turn(self, x: Tensor, offset: int = 0) -> Tensor:
        return _turn(x, _angles(x.shape[2], self.d_k, self.base, offset))


usual = usual_mistakes(
    _Base,
    "RotaryMultiHeadAttention",
    "rope",
    without=("dropout_on_heads", "heads_attend_to_heads"),
    check=None,
    bias=None,
    start=None,
    inputs=None,
    layers=None,
    heads=None,
    scale=None,
    mask=6,
    softmax=None,
    blocked=None,
    dropout=None,
)


@misconception(
    "rope_nothing_turned",
    replaces="RotaryMultiHeadAttention",
    says="Your results are those of stage 6: positions have no effect, so your module sees a set "
    "of tokens without an order. Turn each query and key by its token's position.",
    hint=6,
)
class NothingTurned(_Base):
    def turned(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return q, k, v


@misconception(
    "rope_queries_only",
    replaces="RotaryMultiHeadAttention",
    says="You turn the queries but not the keys, so scores depend on where the query is. Turn "
    "both, and they depend on the distance.",
    hint=6,
)
class QueriesOnly(_Base):
    def turned(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.turn(q), k, v


@misconception(
    "rope_keys_only",
    replaces="RotaryMultiHeadAttention",
    says="You turn the keys but not the queries, so scores depend on where the key is. Turn both, "
    "and they depend on the distance.",
    hint=6,
)
class KeysOnly(_Base):
    def turned(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return q, self.turn(k), v


@misconception(
    "rope_speeds_of_d_model",
    replaces="RotaryMultiHeadAttention",
    says="You compute the speeds for all d_model features and use the first of them, so the pairs "
    "of a head turn too fast. A head has d_k features: compute them for d_k.",
    hint=6,
)
class SpeedsOfDModel(_Base):
    def turn(self, x: Tensor, offset: int = 0) -> Tensor:
        angles = _angles(x.shape[2], self.num_heads * self.d_k, self.base, offset)
        return _turn(x, angles[:, : self.d_k // 2])


@misconception(
    "rope_values_too",
    replaces="RotaryMultiHeadAttention",
    says="You turn the values as well. Positions are only for comparing queries with keys; leave "
    "the values as they are.",
    hint=6,
)
class ValuesToo(_Base):
    def turned(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.turn(q), self.turn(k), self.turn(v)


@misconception(
    "rope_before_the_split",
    replaces="RotaryMultiHeadAttention",
    says="You turn all D features before you split them, so later heads have only slow pairs. "
    "Split first: then every head has pairs of every speed.",
    hint=6,
)
class BeforeTheSplit(_Base):
    def heads(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.split(self.whole(q)), self.split(self.whole(k)), self.split(v)

    def whole(self, x: Tensor) -> Tensor:
        return _turn(x, _angles(x.shape[1], x.shape[2], self.base))


@misconception(
    "rope_before_the_layers",
    replaces="RotaryMultiHeadAttention",
    says="You turn the inputs before w_q and w_k, which mix all pairs again. Turn last, right "
    "before the scores.",
    hint=6,
)
class BeforeTheLayers(BeforeTheSplit):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return super().project(self.whole(query), self.whole(key), value)

    def heads(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.split(q), self.split(k), self.split(v)


@misconception(
    "rope_queries_at_the_end",
    replaces="RotaryMultiHeadAttention",
    says="You place the queries at the end of the keys, as a decoder with a cache needs it. Here "
    "the first query and the first key are both at position 0.",
    hint=6,
)
class QueriesAtTheEnd(_Base):
    def turned(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        behind = max(0, k.shape[2] - q.shape[2])
        return self.turn(q, behind), self.turn(k), v


@misconception(
    "rope_always_10000",
    replaces="RotaryMultiHeadAttention",
    says="Your module takes a base, but its angles are always those of base 10000. Pass it on to "
    "rope_angles, as its base.",
    hint=6,
)
class Always10000(_Base):
    def turn(self, x: Tensor, offset: int = 0) -> Tensor:
        return _turn(x, _angles(x.shape[2], self.d_k))


@misconception(
    "rope_module_accepts_odd",
    replaces="RotaryMultiHeadAttention",
    says="Your constructor accepts heads with an odd number of features, so the error comes only "
    "with the first call. Raise a ValueError in the constructor.",
    hint=6,
)
class ModuleAcceptsOdd(_Base):
    def check(self, *sizes: int) -> None:
        Attention.check(self, *sizes)


@misconception(
    "rope_short_table",
    replaces="RotaryMultiHeadAttention",
    says="Your module prepares its angles for 512 tokens and fails for more. Compute as many as "
    "each call needs.",
    hint=6,
)
class ShortTable(_Base):
    def turn(self, x: Tensor, offset: int = 0) -> Tensor:
        return _turn(x, _angles(512, self.d_k, self.base)[: x.shape[2]])


@misconception(
    "rope_table_saved",
    replaces="RotaryMultiHeadAttention",
    says="You register the angles as a buffer, so they are saved with the weights and a strict "
    "load fails. They follow from d_k and base: compute them, or pass persistent=False.",
    hint=6,
)
class TableSaved(_Base):
    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        base: float = 10000.0,
    ) -> None:
        super().__init__(d_model, num_heads, dropout, bias, base)
        self.register_buffer("angles", _angles(1024, self.d_k, base))
