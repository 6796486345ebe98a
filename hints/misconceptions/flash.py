"""Known misconceptions of the stage flash: what people really write, and a sentence for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from grader.misconceptions import misconception, symptom


def _lower(q: Tensor, k: Tensor, diagonal: int = 0) -> Tensor:
    """True for keys that are not later than the query, (Tq, Tk)."""
    ones = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device)
    return ones.tril(diagonal)


def _scores(q: Tensor, k: Tensor, mask: Tensor | None, *, causal: bool) -> Tensor:
    """The scaled scores in float64, -inf where they are blocked, (B, H, Tq, Tk)."""
    scores = q.double() @ k.double().mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -math.inf)
    return scores.masked_fill(~_lower(q, k), -math.inf) if causal else scores


class _Call(NamedTuple):
    """The arguments of one call."""

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None = None
    causal: bool = False
    dropout_p: float = 0.0

    @property
    def scores(self) -> Tensor:
        """The scaled scores in float64, -inf where they are blocked, (B, H, Tq, Tk)."""
        return _scores(self.q, self.k, self.mask, causal=self.causal)

    def right(self, **others: Any) -> Tensor:
        """What the fused kernel gives, the two kinds of mask joined, with `others` in place."""
        q, k, v, mask, causal, dropout_p = self._replace(**others)
        if mask is None:
            return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout_p, is_causal=causal)
        allowed = mask != 0
        if causal:
            allowed = allowed & _lower(q, k)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=dropout_p)

    def filled(self, number: float) -> Tensor:
        """As the right one, but what the mask blocks gets this number added to its score."""
        q, k, v, mask, causal, dropout_p = self
        if mask is None:
            return self.right()
        blocked = mask == 0
        if causal:
            blocked = blocked | ~_lower(q, k)
        bias = torch.zeros(blocked.shape, dtype=q.dtype, device=q.device)
        bias = bias.masked_fill(blocked, number)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=dropout_p)


def _wrong(id: str, *, says: str, hint: int) -> Callable[[Callable[[_Call], Tensor]], Any]:
    """A misconception that is a function of a call."""

    def marked(answer: Callable[[_Call], Tensor]) -> Any:
        @misconception(id, replaces="flash_attention", says=says, hint=hint)
        def flash_attention(
            q: Tensor,
            k: Tensor,
            v: Tensor,
            mask: Tensor | None = None,
            causal: bool = False,
            dropout_p: float = 0.0,
        ) -> Tensor:
            return answer(_Call(q, k, v, mask, causal, dropout_p))

        return flash_attention

    return marked


def _seen(
    id: str, *, says: str, hint: int
) -> Callable[[Callable[[Tensor, Tensor, _Call], bool]], Any]:
    """A symptom of a wrong result of the right shape, without dropout, as a function of a call."""

    def marked(holds: Callable[[Tensor, Tensor, _Call], bool]) -> Any:
        @symptom(id, of="flash_attention", says=says, hint=hint)
        def judged(got: Tensor, expected: Tensor, **given: Any) -> bool:
            call = _Call(**given)
            if got.shape != expected.shape or call.dropout_p:
                return False
            if torch.allclose(got, expected, 1e-3, 1e-5):
                return False  # something else is wrong
            return holds(got, expected, call)

        return judged

    return marked


@_wrong(
    "flash_plain",
    says="You compute all scores at once: right numbers, but a T x T matrix of them. Use the "
    "fused function, or blocks.",
    hint=1,
)
def flash_plain(call: _Call) -> Tensor:
    q, k, v, mask, causal, dropout_p = call
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    if causal:
        scores = scores.masked_fill(~_lower(q, k), float("-inf"))
    blocked = (scores == float("-inf")).all(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(blocked, 0.0), dim=-1).masked_fill(blocked, 0.0)
    return F.dropout(weights, dropout_p) @ v


@_wrong(
    "flash_causal_matrix",
    says="You make a T x T mask for causal=True even if the caller gives none. "
    "is_causal=True needs no matrix.",
    hint=6,
)
def flash_causal_matrix(call: _Call) -> Tensor:
    if call.causal and call.mask is None:
        return call.right(mask=_lower(call.q, call.k))
    return call.right()


@_wrong(
    "flash_numbers_passed_on",
    says="You pass on a mask of numbers unchanged. F.scaled_dot_product_attention adds floats to "
    "the scores and refuses integers: make the mask boolean first.",
    hint=3,
)
def flash_numbers_passed_on(call: _Call) -> Tensor:
    q, k, v, mask, causal, dropout_p = call
    if mask is None or causal:
        return call.right()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout_p)


@_wrong(
    "flash_mask_inverted",
    says="You invert the mask. nn.MultiheadAttention needs that; F.scaled_dot_product_attention "
    "reads True as allowed, as this course does.",
    hint=3,
)
def flash_mask_inverted(call: _Call) -> Tensor:
    return call.right(mask=None if call.mask is None else call.mask == 0)


@_wrong(
    "flash_mask_ignored",
    says="Your mask has no effect. Block what it blocks, in each block of keys if you go block by "
    "block.",
    hint=3,
)
def flash_mask_ignored(call: _Call) -> Tensor:
    return call.right(mask=None)


@_wrong(
    "flash_all_seen",
    says="Neither mask nor causal has an effect: each query sees all keys. A pair is allowed only "
    "if both allow it.",
    hint=3,
)
def flash_all_seen(call: _Call) -> Tensor:
    return call.right(mask=None, causal=False)


@_wrong(
    "flash_causal_ignored",
    says="causal=True has no effect here: each query sees the later keys too. Pass it on as "
    "is_causal, or block these keys yourself.",
    hint=4,
)
def flash_causal_ignored(call: _Call) -> Tensor:
    return call.right(causal=False)


@_wrong(
    "flash_causal_needs_mask",
    says="Without a mask causal=True has no effect: each query sees the later keys too. Pass it on "
    "as is_causal where there is no mask.",
    hint=4,
)
def flash_causal_needs_mask(call: _Call) -> Tensor:
    return call.right(causal=call.causal and call.mask is not None)


@_wrong(
    "flash_mask_wins",
    says="You ignore causal if there is a mask. A pair is allowed only if both allow it.",
    hint=4,
)
def flash_mask_wins(call: _Call) -> Tensor:
    return call.right(causal=call.causal and call.mask is None)


@_wrong(
    "flash_causal_wins",
    says="With causal=True you forget the mask. A pair is allowed only if both allow it.",
    hint=4,
)
def flash_causal_wins(call: _Call) -> Tensor:
    return call.right(mask=None if call.causal else call.mask)


@_wrong(
    "flash_joined_with_or",
    says="You join mask and causal with `or`, so a pair that one of them blocks is still seen.",
    hint=4,
)
def flash_joined_with_or(call: _Call) -> Tensor:
    if call.mask is None or not call.causal:
        return call.right()
    return call.right(mask=(call.mask != 0) | _lower(call.q, call.k), causal=False)


@_wrong(
    "flash_not_itself",
    says="With a mask, your causal leaves out the diagonal: a token does not see itself.",
    hint=4,
)
def flash_not_itself(call: _Call) -> Tensor:
    if call.mask is None or not call.causal:
        return call.right()
    return call.right(mask=(call.mask != 0) & _lower(call.q, call.k, -1), causal=False)


@_wrong(
    "flash_never_itself",
    says="Your causal leaves out the diagonal, with a mask or without: a token does not see "
    "itself.",
    hint=4,
)
def flash_never_itself(call: _Call) -> Tensor:
    if not call.causal:
        return call.right()
    allowed = _lower(call.q, call.k, -1)
    both = allowed if call.mask is None else (call.mask != 0) & allowed
    return call.right(mask=both, causal=False)


@_wrong(
    "flash_scaled_twice",
    says="You divide the scores by d_k, perhaps by its root twice: "
    "F.scaled_dot_product_attention scales them itself. Scale only once.",
    hint=2,
)
def flash_scaled_twice(call: _Call) -> Tensor:
    return call.right(q=call.q / math.sqrt(call.q.shape[-1]))


@_wrong(
    "flash_not_scaled",
    says="Your scores are not scaled: they are the dot products themselves. Divide them by "
    "sqrt(d_k), as F.scaled_dot_product_attention does by default.",
    hint=2,
)
def flash_not_scaled(call: _Call) -> Tensor:
    return call.right(q=call.q * math.sqrt(call.q.shape[-1]))


@_wrong(
    "flash_scaled_up",
    says="You multiply the scores by sqrt(d_k), and they must be divided by it. The argument scale "
    "of F.scaled_dot_product_attention is a factor too; by default it is the right one.",
    hint=2,
)
def flash_scaled_up(call: _Call) -> Tensor:
    return call.right(q=call.q * call.q.shape[-1])


@_wrong(
    "flash_keys_as_values",
    says="You use the keys as values. The weights come from q and k, and what they weight is v.",
    hint=2,
)
def flash_keys_as_values(call: _Call) -> Tensor:
    return call.right(v=call.k)


@_wrong(
    "flash_powers_of_two",
    says="You take powers of 2, and the softmax takes powers of e. If you use exp2, multiply the "
    "scores by log2(e) first.",
    hint=2,
)
def flash_powers_of_two(call: _Call) -> Tensor:
    return call.right(q=call.q * math.log(2))


@_wrong(
    "flash_maximum_from_zero",
    says="Your maximum is never below 0, so every exp of a query is 0 if its scores lie far below "
    "0. Start it at -inf.",
    hint=1,
)
def flash_maximum_from_zero(call: _Call) -> Tensor:
    scores = _scores(call.q, call.k, call.mask, causal=call.causal).to(call.q.dtype)
    powers = (scores - scores.amax(-1, keepdim=True).clamp_min(0.0)).exp()
    total = powers.sum(-1, keepdim=True)
    return F.dropout(powers, call.dropout_p) @ call.v / total.masked_fill(total == 0, 1.0)


@_wrong(
    "flash_no_dropout",
    says="dropout_p has no effect. Pass it on to the function that you call. If you compute the "
    "weights yourself, drop them where they meet the values, but not in the sum that divides them.",
    hint=5,
)
def flash_no_dropout(call: _Call) -> Tensor:
    return call.right(dropout_p=0.0)


@_wrong(
    "flash_dropped_from_the_sum",
    says="You drop exponentials before you add them up, so the weights that stay sum to 1 again. "
    "The sum that divides counts all of them: drop only where they meet the values.",
    hint=5,
)
def flash_dropped_from_the_sum(call: _Call) -> Tensor:
    if not call.dropout_p:
        return call.right()
    scores = _scores(call.q, call.k, call.mask, causal=call.causal).to(call.q.dtype)
    top = scores.amax(-1, keepdim=True)
    powers = F.dropout((scores - top.masked_fill(top.isneginf(), 0.0)).exp(), call.dropout_p)
    total = powers.sum(-1, keepdim=True)
    return powers @ call.v / total.masked_fill(total == 0, 1.0)


@_wrong(
    "flash_dropout_on_output",
    says="You drop parts of the output. Dropout acts on the weights, before they meet the values.",
    hint=5,
)
def flash_dropout_on_output(call: _Call) -> Tensor:
    return F.dropout(call.right(dropout_p=0.0), call.dropout_p)


@_wrong(
    "flash_blocked_see_all",
    says="A query that may see no key sees all as if nothing were blocked, as when you add -10000. "
    "Use a boolean mask or -inf: such a row is zeros.",
    hint=3,
)
def flash_blocked_see_all(call: _Call) -> Tensor:
    return call.filled(-1e4)


@_wrong(
    "flash_blocked_mean",
    says="A query that may see no key gets the mean of all values, as when you block with -1e9. "
    "Use a boolean mask or -inf: such a row is zeros.",
    hint=3,
)
def flash_blocked_mean(call: _Call) -> Tensor:
    return call.filled(-1e9)


@_wrong(
    "flash_heads_joined",
    says="You join the heads at the end. The result keeps them apart, [B, H, Tq, d_k], like the "
    "inputs.",
    hint=2,
)
def flash_heads_joined(call: _Call) -> Tensor:
    return call.right().transpose(1, 2).flatten(2)


@_wrong(
    "flash_heads_attend",
    says="You swap heads and tokens before the kernel, so that heads attend to heads. The package "
    "flash_attn wants [B, T, H, d_k], but F.scaled_dot_product_attention takes [B, H, T, d_k], "
    "which you have already.",
    hint=2,
)
def flash_heads_attend(call: _Call) -> Tensor:
    q, k, v = (x.transpose(1, 2) for x in (call.q, call.k, call.v))
    return call.right(q=q, k=k, v=v).transpose(1, 2)


@_wrong(
    "flash_mask_in_place",
    says="You write the causal pattern into the caller's own mask, which their next call would "
    "find changed. Make a new mask.",
    hint=4,
)
def flash_mask_in_place(call: _Call) -> Tensor:
    answer = call.right()
    if call.mask is not None and call.causal:
        call.mask.mul_(_lower(call.q, call.k))
    return answer


@_wrong(
    "flash_queries_in_place",
    says="You scale q in place, so the caller's own queries change. Make a new tensor, or leave "
    "the scale to the fused function.",
    hint=2,
)
def flash_queries_in_place(call: _Call) -> Tensor:
    answer = call.right()
    call.q.div_(math.sqrt(call.q.shape[-1]))
    return answer


# Keys of a block, as many as people take.
_BLOCKS = (
    *(*range(2, 17), *range(20, 65, 4), 50, 80, 96, 100),
    *(128, 192, 200, 256, 384, 400, 500, 512),
)


@_seen(
    "flash_mask_added",
    says="Your result is that of adding the ones and zeros of the mask to the scores, so that a "
    "blocked key only falls behind by 1. F.scaled_dot_product_attention adds a mask of numbers: "
    "make it boolean.",
    hint=3,
)
def flash_mask_added(got: Tensor, expected: Tensor, call: _Call) -> bool:
    if call.mask is None:
        return False
    plain = _scores(call.q, call.k, None, causal=False)
    later = ~_lower(call.q, call.k) if call.causal else torch.tensor(False)
    kept = plain.masked_fill(later, -math.inf) + call.mask.double()
    both = plain + call.mask.double() * ~later
    ways = (torch.softmax(scores, -1) @ call.v.double() for scores in (kept, both))
    return any(torch.allclose(got.double(), each, 1e-3, 1e-5) for each in ways)


def _from_blocks(
    got: Tensor,
    expected: Tensor,
    call: _Call,
    ways: Callable[[Tensor, Tensor, int], Iterable[Tensor]],
) -> bool:
    """Whether one of the `ways` gives the result, with blocks of some size.

    A way gets the scores, (B, H, Tq, Tk), the values, (B, H, Tk, d_k), and the size. For speed, a
    few of the wrong queries show first which sizes are worth a try.
    """
    scores = call.scores
    v = call.v.double().expand(*scores.shape[:2], -1, -1)
    few = _wrong_rows(got, expected)
    for size in (size for size in _BLOCKS if size < v.shape[2]):
        few_ways = ways(scores[few][:, None, None], v[few[:2]][:, None], size)
        of_few = any(_close(got[few], each[:, 0, 0]) for each in few_ways)
        if of_few and any(_close(got, each) for each in ways(scores, v, size)):
            return True
    return False


def _wrong_rows(got: Tensor, expected: Tensor) -> tuple[Tensor, ...]:
    """Where a few of the wrong rows are, the last axis aside."""
    wrong = ~torch.isclose(got, expected, 1e-3, 1e-5).all(-1)
    return wrong.nonzero()[:4].unbind(-1)


def _close(got: Tensor, other: Tensor) -> bool:
    return torch.allclose(got.double(), other, 1e-3, 1e-5)


def _split(scores: Tensor, v: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The scores of N blocks, (B, H, Tq, N, size), and their values, (B, H, N, size, d_k)."""
    missing = -v.shape[2] % size  # keys of the last block
    blocks = F.pad(scores, (0, missing), value=-math.inf).unflatten(-1, (-1, size))
    return blocks, F.pad(v, (0, 0, 0, missing)).unflatten(2, (-1, size))


