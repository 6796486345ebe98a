"""Known misconceptions of the stage masking, for each of its three functions."""

from __future__ import annotations

import torch
from torch import Tensor

from grader.misconceptions import misconception, symptom

# causal_mask(seq_len): True where attention is allowed, (1, 1, T, T)


@misconception(
    "causal_inverted",
    replaces="causal_mask",
    says="Your mask is True where attention is blocked, as nn.MultiheadAttention wants it. "
    "In this course True means allowed.",
    hint=1,
)
def causal_inverted(seq_len: int) -> Tensor:
    return torch.triu(torch.ones(1, 1, seq_len, seq_len), diagonal=1).bool()


@misconception(
    "causal_upper",
    replaces="causal_mask",
    says="You keep the upper triangle, so each token sees itself and the future. Rows are "
    "queries: a token sees the columns up to its own.",
    hint=2,
)
def causal_upper(seq_len: int) -> Tensor:
    return torch.triu(torch.ones(1, 1, seq_len, seq_len)).bool()


@misconception(
    "causal_not_itself",
    replaces="causal_mask",
    says="You leave the diagonal out: no token sees itself, and the first one sees nothing at all. "
    "A token may attend to itself.",
    hint=2,
)
def causal_not_itself(seq_len: int) -> Tensor:
    return torch.tril(torch.ones(1, 1, seq_len, seq_len), diagonal=-1).bool()


@misconception(
    "causal_one_ahead",
    replaces="causal_mask",
    says="Your diagonal is one too far up: each token also sees the next one, the very thing it "
    "has to predict.",
    hint=2,
)
def causal_one_ahead(seq_len: int) -> Tensor:
    return torch.tril(torch.ones(1, 1, seq_len, seq_len), diagonal=1).bool()


@misconception(
    "causal_float",
    replaces="causal_mask",
    says="The pattern is right, but the mask holds the floats 1.0 and 0.0. Return booleans: a "
    "mask answers yes or no.",
    hint=2,
)
def causal_float(seq_len: int) -> Tensor:
    return torch.tril(torch.ones(1, 1, seq_len, seq_len))


@misconception(
    "causal_two_axes",
    replaces="causal_mask",
    says="The pattern is right, but its shape is [T, T]. "
    "Give it two axes of length 1 in front, one for the batch and one for the heads.",
    hint=4,
)
def causal_two_axes(seq_len: int) -> Tensor:
    return torch.tril(torch.ones(seq_len, seq_len, dtype=torch.bool))


@misconception(
    "causal_three_axes",
    replaces="causal_mask",
    says="The pattern is right, but its shape is [1, T, T]. Scores have one more axis: batch and "
    "heads need an axis of length 1 each.",
    hint=4,
)
def causal_three_axes(seq_len: int) -> Tensor:
    return torch.triu(torch.ones(1, seq_len, seq_len), diagonal=1) == 0


@misconception(
    "causal_additive",
    replaces="causal_mask",
    says="You return numbers to add to the scores, 0 and -inf. "
    "The mask only says where attention is allowed; apply_mask brings in -inf.",
    hint=1,
)
def causal_additive(seq_len: int) -> Tensor:
    return torch.triu(torch.full((1, 1, seq_len, seq_len), float("-inf")), diagonal=1)


@misconception(
    "causal_float_two_axes",
    replaces="causal_mask",
    says="The triangle is right. Two things are still missing: booleans instead of floats, and "
    "the two axes of length 1 in front for batch and heads.",
    hint=4,
)
def causal_float_two_axes(seq_len: int) -> Tensor:
    return torch.tril(torch.ones(seq_len, seq_len))


@misconception(
    "causal_inverted_two_axes",
    replaces="causal_mask",
    says="Two mistakes at once: True stands where attention is blocked instead of allowed, and the "
    "two axes of length 1 in front, for batch and heads, are missing.",
    hint=1,
)
def causal_inverted_two_axes(seq_len: int) -> Tensor:
    return torch.triu(torch.ones(seq_len, seq_len, dtype=torch.bool), diagonal=1)


