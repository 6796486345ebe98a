"""Known misconceptions of the stage kv_cache: what people really write, and a sentence.

Those that other stages share are in _attention.py. `_Base` is a correct module cut into steps; each
misconception replaces one or two of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from _attention import Attention, NoScale, usual_mistakes, values_from_heads
from torch import Tensor

from grader.misconceptions import Value, misconception, values


class _Base(Attention):
    def __init__(self, d_model: int, num_heads: int, bias: bool = True) -> None:
        super().__init__(d_model, num_heads, 0.0, bias)

    def forward(self, x: Tensor, cache: Any = None) -> Any:
        q, k, v = self.heads(*self.project(x, x, x))
        k, v = self.join(k, v, cache)  # (B, H, T, d_k)
        weights = self.weights(self.hide(self.scores(q, k), cache))  # (B, H, N, T)
        output = self.out(self.combine(weights @ v), x)  # (B, N, D)
        return self.result(output, k, v)

    def join(self, k: Tensor, v: Tensor, cache: Any) -> tuple[Tensor, Tensor]:
        if cache is None:
            return k, v
        return torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)

    def hide(self, scores: Tensor, cache: Any) -> Tensor:
        new, everything = scores.shape[-2:]
        return self.blocked_from(scores, everything - new + 1)

    def blocked_from(self, scores: Tensor, diagonal: int) -> Tensor:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device)
        return scores.masked_fill(later.triu(diagonal), float("-inf"))

    def result(self, output: Tensor, k: Tensor, v: Tensor) -> Any:
        return output, (k, v)

    def weights(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, dim=-1)


@values(of="CachedSelfAttention")
def way(module: Any, x: Tensor, cache: Any = None) -> Iterator[Value | tuple[Value, ...]]:
    """The values on the way to the output."""
    B, N, D = x.shape
    H = module.num_heads

    def heads(x: Tensor) -> Tensor:
        return x.reshape(B, N, H, D // H).transpose(1, 2)  # (B, H, N, d_k)

    q, k, v = module.w_q(x), module.w_k(x), module.w_v(x)
    yield (
        Value("the projected queries", q, "B N D"),
        Value("the projected keys", k, "B N D"),
        Value("the projected values", v, "B N D"),
    )
    q, k, v = heads(q), heads(k), heads(v)
    yield (
        Value("the queries' heads", q, "B H N d_k"),
        Value("the keys' heads", k, "B H N d_k"),
        Value("the values' heads", v, "B H N d_k"),
    )
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        yield (
            Value("the keys of old and new tokens", k, "B H T d_k"),
            Value("the values of old and new tokens", v, "B H T d_k"),
        )
    T = k.shape[2]
    mask = torch.ones(N, T, dtype=torch.bool, device=x.device).tril(T - N)
    yield from values_from_heads(module, q, k, v, mask, scores_axes="B H N T", tokens="N")


usual = usual_mistakes(
    _Base,
    "CachedSelfAttention",
    "kv",
    without=(
        "scaled_after_softmax",
        "value_through_w_k",
    ),
    check=6,
    bias=6,
    start=6,
    layers=2,
    heads=6,
    scale=6,
    softmax=6,
)


# Who sees whom


@misconception(
    "kv_no_mask",
    replaces="CachedSelfAttention",
    says="Your new tokens also see those that come after them in the same call. They may see all "
    "old tokens, but no later ones.",
    hint=4,
)
class NoMask(_Base):
    def hide(self, scores: Tensor, cache: Any) -> Tensor:
        return scores


@misconception(
    "kv_mask_only_at_first",
    replaces="CachedSelfAttention",
    says="With a cache you block nothing. That is right for one new token, but of several the "
    "first ones see the later ones: block those.",
    hint=4,
)
class MaskOnlyAtFirst(_Base):
    def hide(self, scores: Tensor, cache: Any) -> Tensor:
        return scores if cache is not None else super().hide(scores, cache)


@misconception(
    "kv_mask_upper_left",
    replaces="CachedSelfAttention",
    says="Your triangle starts in the upper left corner, so new tokens see only the first old "
    "ones. New tokens are the last rows of the big triangle over all tokens.",
    hint=5,
)
class MaskUpperLeft(_Base):
    def hide(self, scores: Tensor, cache: Any) -> Tensor:
        return self.blocked_from(scores, 1)


@misconception(
    "kv_is_causal_unless_single",
    replaces="CachedSelfAttention",
    says="For several new tokens after old ones your triangle starts in the upper left corner, as "
    "is_causal does. The new tokens' own keys are in the last columns.",
    hint=5,
)
class IsCausalUnlessSingle(_Base):
    def hide(self, scores: Tensor, cache: Any) -> Tensor:
        return scores if scores.shape[-2] == 1 else self.blocked_from(scores, 1)


@misconception(
    "kv_mask_square",
    replaces="CachedSelfAttention",
    says="Your mask has as many columns as there are new tokens. The keys are all tokens, old and "
    "new, so it needs N rows and T columns.",
    hint=5,
)
class MaskSquare(_Base):
    def hide(self, scores: Tensor, cache: Any) -> Tensor:
        new = scores.shape[-2]
        later = torch.ones(new, new, dtype=torch.bool, device=scores.device).triu(1)
        return scores.masked_fill(later, float("-inf"))


@misconception(
    "kv_one_ahead",
    replaces="CachedSelfAttention",
    says="Each of your new tokens also sees the next one. It may see itself and no later one.",
    hint=5,
)
class OneAhead(_Base):
    def hide(self, scores: Tensor, cache: Any) -> Tensor:
        new, everything = scores.shape[-2:]
        return self.blocked_from(scores, everything - new + 2)


@misconception(
    "kv_not_itself",
    replaces="CachedSelfAttention",
    says="After old tokens, your new ones do not see themselves. The diagonal is allowed.",
    hint=5,
)
class NotItself(_Base):
    def hide(self, scores: Tensor, cache: Any) -> Tensor:
        new, everything = scores.shape[-2:]
        return self.blocked_from(scores, everything - new + (cache is None))


class _SomeSeeNothing(_Base):
    """Queries that may see nothing get zeros, as from the course's own attention_weights."""

    def forward(self, x: Tensor, cache: Any = None) -> Any:
        q, k, v = (self.split(layer(x)) for layer in (self.w_q, self.w_k, self.w_v))
        k, v = self.join(k, v, cache)
        scores = self.scores(q, k)
        allowed = self.allowed(scores)
        sees = allowed.any(-1, keepdim=True)
        weights = scores.masked_fill(~allowed & sees, float("-inf")).softmax(-1) * sees
        return self.result(self.w_o((weights @ v).transpose(1, 2).flatten(2)), k, v)

    def allowed(self, scores: Tensor) -> Tensor:
        raise NotImplementedError


