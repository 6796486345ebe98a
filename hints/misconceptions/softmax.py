"""Known misconceptions of the stage softmax: what people really write, and a sentence for each."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from grader.misconceptions import misconception, symptom


def _blocked_rows(scores: Tensor) -> Tensor:
    """True for a query that may not look at any key, (B, H, Tq, 1)."""
    return (scores == float("-inf")).all(dim=-1, keepdim=True)


# The axis


@misconception(
    "softmax_over_queries",
    replaces="attention_weights",
    says="You normalise over the queries, so the columns sum to 1. Each query shares its "
    "attention among the keys, so the rows must sum to 1.",
    hint=1,
)
def softmax_over_queries(scores: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-2)


@misconception(
    "softmax_over_heads",
    replaces="attention_weights",
    says="You normalise over the heads, axis 1 (that is also what F.softmax takes when no axis is "
    "given). Each head stands alone; normalise over the keys.",
    hint=1,
)
def softmax_over_heads(scores: Tensor) -> Tensor:
    return F.softmax(scores, dim=1)


@misconception(
    "softmax_over_everything",
    replaces="attention_weights",
    says="You divide by the sum of the whole tensor. Every query has a sum of its own, over its "
    "keys.",
    hint=1,
)
def softmax_over_everything(scores: Tensor) -> Tensor:
    exp = torch.exp(scores - scores.max())
    return exp / exp.sum()


@misconception(
    "softmax_twice",
    replaces="attention_weights",
    says="You apply the softmax twice. The second time it gets shares between 0 and 1, so all "
    "weights come out nearly equal, and blocked keys get some, too.",
    hint=1,
)
def softmax_twice(scores: Tensor) -> Tensor:
    return torch.softmax(torch.softmax(scores, dim=-1), dim=-1)


@misconception(
    "softmax_no_keepdim",
    replaces="attention_weights",
    says="A sum or a maximum drops the key axis, so it no longer lines up with the scores. "
    "Keep the axis with length 1: keepdim=True.",
    hint=5,
)
def softmax_no_keepdim(scores: Tensor) -> Tensor:
    exp = torch.exp(scores)
    return exp / exp.sum(dim=-1)


# Fully blocked rows


@misconception(
    "softmax_blocked_nan",
    replaces="attention_weights",
    says="A fully blocked row becomes NaN, from 0 / 0 or from -inf minus a maximum of -inf. Handle "
    "such a row separately and give it zeros.",
    hint=3,
)
def softmax_blocked_nan(scores: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-1)


@misconception(
    "softmax_whole_tensor_blocked",
    replaces="attention_weights",
    says="You ask whether the whole tensor is blocked. A blocked row among others still becomes "
    "NaN: ask each row for itself, with dim=-1.",
    hint=3,
)
def softmax_whole_tensor_blocked(scores: Tensor) -> Tensor:
    if torch.isinf(scores).all():
        return torch.zeros_like(scores)
    return torch.softmax(scores, dim=-1)


@misconception(
    "softmax_nan_to_num",
    replaces="attention_weights",
    says="Your values are right, but the gradient of a blocked row is still NaN: it flows back "
    "through the NaN that you replaced. Keep the NaN from arising, before the softmax.",
    hint=4,
)
def softmax_nan_to_num(scores: Tensor) -> Tensor:
    weights = torch.softmax(scores, dim=-1)
    return torch.nan_to_num(weights, nan=0.0)


@misconception(
    "softmax_nan_in_place",
    replaces="attention_weights",
    says="You write zeros into the softmax's own result, which it still needs for its gradient, "
    "so backward fails. Make sure before the softmax that no NaN arises.",
    hint=4,
)
def softmax_nan_in_place(scores: Tensor) -> Tensor:
    weights = torch.softmax(scores, dim=-1)
    weights[torch.isnan(weights)] = 0.0
    return weights


@misconception(
    "softmax_blocked_equal",
    replaces="attention_weights",
    says="You put a large negative number in place of -inf, so a fully blocked row spreads its "
    "weight equally. Nothing is allowed there: all its weights are 0.",
    hint=3,
)
def softmax_blocked_equal(scores: Tensor) -> Tensor:
    return torch.softmax(scores.masked_fill(scores == float("-inf"), -1e9), dim=-1)


@misconception(
    "softmax_blocked_equal_where",
    replaces="attention_weights",
    says="You put a large negative number in place of -inf. A fully blocked row then spreads its "
    "weight equally, and a blocked key may win against scores that are lower still. Only -inf "
    "means blocked.",
    hint=3,
)
def softmax_blocked_equal_where(scores: Tensor) -> Tensor:
    number = scores.new_tensor(-1e9)  # -inf in float16, where masked_fill raises
    return torch.softmax(torch.where(scores == float("-inf"), number, scores), dim=-1)


@misconception(
    "softmax_blocked_equal_in_place",
    replaces="attention_weights",
    says="You write a large negative number into scores in place of -inf. That changes the "
    "caller's tensor, and a fully blocked row spreads its weight equally, where all must be 0.",
    hint=3,
)
def softmax_blocked_equal_in_place(scores: Tensor) -> Tensor:
    scores[scores == float("-inf")] = -1e9
    return torch.softmax(scores, dim=-1)


@misconception(
    "softmax_blocked_ten_thousand",
    replaces="attention_weights",
    says="You put -10000 in place of -inf. An allowed score may be as low, and then blocked keys "
    "get a share too, as in a fully blocked row. Only -inf means blocked.",
    hint=3,
)
def softmax_blocked_ten_thousand(scores: Tensor) -> Tensor:
    return torch.softmax(scores.masked_fill(scores == float("-inf"), -1e4), dim=-1)


@misconception(
    "softmax_blocked_finite",
    replaces="attention_weights",
    says="A fully blocked row spreads its weight equally, as when the same finite number replaces "
    "each -inf. Nothing is allowed there: all its weights are 0.",
    hint=3,
)
def softmax_blocked_finite(scores: Tensor) -> Tensor:
    return torch.softmax(scores.masked_fill(_blocked_rows(scores), 0.0), dim=-1)


@misconception(
    "softmax_blocked_zero",
    replaces="attention_weights",
    says="You put 0 in place of -inf before the softmax. exp(0) is 1, so a blocked key gets a "
    "share. Only rows that are -inf throughout need other scores.",
    hint=5,
)
def softmax_blocked_zero(scores: Tensor) -> Tensor:
    return torch.softmax(scores.masked_fill(scores == float("-inf"), 0.0), dim=-1)


@misconception(
    "softmax_blocked_zero_twice",
    replaces="attention_weights",
    says="You put 0 in place of each -inf, before the softmax and after it. exp(0) is 1, so a "
    "blocked key takes a share from the others. Only rows that are -inf throughout need this.",
    hint=5,
)
def softmax_blocked_zero_twice(scores: Tensor) -> Tensor:
    blocked = scores == float("-inf")
    return torch.softmax(scores.masked_fill(blocked, 0.0), dim=-1).masked_fill(blocked, 0.0)


@misconception(
    "softmax_any_blocked",
    replaces="attention_weights",
    says="You zero every row in which any key is blocked. Only a row in which all keys are "
    "blocked has nothing to share.",
    hint=5,
)
def softmax_any_blocked(scores: Tensor) -> Tensor:
    blocked = torch.isinf(scores).any(dim=-1, keepdim=True)
    return torch.softmax(scores.masked_fill(blocked, 0.0), dim=-1).masked_fill(blocked, 0.0)


# Large scores


@misconception(
    "softmax_unstable",
    replaces="attention_weights",
    says="exp of a large score overflows to inf, and inf / inf is NaN; a fully blocked row gives "
    "0 / 0. Shift each row by its largest score first, and handle blocked rows separately.",
    hint=2,
)
def softmax_unstable(scores: Tensor) -> Tensor:
    exp = torch.exp(scores)
    return exp / exp.sum(dim=-1, keepdim=True)


@misconception(
    "softmax_unstable_epsilon",
    replaces="attention_weights",
    says="The small number in the divisor saves blocked rows, but exp of a large score still "
    "overflows. Shift each row by its largest score first.",
    hint=2,
)
def softmax_unstable_epsilon(scores: Tensor) -> Tensor:
    exp = torch.exp(scores)
    return exp / (exp.sum(dim=-1, keepdim=True) + 1e-9)


@misconception(
    "softmax_unstable_blocked_mended",
    replaces="attention_weights",
    says="You handle blocked rows, but exp of a large score overflows to inf, and inf / inf is "
    "NaN; in a row of very low scores every exp is 0. Shift each row by its largest score first.",
    hint=2,
)
def softmax_unstable_blocked_mended(scores: Tensor) -> Tensor:
    blocked = _blocked_rows(scores)
    exp = torch.exp(scores.masked_fill(blocked, 0.0))
    return (exp / exp.sum(dim=-1, keepdim=True)).masked_fill(blocked, 0.0)


@misconception(
    "softmax_unstable_guarded",
    replaces="attention_weights",
    says="You keep the divisor from being 0, but exp of a large score overflows to inf, and "
    "inf / inf is NaN; a row of very low scores looks blocked. Shift each row by its largest "
    "score first.",
    hint=2,
)
def softmax_unstable_guarded(scores: Tensor) -> Tensor:
    exp = torch.exp(scores)
    total = exp.sum(dim=-1, keepdim=True)
    return exp / total.masked_fill(total == 0, 1.0)


@misconception(
    "softmax_cut_off",
    replaces="attention_weights",
    says="You cut large scores off, so different large scores get equal weights. The softmax needs "
    "no limit: with each row shifted by its largest score, no exp is above 1.",
    hint=2,
)
def softmax_cut_off(scores: Tensor) -> Tensor:
    blocked = _blocked_rows(scores)
    return scores.clamp(max=50.0).masked_fill(blocked, 0.0).softmax(-1).masked_fill(blocked, 0.0)


@misconception(
    "softmax_cut_off_guarded",
    replaces="attention_weights",
    says="You cut large scores off so that exp does not overflow. Then different large scores get "
    "equal weights, and a row of very low scores looks blocked. Shift each row by its largest "
    "score instead: no exp is above 1, and nothing is lost.",
    hint=2,
)
def softmax_cut_off_guarded(scores: Tensor) -> Tensor:
    return softmax_unstable_guarded(scores.clamp(max=50.0))


@misconception(
    "softmax_mean_shift",
    replaces="attention_weights",
    says="You subtract each row's mean, or its smallest score. exp still overflows if a score is "
    "far above that, and inf / inf is NaN; in a row with a blocked key it is -inf, so the row is "
    "NaN too. Subtract the row's largest score, and handle blocked rows separately.",
    hint=2,
)
def softmax_mean_shift(scores: Tensor) -> Tensor:
    exp = torch.exp(scores - scores.mean(dim=-1, keepdim=True))
    return exp / exp.sum(dim=-1, keepdim=True)


@misconception(
    "softmax_shared_maximum",
    replaces="attention_weights",
    says="You shift every row by the largest score of the whole tensor. In a row far below it "
    "every exp is 0, which gives 0 / 0; each row needs its own maximum.",
    hint=2,
)
def softmax_shared_maximum(scores: Tensor) -> Tensor:
    blocked = _blocked_rows(scores)
    scores = scores.masked_fill(blocked, 0.0)
    exp = torch.exp(scores - scores.max())
    return (exp / exp.sum(dim=-1, keepdim=True)).masked_fill(blocked, 0.0)


@misconception(
    "softmax_shared_maximum_guarded",
    replaces="attention_weights",
    says="You shift every row by the largest score of the whole tensor. In a row far below it "
    "every exp is 0, and so are its weights; each row needs its own maximum.",
    hint=2,
)
def softmax_shared_maximum_guarded(scores: Tensor) -> Tensor:
    exp = torch.exp(scores - scores.max())
    total = exp.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, exp / total.clamp(min=1e-30), 0.0)


@misconception(
    "softmax_logarithm_in_half",
    replaces="attention_weights",
    says="You subtract the logarithm of the sum from the scores in their own dtype. Near 300 "
    "float16 holds only multiples of 1/4, so your rows do not sum to 1. Compute in float32, or "
    "shift by the largest score, which the dtype holds exactly.",
    hint=2,
)
def softmax_logarithm_in_half(scores: Tensor) -> Tensor:
    blocked = _blocked_rows(scores)
    safe = scores.masked_fill(blocked, 0.0)
    logarithms = safe - torch.logsumexp(safe, dim=-1, keepdim=True)
    return logarithms.exp().masked_fill(blocked, 0.0)


# Another function


@misconception(
    "softmax_log",
    replaces="attention_weights",
    says="You return the logarithm of the weights. Weights lie between 0 and 1 and sum to 1.",
    hint=1,
)
def softmax_log(scores: Tensor) -> Tensor:
    return F.log_softmax(scores, dim=-1)


@misconception(
    "softmax_no_exp",
    replaces="attention_weights",
    says="You divide the scores by their sum, without the exponential. Scores can be negative and "
    "their sum near 0; exp makes them all positive first.",
    hint=1,
)
def softmax_no_exp(scores: Tensor) -> Tensor:
    return scores / scores.sum(dim=-1, keepdim=True)


@misconception(
    "softmax_sigmoid",
    replaces="attention_weights",
    says="You squash each score on its own with a sigmoid, so the weights of a query don't sum to "
    "1. The keys must compete.",
    hint=1,
)
def softmax_sigmoid(scores: Tensor) -> Tensor:
    return torch.sigmoid(scores)


@misconception(
    "softmax_relu",
    replaces="attention_weights",
    says="You set negative scores to 0 and divide the others by their sum. exp gives every key "
    "that is not blocked a share, and a larger score far more than a smaller one.",
    hint=1,
)
def softmax_relu(scores: Tensor) -> Tensor:
    positive = torch.relu(scores)
    return positive / positive.sum(dim=-1, keepdim=True).clamp(min=1e-9)


@misconception(
    "softmax_of_sigmoids",
    replaces="attention_weights",
    says="You put a sigmoid in the place of exp. It levels off at 1, so a score that is far larger "
    "than the others gets hardly more than they do.",
    hint=1,
)
def softmax_of_sigmoids(scores: Tensor) -> Tensor:
    squashed = torch.sigmoid(scores)
    total = squashed.sum(dim=-1, keepdim=True)
    return squashed / total.masked_fill(total == 0, 1.0)


@misconception(
    "softmax_plus_one",
    replaces="attention_weights",
    says="The divisor of each row is too large by exp(0) = 1, as if each query had one more key, "
    "of score 0 and without a value. Its weights must sum to 1: divide by the sum over its keys.",
    hint=1,
)
def softmax_plus_one(scores: Tensor) -> Tensor:
    largest = scores.amax(dim=-1, keepdim=True).clamp(min=0)
    exp = torch.exp(scores - largest)
    return exp / (torch.exp(-largest) + exp.sum(dim=-1, keepdim=True))


@misconception(
    "softmax_float32",
    replaces="attention_weights",
    says="You take the softmax in float32 and leave the weights in it. More precision inside is "
    "fine, but return the dtype of the scores.",
)
def softmax_float32(scores: Tensor) -> Tensor:
    blocked = _blocked_rows(scores)
    weights = F.softmax(scores.masked_fill(blocked, 0.0), dim=-1, dtype=torch.float32)
    return weights.masked_fill(blocked, 0.0)


@misconception(
    "softmax_in_place",
    replaces="attention_weights",
    says="You subtract the maximum in place, so the caller's own scores change. Make a new tensor.",
    hint=5,
)
def softmax_in_place(scores: Tensor) -> Tensor:
    blocked = _blocked_rows(scores)
    scores -= scores.max(dim=-1, keepdim=True).values.masked_fill(blocked, 0.0)
    exp = torch.exp(scores)
    return exp / exp.sum(dim=-1, keepdim=True).masked_fill(blocked, 1.0)


# Two at once


@misconception(
    "softmax_over_queries_blocked_mended",
    replaces="attention_weights",
    says="You handle blocked rows, but you normalise over the queries, so the columns sum to 1. "
    "Each query shares its attention among the keys, so the rows must sum to 1.",
    hint=1,
)
def softmax_over_queries_blocked_mended(scores: Tensor) -> Tensor:
    blocked = _blocked_rows(scores)
    return torch.softmax(scores.masked_fill(blocked, 0.0), dim=-2).masked_fill(blocked, 0.0)


@misconception(
    "softmax_columns_blocked_mended",
    replaces="attention_weights",
    says="You normalise over the queries, and look for blocked columns. Both belong to the last "
    "axis: the keys compete, and a row may be blocked.",
    hint=1,
)
def softmax_columns_blocked_mended(scores: Tensor) -> Tensor:
    blocked = (scores == float("-inf")).all(dim=-2, keepdim=True)
    return torch.softmax(scores.masked_fill(blocked, 0.0), dim=-2).masked_fill(blocked, 0.0)


@misconception(
    "softmax_over_queries_nan_to_num",
    replaces="attention_weights",
    says="Two mistakes at once: you normalise over the queries instead of the keys, and you "
    "replace NaN afterwards, which leaves NaN in the gradient.",
    hint=1,
)
def softmax_over_queries_nan_to_num(scores: Tensor) -> Tensor:
    return torch.nan_to_num(torch.softmax(scores, dim=-2))


@misconception(
    "softmax_over_heads_nan_to_num",
    replaces="attention_weights",
    says="Two mistakes at once: you normalise over the heads instead of the keys, and you replace "
    "NaN afterwards, which leaves NaN in the gradient.",
    hint=1,
)
def softmax_over_heads_nan_to_num(scores: Tensor) -> Tensor:
    return torch.nan_to_num(torch.softmax(scores, dim=1))


@misconception(
    "softmax_unstable_nan_to_num",
    replaces="attention_weights",
    says="Two mistakes at once: exp of a large score overflows to inf, and you turn the NaN into "
    "0, so a strong score silently gets no weight. Shift each row by its largest score first.",
    hint=2,
)
def softmax_unstable_nan_to_num(scores: Tensor) -> Tensor:
    exp = torch.exp(scores)
    return torch.nan_to_num(exp / exp.sum(dim=-1, keepdim=True))


# What the numbers show


@symptom(
    "softmax_rows_vanish",
    of="attention_weights",
    says="Here the weights vanish in the rows whose scores all lie far below 0, or far below the "
    "largest of all scores. If exp of them is 0, shift each row by its own largest score. If you "
    "take them for blocked: only a row that is -inf throughout is blocked.",
    hint=2,
)
def softmax_rows_vanish(got: Tensor, expected: Tensor, scores: Tensor) -> bool:
    if got.shape != expected.shape or scores.dtype == torch.bfloat16:
        return False
    top = scores.double().amax(dim=-1)
    seeing = ~top.isneginf()
    wrong = ~torch.isclose(got, expected, 5e-3, 5e-3).all(dim=-1)
    if not bool(wrong.any()) or not bool(seeing[wrong].all()):
        return False
    share = got.double().sum(dim=-1, keepdim=True)
    smaller = (
        torch.isclose(got.double(), expected * share, 5e-3, 1e-6).all(dim=-1)
        & (share < 0.99)[..., 0]
    )
    if not bool(smaller[wrong].all()):
        return False
    highest = top[seeing].max()
    return any(
        bool(wrong[seeing & (top < base - 110)].all()) and bool((top[wrong] < base - 15).all())
        for base in (torch.zeros_like(highest), highest, highest.clamp(min=0))
    )


@symptom(
    "softmax_overflows",
    of="attention_weights",
    says="In each wrong row the largest scores get NaN, and all others 0. That is an exp that "
    "overflows: inf / inf is NaN, and any number / inf is 0. Subtract each row's own largest score "
    "first, not another number; then no exp is above 1.",
    hint=2,
)
def softmax_overflows(got: Tensor, expected: Tensor, scores: Tensor) -> bool:
    if got.shape != expected.shape:
        return False
    lost = got.isnan()
    rows = lost.any(dim=-1)
    right = torch.isclose(got, expected, 5e-3, 5e-3).all(dim=-1)
    if not bool(rows.any()) or not bool((rows | right).all()):
        return False
    got, lost, scores = got[rows], lost[rows], scores[rows].double()
    lowest = scores.masked_fill(~lost, float("inf")).amin(dim=-1)
    highest = scores.masked_fill(lost, float("-inf")).amax(dim=-1)  # -inf if all are NaN
    beside = highest.isfinite() & (lowest > highest)
    return bool((got[~lost] == 0).all()) and bool(beside.all())


@symptom(
    "softmax_epsilon_in_half",
    of="attention_weights",
    says="Only in float16 a fully blocked row gives NaN. If you add a small number to the divisor "
    "to avoid 0 / 0: 1e-8 and less is 0 in float16. Replace a divisor of 0 by 1 instead, in any "
    "dtype.",
    hint=5,
)
def softmax_epsilon_in_half(got: Tensor, expected: Tensor, scores: Tensor) -> bool:
    if got.shape != expected.shape or scores.dtype is not torch.float16:
        return False
    blocked = _blocked_rows(scores).expand_as(scores)
    right = torch.isclose(got, expected, 5e-3, 5e-3)[~blocked].all()
    return bool(blocked.any()) and bool(right) and bool(got[blocked].isnan().all())


@symptom(
    "softmax_divisor_too_large",
    of="attention_weights",
    says="The weights of a row have the right proportions and sum to a little less than 1, because "
    "the same number is added to every divisor. To avoid 0 / 0, replace a divisor of 0 by 1.",
    hint=5,
)
def softmax_divisor_too_large(got: Tensor, expected: Tensor, scores: Tensor) -> bool:
    if got.shape != expected.shape:
        return False
    rows = ~_blocked_rows(scores).squeeze(-1)
    got, expected, scores = (x.double()[rows] for x in (got, expected, scores))
    totals = got.sum(-1)
    short = 1 / totals - 1
    if not ((totals > 0.5) & (short > -1e-5)).all():
        return False
    seen = short > 1e-5
    if not seen.any() or not torch.allclose(got, expected * totals[:, None], 1e-4, 1e-6):
        return False
    divisors = 1 / expected.amax(-1), scores.exp().sum(-1)  # shifted by the maximum, or not
    added = [(short * divisor)[seen] for divisor in divisors]
    return any(torch.allclose(each, each.mean(), 0.1, 0) for each in added)


@symptom(
    "softmax_blocked_leaks",
    of="attention_weights",
    says="You give a key with the score -inf a tiny weight instead of 0. exp(-inf) is exactly 0: "
    "leave such a score as it is, cut nothing off from below before exp, and add nothing after it.",
    hint=2,
)
def softmax_blocked_leaks(got: Tensor, expected: Tensor, scores: Tensor) -> bool:
    if got.shape != expected.shape:
        return False
    leaks = scores.isneginf() & ~_blocked_rows(scores) & (got != 0)
    return (
        bool(leaks.any())
        and bool((got[leaks] < 1e-3).all())
        and torch.allclose(got, expected, 0, 1e-3)
    )