@misconception(
    "causal_additive_two_axes",
    replaces="causal_mask",
    says="You return numbers to add, 0 and -inf, of shape [T, T], as nn.Transformer takes them. "
    "Here a mask holds booleans, True where attention is allowed, and has two more axes of "
    "length 1 in front.",
    hint=1,
)
def causal_additive_two_axes(seq_len: int) -> Tensor:
    return torch.triu(torch.full((seq_len, seq_len), float("-inf")), diagonal=1)


@symptom(
    "causal_form",
    of="causal_mask",
    says="The pattern is right, but neither dtype nor shape is. Return booleans, of shape "
    "[1, 1, T, T].",
    hint=4,
)
def causal_form(got: Tensor, expected: Tensor, seq_len: int) -> bool:
    return _marks(got, expected) and got.dtype != expected.dtype and got.shape != expected.shape


@symptom(
    "causal_inverted_form",
    of="causal_mask",
    says="Your mask marks what is blocked, where it must mark what is allowed. It must also be "
    "boolean and have the shape [1, 1, T, T].",
    hint=1,
)
def causal_inverted_form(got: Tensor, expected: Tensor, seq_len: int) -> bool:
    return _marks(got, ~expected)


def _marks(got: Tensor, places: Tensor) -> bool:
    """Whether a mask of any dtype and number of axes marks these places."""
    return torch.equal((got != 0).squeeze(), places.squeeze())


# padding_mask(valid_lens, seq_len): True at real tokens, (B, 1, 1, T)


def _real_tokens(valid_lens: Tensor, seq_len: int) -> Tensor:
    """The right pattern without the axes for heads and queries."""
    return torch.arange(seq_len, device=valid_lens.device) < valid_lens[:, None]  # (B, T)


@misconception(
    "padding_inverted",
    replaces="padding_mask",
    says="Your mask is True at the padding, like the key_padding_mask of nn.MultiheadAttention. "
    "In this course True means allowed: the real tokens.",
    hint=1,
)
def padding_inverted(valid_lens: Tensor, seq_len: int) -> Tensor:
    positions = torch.arange(seq_len, device=valid_lens.device)
    return (positions >= valid_lens[:, None])[:, None, None, :]


@misconception(
    "padding_one_more",
    replaces="padding_mask",
    says="You let one padding token in. Positions count from 0, so the last of n real tokens is "
    "at position n - 1.",
    hint=3,
)
def padding_one_more(valid_lens: Tensor, seq_len: int) -> Tensor:
    positions = torch.arange(seq_len, device=valid_lens.device)
    return (positions <= valid_lens[:, None])[:, None, None, :]


@misconception(
    "padding_one_fewer",
    replaces="padding_mask",
    says="You block the last real token of each sequence, as when positions count from 1. "
    "Count them from 0 when you compare with the length.",
    hint=3,
)
def padding_one_fewer(valid_lens: Tensor, seq_len: int) -> Tensor:
    positions = torch.arange(1, seq_len + 1, device=valid_lens.device)
    return (positions < valid_lens[:, None])[:, None, None, :]


@misconception(
    "padding_two_axes",
    replaces="padding_mask",
    says="The pattern is right, but its shape is [B, T], which would be read as [Tq, Tk]. Put "
    "axes of length 1 between batch and keys, for heads and queries.",
    hint=4,
)
def padding_two_axes(valid_lens: Tensor, seq_len: int) -> Tensor:
    return _real_tokens(valid_lens, seq_len)


@misconception(
    "padding_three_axes",
    replaces="padding_mask",
    says="The pattern is right, but its shape is [B, 1, T], so the batch would meet the heads. "
    "Heads and queries need an axis of length 1 each.",
    hint=4,
)
def padding_three_axes(valid_lens: Tensor, seq_len: int) -> Tensor:
    return _real_tokens(valid_lens, seq_len).unsqueeze(1)


@misconception(
    "padding_queries",
    replaces="padding_mask",
    says="Your mask runs along the queries, [B, 1, T, 1]. Padding must not be looked at, so block "
    "the keys, on the last axis.",
    hint=4,
)
def padding_queries(valid_lens: Tensor, seq_len: int) -> Tensor:
    return _real_tokens(valid_lens, seq_len)[:, None, :, None]