@misconception(
    "kv_never_itself",
    replaces="CachedSelfAttention",
    says="Your tokens do not see themselves, with or without a cache, so the very first one sees "
    "nothing. The diagonal is allowed.",
    hint=5,
)
class NeverItself(_SomeSeeNothing):
    def allowed(self, scores: Tensor) -> Tensor:
        new, everything = scores.shape[-2:]
        ones = torch.ones(new, everything, dtype=torch.bool, device=scores.device)
        return ones.tril(everything - new - 1)


@misconception(
    "kv_never_itself_nan",
    replaces="CachedSelfAttention",
    says="Your tokens do not see themselves, with or without a cache, so the very first one sees "
    "nothing: NaN. The diagonal is allowed.",
    hint=5,
)
class NeverItselfNan(_Base):
    def hide(self, scores: Tensor, cache: Any) -> Tensor:
        new, everything = scores.shape[-2:]
        return self.blocked_from(scores, everything - new)


@misconception(
    "kv_inverted",
    replaces="CachedSelfAttention",
    says="You block what is allowed: each of your new tokens sees the later ones alone. It may see "
    "all tokens before it, and itself.",
    hint=5,
)
class Inverted(_SomeSeeNothing):
    def allowed(self, scores: Tensor) -> Tensor:
        new, everything = scores.shape[-2:]
        ones = torch.ones(new, everything, dtype=torch.bool, device=scores.device)
        return ones.triu(everything - new + 1)


# What the cache holds


@misconception(
    "kv_new_first",
    replaces="CachedSelfAttention",
    says="You put the new tokens before the old ones. The cache goes from the oldest to the "
    "newest.",
    hint=3,
)
class NewFirst(_Base):
    def join(self, k: Tensor, v: Tensor, cache: Any) -> tuple[Tensor, Tensor]:
        if cache is None:
            return k, v
        return torch.cat([k, cache[0]], dim=2), torch.cat([v, cache[1]], dim=2)


@misconception(
    "kv_joined_along_heads",
    replaces="CachedSelfAttention",
    says="You join old and new along the heads. In [B, H, T, d_k] the tokens are the third axis: "
    "dim=2, or dim=-2.",
    hint=3,
)
class JoinedAlongHeads(_Base):
    def join(self, k: Tensor, v: Tensor, cache: Any) -> tuple[Tensor, Tensor]:
        if cache is None:
            return k, v
        return torch.cat([cache[0], k], dim=1), torch.cat([cache[1], v], dim=1)


@misconception(
    "kv_v_before_k",
    replaces="CachedSelfAttention",
    says="Your cache is (v, k). Keys come first, in what you take and in what you return.",
    hint=2,
)
class VBeforeK(_Base):
    def join(self, k: Tensor, v: Tensor, cache: Any) -> tuple[Tensor, Tensor]:
        return super().join(k, v, None if cache is None else cache[::-1])

    def result(self, output: Tensor, k: Tensor, v: Tensor) -> Any:
        return output, (v, k)