class _Sums(NamedTuple):
    """What each of N blocks adds to the two sums, after the largest score so far is subtracted.

    That score is `largest`; times `shrinks` the sums fit the largest score of all. All are
    (B, H, Tq, N), but `mixed`, the values times their powers, is (B, H, Tq, N, d_k).
    """

    largest: Tensor
    shrinks: Tensor
    powers: Tensor
    mixed: Tensor


def _sums(scores: Tensor, v: Tensor, size: int) -> _Sums:
    blocks, values = _split(scores, v, size)
    largest = blocks.amax(-1).cummax(-1).values
    safe = largest.masked_fill(largest.isneginf(), 0.0)
    powers = torch.exp(blocks - safe[..., None])
    mixed = torch.einsum("bhqns,bhnsd->bhqnd", powers, values)
    return _Sums(largest, torch.exp(largest - safe[..., -1:]), powers.sum(-1), mixed)


def _not_rescaled(scores: Tensor, v: Tensor, size: int) -> Iterator[Tensor]:
    """A sum, or both, is not rescaled to the new largest score."""
    _, shrinks, powers, mixed = _sums(scores, v, size)
    total, total_kept = (powers * shrinks).sum(-1), powers.sum(-1)
    above, above_kept = (mixed * shrinks[..., None]).sum(-2), mixed.sum(-2)
    for each, below in (above_kept, total), (above, total_kept), (above_kept, total_kept):
        yield each / below.masked_fill(below == 0, 1.0)[..., None]