@misconception(
    "padding_square",
    replaces="padding_mask",
    says="You block padded queries as well as padded keys and return [B, 1, T, T]. Only keys are "
    "blocked here; one axis of length 1 serves every query.",
    hint=4,
)
def padding_square(valid_lens: Tensor, seq_len: int) -> Tensor:
    real = _real_tokens(valid_lens, seq_len)
    return (real[:, :, None] & real[:, None, :]).unsqueeze(1)


@misconception(
    "padding_float",
    replaces="padding_mask",
    says="The pattern is right, but the mask holds the floats 1.0 and 0.0. A comparison already "
    "gives booleans: return those.",
    hint=3,
)
def padding_float(valid_lens: Tensor, seq_len: int) -> Tensor:
    return _real_tokens(valid_lens, seq_len)[:, None, None, :].float()


@misconception(
    "padding_left",
    replaces="padding_mask",
    says="You put the padding in front. Here real tokens come first and the padding fills up the "
    "end.",
    hint=3,
)
def padding_left(valid_lens: Tensor, seq_len: int) -> Tensor:
    positions = torch.arange(seq_len, device=valid_lens.device)
    return (positions >= seq_len - valid_lens[:, None])[:, None, None, :]


@misconception(
    "padding_longest",
    replaces="padding_mask",
    says="Your mask is only as long as the longest sequence of the batch. It must have seq_len "
    "columns, even if the last ones are padding everywhere.",
    hint=3,
)
def padding_longest(valid_lens: Tensor, seq_len: int) -> Tensor:
    return _real_tokens(valid_lens, int(valid_lens.max()))[:, None, None, :]


@misconception(
    "padding_of_token_ids",
    replaces="padding_mask",
    says="You take valid_lens for the tokens and look where they are not padding. They are "
    "lengths, one for each sequence: compare the positions 0 to seq_len - 1 with them.",
    hint=3,
)
def padding_of_token_ids(valid_lens: Tensor, seq_len: int) -> Tensor:
    return (valid_lens != 0).unsqueeze(1).unsqueeze(2)  # (B, 1, 1)


@misconception(
    "padding_never_empty",
    replaces="padding_mask",
    says="You let a sequence of length 0 keep one token, perhaps to protect the softmax. Length 0 "
    "blocks everything; the softmax stage handles such a row.",
    hint=3,
)
def padding_never_empty(valid_lens: Tensor, seq_len: int) -> Tensor:
    return _real_tokens(valid_lens.clamp(min=1), seq_len)[:, None, None, :]


@misconception(
    "padding_inverted_two_axes",
    replaces="padding_mask",
    says="Two mistakes at once, both habits of nn.MultiheadAttention: True stands at the padding "
    "instead of the real tokens, and the axes for heads and queries are missing.",
    hint=1,
)
def padding_inverted_two_axes(valid_lens: Tensor, seq_len: int) -> Tensor:
    return torch.arange(seq_len, device=valid_lens.device) >= valid_lens[:, None]


@symptom(
    "padding_form",
    of="padding_mask",
    says="The pattern is right, but neither dtype nor shape is. Return booleans, of shape "
    "[B, 1, 1, T].",
    hint=4,
)
def padding_form(got: Tensor, expected: Tensor, valid_lens: Tensor, seq_len: int) -> bool:
    return _marks(got, expected) and got.dtype != expected.dtype and got.shape != expected.shape


@symptom(
    "padding_inverted_form",
    of="padding_mask",
    says="Your mask marks the padding, where it must mark the real tokens. It must also be boolean "
    "and have the shape [B, 1, 1, T].",
    hint=1,
)
def padding_inverted_form(got: Tensor, expected: Tensor, valid_lens: Tensor, seq_len: int) -> bool:
    return _marks(got, ~expected)


# apply_mask(scores, mask): blocked scores become -inf