@misconception(
    "kv_v_taken_first",
    replaces="CachedSelfAttention",
    says="You take the cache apart as (v, k), but return it as (k, v), so old keys become values "
    "and old values keys. Keys come first.",
    hint=2,
)
class VTakenFirst(_Base):
    def join(self, k: Tensor, v: Tensor, cache: Any) -> tuple[Tensor, Tensor]:
        return super().join(k, v, None if cache is None else cache[::-1])


@misconception(
    "kv_v_returned_first",
    replaces="CachedSelfAttention",
    says="You return the cache as (v, k), but take it as (k, v), so the next call mixes them up. "
    "Keys come first.",
    hint=2,
)
class VReturnedFirst(_Base):
    def result(self, output: Tensor, k: Tensor, v: Tensor) -> Any:
        return output, (v, k)


@misconception(
    "kv_only_new_cached",
    replaces="CachedSelfAttention",
    says="You return only the new tokens' keys and values, so the next call has forgotten the old "
    "ones. The cache must hold all tokens so far.",
    hint=3,
)
class OnlyNewCached(_Base):
    def join(self, k: Tensor, v: Tensor, cache: Any) -> tuple[Tensor, Tensor]:
        self.new = (k, v)
        return super().join(k, v, cache)

    def result(self, output: Tensor, k: Tensor, v: Tensor) -> Any:
        return output, self.new


@misconception(
    "kv_old_returned",
    replaces="CachedSelfAttention",
    says="Given a cache you return that same cache, without the new tokens. Return old and new "
    "together.",
    hint=3,
)
class OldReturned(_Base):
    def forward(self, x: Tensor, cache: Any = None) -> Any:
        output, joined = super().forward(x, cache)
        return output, joined if cache is None else cache


@misconception(
    "kv_not_split",
    replaces="CachedSelfAttention",
    says="You cache keys and values before they are split: [B, T, D]. The cache must hold heads: "
    "[B, H, T, d_k].",
    hint=2,
)
class NotSplit(_Base):
    def join(self, k: Tensor, v: Tensor, cache: Any) -> tuple[Tensor, Tensor]:
        if cache is None:
            return k, v
        _, (new_k, new_v) = self.result(k, k, v)
        joined = torch.cat([cache[0], new_k], dim=1), torch.cat([cache[1], new_v], dim=1)
        return self.split(joined[0]), self.split(joined[1])

    def result(self, output: Tensor, k: Tensor, v: Tensor) -> Any:
        return output, tuple(heads.transpose(1, 2).flatten(2) for heads in (k, v))


@misconception(
    "kv_tokens_first",
    replaces="CachedSelfAttention",
    says="Your cache is [B, T, H, d_k]. Cache the heads as split_heads gives them, [B, H, T, d_k].",
    hint=2,
)
class TokensFirst(_Base):
    def join(self, k: Tensor, v: Tensor, cache: Any) -> tuple[Tensor, Tensor]:
        return super().join(k, v, cache and tuple(old.transpose(1, 2) for old in cache))

    def result(self, output: Tensor, k: Tensor, v: Tensor) -> Any:
        return output, (k.transpose(1, 2), v.transpose(1, 2))


@misconception(
    "kv_inputs_cached",
    replaces="CachedSelfAttention",
    says="You keep the tokens and project all of them again in every call, which is the work that "
    "a cache should save. Keep their keys and values.",
    hint=2,
)
class InputsCached(_Base):
    def forward(self, x: Tensor, cache: Any = None) -> Any:
        seen = x if cache is None else torch.cat([cache[0], x], dim=1)
        output, _ = super().forward(seen)
        return output[:, -x.shape[1] :], (seen, seen)


@misconception(
    "kv_scaled_keys",
    replaces="CachedSelfAttention",
    says="The keys in your cache are already divided by sqrt(d_k). Cache them as they come from "
    "w_k and scale the scores.",
    hint=2,
)
class ScaledKeys(NoScale, _Base):
    def join(self, k: Tensor, v: Tensor, cache: Any) -> tuple[Tensor, Tensor]:
        return super().join(k / math.sqrt(self.d_k), v, cache)


@misconception(
    "kv_projected_twice",
    replaces="CachedSelfAttention",
    says="You send the cached keys and values through w_k and w_v again. Project only the new "
    "tokens.",
    hint=1,
)
class ProjectedTwice(_Base):
    def join(self, k: Tensor, v: Tensor, cache: Any) -> tuple[Tensor, Tensor]:
        if cache is None:
            return k, v
        old_k, old_v = (heads.transpose(1, 2).flatten(2) for heads in cache)
        return super().join(k, v, (self.split(self.w_k(old_k)), self.split(self.w_v(old_v))))