def _divided_in_each(scores: Tensor, v: Tensor, size: int) -> Iterator[Tensor]:
    """Each block divides: by a sum of its own, or all that is mixed so far by the sum so far."""
    blocks, values = _split(scores, v, size)
    weights = torch.softmax(blocks, -1).nan_to_num()
    added = torch.einsum("bhqns,bhnsd->bhqd", weights, values)
    yield added
    yield added / blocks.shape[3]
    largest, shrinks, powers, mixed = _sums(scores, v, size)
    sums = torch.logcumsumexp(powers.log() + largest, -1) - largest  # their logarithms, so far
    sums = sums.nan_to_num(0.0, neginf=0.0)  # nothing seen so far: divided by 1
    after = sums.flip(-1).cumsum(-1).flip(-1)
    yield (mixed * (shrinks * torch.exp(-after))[..., None]).sum(-2)


def _without_the_last(scores: Tensor, v: Tensor, size: int) -> Iterator[Tensor]:
    """The keys that do not fill a block are left out."""
    end = v.shape[2] - v.shape[2] % size
    if end < v.shape[2]:
        yield torch.softmax(scores[..., :end], -1).nan_to_num() @ v[:, :, :end]


def _of_the_first(scores: Tensor, v: Tensor, size: int) -> Iterator[Tensor]:
    """The first block alone."""
    yield torch.softmax(scores[..., :size], -1).nan_to_num() @ v[:, :, :size]