@misconception(
    "apply_inverted",
    replaces="apply_mask",
    says="You block where the mask is True. In this course True, or 1, means allowed: the other "
    "positions become -inf.",
    hint=1,
)
def apply_inverted(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores.masked_fill(mask.bool(), float("-inf"))


@misconception(
    "apply_zero",
    replaces="apply_mask",
    says="Your blocked scores become 0, as when you multiply by the mask or fill in 1e-9. "
    "exp(0) is 1, so they would still get weight; only -inf becomes 0 in the softmax.",
    hint=5,
)
def apply_zero(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores * mask


@misconception(
    "apply_zero_filled",
    replaces="apply_mask",
    says="You fill in 0, or almost 0 such as 1e-9, where attention is blocked. exp(0) is 1, so "
    "blocked keys would still get weight; only -inf becomes 0 in the softmax.",
    hint=5,
)
def apply_zero_filled(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, 0.0)


@misconception(
    "apply_minus_1e9",
    replaces="apply_mask",
    says="You fill in, or add, -1e9. A fully blocked row then looks like any other and gets equal "
    "weights, and float16 cannot hold the number; use -inf.",
    hint=5,
)
def apply_minus_1e9(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, -1e9)


@misconception(
    "apply_minus_1e6",
    replaces="apply_mask",
    says="You fill in -1e6, as the d2l book does. A fully blocked row then gets equal weights "
    "instead of none; use -inf.",
    hint=5,
)
def apply_minus_1e6(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, -1e6)


@misconception(
    "apply_smallest_float",
    replaces="apply_mask",
    says="You fill in the lowest number of the dtype. It is finite, so a fully blocked "
    "row looks like one with nothing blocked; use -inf.",
    hint=5,
)
def apply_smallest_float(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min)


@misconception(
    "apply_plus_inf",
    replaces="apply_mask",
    says="You fill in +inf, so the blocked positions would win everything. The minus sign is "
    "missing.",
    hint=5,
)
def apply_plus_inf(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, float("inf"))


@misconception(
    "apply_added",
    replaces="apply_mask",
    says="You add the mask to the scores, so allowed ones grow by 1 and blocked ones stay. Adding "
    "works only for a mask of 0 and -inf; this mask says yes or no.",
    hint=5,
)
def apply_added(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores + mask


@misconception(
    "apply_numbers_added",
    replaces="apply_mask",
    says="You add a mask of numbers to the scores, as F.scaled_dot_product_attention does. Here "
    "the numbers 1 and 0 mean the same as True and False: make the mask boolean.",
    hint=6,
)
def apply_numbers_added(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, float("-inf"))
    return scores + mask


@misconception(
    "apply_zero_times_inf",
    replaces="apply_mask",
    says="You multiply inf or -inf by a 0/1 mask, and 0 times inf is NaN at every allowed "
    "position. Choose between two values instead of multiplying.",
    hint=5,
)
def apply_zero_times_inf(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores + (1.0 - mask.float()) * float("-inf")


@misconception(
    "apply_minus_10000_added",
    replaces="apply_mask",
    says="You fill in, or add, -10000 where attention is blocked, as BERT does. Large but finite "
    "leaves a fully blocked row with weights; use -inf.",
    hint=5,
)
def apply_minus_10000_added(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores + (1.0 - mask.to(scores.dtype)) * -10000.0


@misconception(
    "apply_in_place",
    replaces="apply_mask",
    says="You write -inf into the caller's own scores. Assigning to `scores[...]` and methods "
    "with a trailing underscore work in place: return a new tensor.",
    hint=6,
)
def apply_in_place(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores.masked_fill_(mask == 0, float("-inf"))


@misconception(
    "apply_zero_scores_blocked",
    replaces="apply_mask",
    says="You also block allowed scores that are exactly 0, as you do if you multiply scores and "
    "mask and ask where the product is 0. Look only at where the mask is 0.",
    hint=6,
)
def apply_zero_scores_blocked(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores.masked_fill(scores * mask == 0, float("-inf"))


@misconception(
    "apply_no_none",
    replaces="apply_mask",
    says="You never ask whether the mask is None. No mask means that every position is allowed.",
    hint=6,
)
def apply_no_none(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(mask == 0, float("-inf"))


@misconception(
    "apply_truth_of_mask",
    replaces="apply_mask",
    says="You ask whether a whole tensor is true, which has no answer for more than one element. "
    "Ask whether the mask is None.",
    hint=6,
)
def apply_truth_of_mask(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask:
        return scores.masked_fill(mask == 0, float("-inf"))
    return scores


@misconception(
    "apply_bool_only",
    replaces="apply_mask",
    says="You invert the mask with ~, which works only for booleans. Masks of the numbers 0 and 1 "
    "must work too: compare with 0 instead.",
    hint=6,
)
def apply_bool_only(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores.masked_fill(~mask, float("-inf"))


@misconception(
    "apply_extra_axis",
    replaces="apply_mask",
    says="You give the mask another axis before you use it. It already lines up with the scores, "
    "counted from the last axis; broadcasting does the rest.",
    hint=4,
)
def apply_extra_axis(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores.masked_fill(mask.unsqueeze(1) == 0, float("-inf"))


@misconception(
    "apply_three_axes_by_sequence",
    replaces="apply_mask",
    says="You read a mask with three axes as [B, Tq, Tk]. Broadcasting counts axes from the last "
    "one, so it is [H, Tq, Tk] and needs no further axis.",
    hint=4,
)
def apply_three_axes_by_sequence(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    mask = mask.unsqueeze(1) if mask.ndim == 3 else mask
    return scores.masked_fill(mask == 0, float("-inf"))


@misconception(
    "apply_in_place_minus_1e9",
    replaces="apply_mask",
    says="Two mistakes at once: you write into the caller's own scores, and you fill in -1e9. "
    "Return a new tensor, with -inf.",
    hint=6,
)
def apply_in_place_minus_1e9(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores.masked_fill_(mask == 0, -1e9)


@misconception(
    "apply_inverted_bool_only",
    replaces="apply_mask",
    says="Two mistakes at once: you block where the mask is True, though True means allowed here, "
    "and only booleans work. Ask where the mask is 0: that works for numbers, too.",
    hint=5,
)
def apply_inverted_bool_only(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores.masked_fill(mask, float("-inf"))


@misconception(
    "apply_inverted_minus_1e9",
    replaces="apply_mask",
    says="Two mistakes at once: you block where the mask is True, though True means allowed here, "
    "and you fill in -1e9 where -inf belongs.",
    hint=1,
)
def apply_inverted_minus_1e9(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores.masked_fill(mask.bool(), -1e9)


@misconception(
    "apply_none_blocks_all",
    replaces="apply_mask",
    says="You treat None as a mask of zeros, which blocks every pair. Without a mask nothing is "
    "blocked.",
    hint=6,
)
def apply_none_blocks_all(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        mask = torch.zeros_like(scores)
    return scores.masked_fill(mask == 0, float("-inf"))


@misconception(
    "apply_unchanged",
    replaces="apply_mask",
    says="You return the scores as they came. A method such as masked_fill returns a new tensor "
    "and leaves its own as it is: use what it returns. And its condition must be true where the "
    "mask is 0.",
    hint=6,
)
def apply_unchanged(scores: Tensor, mask: Tensor | None) -> Tensor:
    return scores


@symptom(
    "apply_fills_allowed",
    of="apply_mask",
    says="Blocked scores stay what they are, and allowed ones all get one large negative number: "
    "you block where the mask is True. Here True, or 1, means allowed, and the others become -inf.",
    hint=1,
)
def apply_fills_allowed(got: Tensor, expected: Tensor, scores: Tensor, mask: Tensor) -> bool:
    allowed = ~expected.isneginf()
    if got.shape != expected.shape or not bool(allowed.any()):
        return False
    filled = got[allowed]
    is_one = bool((filled == filled[0]).all()) and float("-inf") < float(filled[0]) < -1e3
    return is_one and torch.equal(got[~allowed], scores[~allowed])