@misconception(
    "kv_list",
    replaces="CachedSelfAttention",
    says="Your cache is a list, which any other code can change. Return a tuple (k, v).",
    hint=2,
)
class AsList(_Base):
    def result(self, output: Tensor, k: Tensor, v: Tensor) -> Any:
        return output, [k, v]


@misconception(
    "kv_stacked",
    replaces="CachedSelfAttention",
    says="Your cache is one tensor with keys and values stacked. Return a tuple of two tensors.",
    hint=2,
)
class Stacked(_Base):
    def result(self, output: Tensor, k: Tensor, v: Tensor) -> Any:
        return output, torch.stack([k, v])


@misconception(
    "kv_output_only",
    replaces="CachedSelfAttention",
    says="You return only the output. The caller needs the cache for the next call: return a "
    "pair, output first.",
    hint=2,
)
class OutputOnly(_Base):
    def result(self, output: Tensor, k: Tensor, v: Tensor) -> Any:
        return output


@misconception(
    "kv_three_results",
    replaces="CachedSelfAttention",
    says="You return three results: output, k and v. Return two: output, (k, v).",
    hint=2,
)
class ThreeResults(_Base):
    def result(self, output: Tensor, k: Tensor, v: Tensor) -> Any:
        return output, k, v


# Whose the cache is


@misconception(
    "kv_kept_on_self",
    replaces="CachedSelfAttention",
    says="You continue from keys and values that you keep in the module, whatever cache you are "
    "given. Use the argument; the module must not remember anything.",
    hint=4,
)
class KeptOnSelf(_Base):
    kept: tuple[Tensor, Tensor] | None = None

    def join(self, k: Tensor, v: Tensor, cache: Any) -> tuple[Tensor, Tensor]:
        self.kept = super().join(k, v, None if cache is None else self.kept)
        return self.kept


@misconception(
    "kv_kept_on_self_alone",
    replaces="CachedSelfAttention",
    says="With a cache you continue from keys and values that you keep in the module, and for "
    "a new module there are none. Use the argument; the module must not remember anything.",
    hint=4,
)
class KeptOnSelfAlone(_Base):
    kept: Any = (None, None)

    def join(self, k: Tensor, v: Tensor, cache: Any) -> tuple[Tensor, Tensor]:
        self.kept = super().join(k, v, None if cache is None else self.kept)
        return self.kept


@misconception(
    "kv_goes_on_by_itself",
    replaces="CachedSelfAttention",
    says="Without a cache you continue from the last call's. No cache means a new text: keep "
    "nothing on self.",
    hint=4,
)
class GoesOnByItself(_Base):
    kept: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor, cache: Any = None) -> Any:
        kept = self.kept
        if cache is None and kept is not None and len(kept[0]) == len(x):
            cache = kept
        output, joined = super().forward(x, cache)
        self.kept = (joined[0].detach(), joined[1].detach())
        return output, joined


@misconception(
    "kv_overwrites",
    replaces="CachedSelfAttention",
    says="You write into the caller's own cache, so they cannot continue from it a second time. "
    "Put old and new together in new tensors.",
    hint=3,
)
class Overwrites(_Base):
    def join(self, k: Tensor, v: Tensor, cache: Any) -> tuple[Tensor, Tensor]:
        joined = super().join(k, v, cache)
        if cache is not None:  # a ring: the newest token takes the place of the oldest
            for old, everything in zip(cache, joined, strict=True):
                old[:, :, 0] = everything[:, :, -1].detach()
        return joined


@misconception(
    "kv_returned_detached",
    replaces="CachedSelfAttention",
    says="No gradient flows through the cache that you return, so old tokens learn nothing from "
    "the new ones that read them. Return keys and values as they are.",
)
class ReturnedDetached(_Base):
    def result(self, output: Tensor, k: Tensor, v: Tensor) -> Any:
        return super().result(output, k.detach(), v.detach())


@misconception(
    "kv_keys_and_values_detached",
    replaces="CachedSelfAttention",
    says="No gradient reaches keys and values, so w_k and w_v never learn. Leave them in the "
    "graph: no detach(), no .data, no torch.no_grad().",
)
class KeysAndValuesDetached(_Base):
    def join(self, k: Tensor, v: Tensor, cache: Any) -> tuple[Tensor, Tensor]:
        return super().join(k.detach(), v.detach(), cache)


# The module


@misconception(
    "kv_dropout",
    replaces="CachedSelfAttention",
    says="You drop weights while the module is in training mode. This one has no dropout.",
)
class Dropout(_Base):
    def hide(self, scores: Tensor, cache: Any) -> Tensor:
        return F.dropout(super().hide(scores, cache), 0.1, self.training)