@_seen(
    "flash_not_rescaled",
    says="Your result is right only for the queries whose largest score comes early among the "
    "keys. If you go block by block, then whenever a later score is larger than all before, "
    "rescale both sums, that of the exponentials and that of the values.",
    hint=8,
)
def flash_not_rescaled(got: Tensor, expected: Tensor, call: _Call) -> bool:
    if _from_blocks(got, expected, call, _not_rescaled):
        return True
    scores = call.scores
    seeing = ~scores.isneginf().all(-1)
    place = scores.argmax(-1)
    right = torch.isclose(got, expected, 1e-3, 1e-5).all(-1)
    early, late = place[right & seeing], place[~right & seeing]
    if min(early.numel(), late.numel()) < 2:
        return False
    return bool(right[~seeing].all()) and bool(early.max() < late.min())


@_seen(
    "flash_causal_anyway",
    says="Your result is what comes out with causal=True, but causal is False here. Only the "
    "caller knows whether later tokens are to be blocked.",
    hint=4,
)
def flash_causal_anyway(got: Tensor, expected: Tensor, call: _Call) -> bool:
    scores = _scores(call.q, call.k, call.mask, causal=True)
    blocked = torch.softmax(scores, -1).nan_to_num() @ call.v.double()
    return not call.causal and torch.allclose(got.double(), blocked, 1e-3, 1e-5)


@_seen(
    "flash_first_keys_blocked",
    says="Your result is wrong only for queries that may not see any of the first keys. If you go "
    "block by block, such a query has the maximum -inf after the first block, and -inf - -inf is "
    "NaN, in exp and where you rescale the sums: use 0 for such a maximum.",
    hint=8,
)
def flash_first_keys_blocked(got: Tensor, expected: Tensor, call: _Call) -> bool:
    seen = ~call.scores.isneginf()
    right = torch.isclose(got, expected, 1e-3, 1e-5).all(-1)
    late = seen.any(-1) & ~seen[..., :16].any(-1)  # few blocks are smaller
    return bool((late | right).all())


@_seen(
    "flash_softmax_per_block",
    says="Your result is that of blocks of keys that each divide, by a sum of their own or by the "
    "sum so far. All keys of a query share one softmax: keep the sums of the exponentials, and "
    "divide once at the end.",
    hint=8,
)
def flash_softmax_per_block(got: Tensor, expected: Tensor, call: _Call) -> bool:
    is_exact = call.v.dtype in (torch.float32, torch.float64)
    return is_exact and _from_blocks(got, expected, call, _divided_in_each)


@_seen(
    "flash_causal_within_blocks",
    says="With causal your result is that of blocks that count their own keys, their queries or "
    "both from 0. Compare positions in the whole sequence: add where the block starts.",
    hint=8,
)
def flash_causal_within_blocks(got: Tensor, expected: Tensor, call: _Call) -> bool:
    if not call.causal:
        return False
    q, k, v = (each[:1, :1] for each in call[:3])
    scores = _scores(q, k, call.mask, causal=False)[0, 0]
    few = _wrong_rows(got[0, 0], expected[0, 0])
    got, v = got[0, 0], v[0, 0].double()
    places = torch.arange(k.shape[2], device=k.device)
    for block in (size for size in _BLOCKS if size < len(places)):
        columns = places % block
        for rows, keys in (places, columns), (columns, columns), (columns, places):
            blocked = scores.masked_fill(keys > rows[:, None], -math.inf)
            parts = (few, ...)  # for speed, a few queries come before all
            if all(_close(got[some], torch.softmax(blocked[some], -1) @ v) for some in parts):
                return True
    return False


@_seen(
    "flash_last_keys_lost",
    says="Your result leaves out the last keys, those that do not fill a block. Go up to the last "
    "key: the last block may be shorter.",
    hint=8,
)
def flash_last_keys_lost(got: Tensor, expected: Tensor, call: _Call) -> bool:
    return _from_blocks(got, expected, call, _without_the_last)


@_seen(
    "flash_first_block_alone",
    says="Your result is that of the first block of keys alone. Go through the keys to the last, "
    "k.shape[2], for each query.",
    hint=8,
)
def flash_first_block_alone(got: Tensor, expected: Tensor, call: _Call) -> bool:
    return _from_blocks(got, expected, call, _of_the_first)


@_seen(
    "flash_no_maximum",
    says="Your result is wrong only for queries with very large or very low scores, where exp "
    "gives inf or 0 in float32. Subtract each query's largest score first; block by block, the "
    "largest so far.",
    hint=8,
)
def flash_no_maximum(got: Tensor, expected: Tensor, call: _Call) -> bool:
    if call.q.dtype != torch.float32:
        return False
    highest = _scores(call.q, call.k, None, causal=False).amax(-1)  # of all keys
    best = call.scores.amax(-1)  # of those that are seen
    wrong = ~torch.isclose(got, expected, 5e-3, 5e-3).all(-1) & ~best.isneginf()
    is_far = (highest > 85) | (best < -15)  # some add a small number to the sum
    certain = (best > 89) | ((best < -104) & ~best.isneginf())
    shows = certain.any() or got[wrong].isnan().any()
    return bool(shows) and bool(wrong[certain].all()) and bool(is_far[wrong].all())


_FEW = 32  # queries, which the search for the factor looks at


@_seen(
    "flash_other_scale",
    says="Your result is that of scores that are all multiplied by one number. Divide the products "
    "of q and k by sqrt(d_k) and by nothing else; d_k is q.shape[-1], the size of one head.",
    hint=2,
)
def flash_other_scale(got: Tensor, expected: Tensor, call: _Call) -> bool:
    if call.q.dtype != torch.float32 or got.numel() < 4:  # a single number would fit many
        return False
    scores, v = call.scores, call.v.double()

    def off(power: float) -> float:
        few = scores[:1, :1, :_FEW] * math.exp(power)
        some = torch.softmax(few, -1).nan_to_num() @ v[:1, :1]
        return float((some - got[:1, :1, :_FEW]).square().sum())

    power = 0.0
    for step in (1e-1, 5e-3, 2e-4):
        power = min((power + step * count for count in range(-40, 41)), key=off)
    scaled = torch.softmax(scores * math.exp(power), -1).nan_to_num() @ v
    return torch.allclose(scaled, got.double(), 1e-3, 1e-5)
