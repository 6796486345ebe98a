"""Known misconceptions of the stage multi_head_attention: what people really write, and a sentence.

Those that other stages share are in _attention.py. `Attention` is a correct module cut into steps;
each misconception replaces one or two of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from _attention import (
    Assert,
    Attention,
    BiasAlways,
    BiasNever,
    DefaultInit,
    MaskInverted,
    NoScale,
    NoValueError,
    SplitAndJoinByView,
    SplitByView,
    usual_mistakes,
    values_from_heads,
    values_to_heads,
)
from torch import Tensor, nn

from grader.misconceptions import Value, misconception, symptom, values


@values(of="MultiHeadAttention")
def way(
    mha: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Iterator[Value | tuple[Value, ...]]:
    """The values on the way to the output; weights are those before dropout."""
    q, k, v = yield from values_to_heads(mha, query, key, value)
    yield from values_from_heads(mha, q, k, v, mask)


usual = usual_mistakes(
    Attention,
    "MultiHeadAttention",
    "mha",
    check=3,
    bias=1,
    start=2,
    inputs=4,
    layers=4,
    heads=5,
    scale=5,
    mask=5,
    softmax=5,
    blocked=5,
    dropout=6,
)


# The constructor: sizes and layers


@misconception(
    "mha_bias_always_random",
    replaces="MultiHeadAttention",
    says="Your layers have a bias even with bias=False, and then it starts at random. Pass the "
    "argument on to each of the four.",
    hint=1,
)
class BiasAlwaysRandom(BiasAlways):
    def make_layers(self, d_model: int, bias: bool) -> None:
        super().make_layers(d_model, bias)
        self.zeroed = bias

    def start_bias(self, bias: Tensor) -> None:
        if self.zeroed:
            super().start_bias(bias)


@misconception(
    "mha_bias_of_output_only",
    replaces="MultiHeadAttention",
    says="Only w_o has a bias; w_q, w_k and w_v never have one. Pass the argument bias, True by "
    "default, on to each of the four.",
    hint=1,
)
class BiasOfOutputOnly(Attention):
    def make_layers(self, d_model: int, bias: bool) -> None:
        super().make_layers(d_model, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)


@misconception(
    "mha_output_bias_always",
    replaces="MultiHeadAttention",
    says="With bias=False your output layer still has a bias. The argument applies to all four "
    "layers, w_o included.",
    hint=1,
)
class OutputBiasAlways(Attention):
    def make_layers(self, d_model: int, bias: bool) -> None:
        super().make_layers(d_model, bias)
        self.w_o = nn.Linear(d_model, d_model)


@misconception(
    "mha_other_names",
    replaces="MultiHeadAttention",
    says="Your layers are called q_proj, k_proj, v_proj and out_proj. Saved weights are found by "
    "name: call them w_q, w_k, w_v and w_o.",
    hint=1,
)
class OtherNames(Attention):
    def make_layers(self, d_model: int, bias: bool) -> None:
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.out_proj = nn.Linear(d_model, d_model, bias=bias)

    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.q_proj(query), self.k_proj(key), self.v_proj(value)

    def out(self, joined: Tensor, query: Tensor) -> Tensor:
        return self.out_proj(joined)


@misconception(
    "mha_query_and_key_share_a_layer",
    replaces="MultiHeadAttention",
    says="w_q and w_k are one and the same layer, so in self-attention queries equal keys. "
    "Create four separate layers.",
    hint=1,
)
class QueryAndKeyShareALayer(Attention):
    def make_layers(self, d_model: int, bias: bool) -> None:
        super().make_layers(d_model, bias)
        self.w_k = self.w_q


@misconception(
    "mha_one_layer_for_three",
    replaces="MultiHeadAttention",
    says="w_q, w_k and w_v are one and the same layer, which is all that a = b = nn.Linear(...) "
    "creates. Create four separate layers.",
    hint=1,
)
class OneLayerForThree(Attention):
    def make_layers(self, d_model: int, bias: bool) -> None:
        super().make_layers(d_model, bias)
        self.w_k = self.w_v = self.w_q


@misconception(
    "mha_one_layer_for_all",
    replaces="MultiHeadAttention",
    says="w_q, w_k, w_v and w_o are one and the same layer, which is all that [nn.Linear(...)] * 4 "
    "creates. Create four separate layers.",
    hint=2,
)
class OneLayerForAll(Attention):
    def make_layers(self, d_model: int, bias: bool) -> None:
        self.w_q = self.w_k = self.w_v = self.w_o = nn.Linear(d_model, d_model, bias=bias)


@misconception(
    "mha_layers_of_one_head",
    replaces="MultiHeadAttention",
    says="Your layers are d_k x d_k and work on heads that are split off first, so each head sees "
    "only its own slice of the input. Make them D x D: project first, then split.",
    hint=5,
)
class LayersOfOneHead(Attention):
    def make_layers(self, d_model: int, bias: bool) -> None:
        self.w_q = nn.Linear(self.d_k, self.d_k, bias=bias)
        self.w_k = nn.Linear(self.d_k, self.d_k, bias=bias)
        self.w_v = nn.Linear(self.d_k, self.d_k, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)

    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return (
            self.w_q(super().split(query)),
            self.w_k(super().split(key)),
            self.w_v(super().split(value)),
        )

    def split(self, x: Tensor) -> Tensor:
        return x


@misconception(
    "mha_scale_saved",
    replaces="MultiHeadAttention",
    says="You register the scale as a buffer, so it is saved with the weights and a strict load "
    "fails. It follows from d_k: a plain number is enough.",
    hint=1,
)
class ScaleSaved(Attention):
    def make_layers(self, d_model: int, bias: bool) -> None:
        super().make_layers(d_model, bias)
        self.register_buffer("root", torch.sqrt(torch.tensor(float(self.d_k))))


@misconception(
    "mha_residual_and_norm",
    replaces="MultiHeadAttention",
    says="You add the query to the output and normalise it. That is the job of the block around "
    "the attention; this module ends with w_o and has no other parameters.",
    hint=1,
)
class ResidualAndNorm(Attention):
    def make_layers(self, d_model: int, bias: bool) -> None:
        super().make_layers(d_model, bias)
        self.layer_norm = nn.LayerNorm(d_model)

    def out(self, joined: Tensor, query: Tensor) -> Tensor:
        return self.layer_norm(self.w_o(joined) + query)


@misconception(
    "mha_residual",
    replaces="MultiHeadAttention",
    says="You add the query to the output. The residual connection belongs to the block around "
    "the attention; this module ends with w_o.",
    hint=5,
)
class Residual(Attention):
    def out(self, joined: Tensor, query: Tensor) -> Tensor:
        return self.w_o(joined) + query


# How forward is called


@misconception(
    "mha_value_first",
    replaces="MultiHeadAttention",
    says="You use the first argument as value and the third as query. Callers who name no "
    "arguments pass query, key, value: take them in that order, everywhere.",
    hint=4,
)
class ValueFirst(Attention):
    def forward(  # type: ignore[override]
        self, value: Tensor, key: Tensor, query: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        return super().forward(query, key, value, mask)


@misconception(
    "mha_short_names",
    replaces="MultiHeadAttention",
    says="Your forward gives its arguments other names than the exercise. Callers may write "
    "query=, key= and value=, so these names are part of the contract.",
)
class ShortNames(Attention):
    def forward(  # type: ignore[override]
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        return super().forward(q, k, v, mask)


@misconception(
    "mha_mask_required",
    replaces="MultiHeadAttention",
    says="Your forward requires a mask. Many calls have none: give it the default None.",
)
class MaskRequired(Attention):
    def forward(  # type: ignore[override]
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        return super().forward(query, key, value, mask)


@misconception(
    "mha_one_input",
    replaces="MultiHeadAttention",
    says="Your forward takes one input and can only do self-attention. Take query, key and value: "
    "in cross-attention they differ.",
    hint=4,
)
class OneInput(Attention):
    def forward(  # type: ignore[override]
        self, x: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        return super().forward(x, x, x, mask)


@misconception(
    "mha_tokens_before_batch",
    replaces="MultiHeadAttention",
    says="You read the inputs as [T, B, D], as nn.MultiheadAttention does by default, so the "
    "sequences of a batch attend to one another. Here the batch is the first axis.",
    hint=5,
)
class TokensBeforeBatch(Attention):
    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        q, k, v = (x.transpose(0, 1).contiguous() for x in (query, key, value))
        output, weights = super().forward(q, k, v, mask)
        return output.view(q.shape).transpose(0, 1), weights


@misconception(
    "mha_one_length_for_all",
    replaces="MultiHeadAttention",
    says="You read the number of tokens from the query and use it for key or value too. In "
    "cross-attention these have another length.",
    hint=4,
)
class OneLengthForAll(Attention):
    def heads(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        B, T, _ = q.shape
        q, k, v = (x.view(B, T, self.num_heads, self.d_k).transpose(1, 2) for x in (q, k, v))
        return q, k, v


@misconception(
    "mha_length_of_the_keys",
    replaces="MultiHeadAttention",
    says="You read the number of tokens from key or value and use it for the query too. In "
    "cross-attention the query has another length.",
    hint=4,
)
class LengthOfTheKeys(Attention):
    def heads(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        B, T, _ = k.shape
        q, k, v = (x.view(B, T, self.num_heads, self.d_k).transpose(1, 2) for x in (q, k, v))
        return q, k, v


# The projections


@misconception(
    "mha_relu_projections",
    replaces="MultiHeadAttention",
    says="You put a ReLU after the projections. They are plain linear maps: without negative "
    "numbers no key could ever lower a score.",
)
class ReluProjections(Attention):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(query, key, value)
        return F.relu(q), F.relu(k), F.relu(v)


# Splitting and joining the heads


@misconception(
    "mha_heads_and_size_exchanged",
    replaces="MultiHeadAttention",
    says="You make d_k heads of num_heads features each: the two numbers are exchanged. "
    "split_heads takes the number of heads, and finds d_k itself.",
    hint=7,
)
class HeadsAndSizeExchanged(Attention):
    def split(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        return x.view(B, T, self.d_k, self.num_heads).transpose(1, 2)

    def scale(self) -> float:
        return math.sqrt(self.num_heads)


# The scale


@misconception(
    "mha_scores_clamped",
    replaces="MultiHeadAttention",
    says="You raise negative scores to 0, as relu and clamp do, so all keys that fit badly count "
    "alike. A score may have either sign.",
    hint=5,
)
class ScoresClamped(Attention):
    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return super().scores(q, k).clamp(min=0.0)


# The mask


@misconception(
    "mha_minus_inf_after_softmax",
    replaces="MultiHeadAttention",
    says="You put -inf into the weights, after the softmax. It belongs in the scores, before the "
    "softmax, which turns it into a weight of 0.",
    hint=5,
)
class MinusInfAfterSoftmax(Attention):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        weights = torch.softmax(scores, dim=-1)
        return weights if mask is None else weights.masked_fill(mask == 0, -torch.inf)


@misconception(
    "mha_mask_remembered",
    replaces="MultiHeadAttention",
    says="You keep the mask in the module and use it again when the next call brings none. Each "
    "call must stand alone.",
)
class MaskRemembered(Attention):
    last_mask: Tensor | None = None

    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None:
            self.last_mask = mask
        return super().attend(scores, self.last_mask)


@misconception(
    "mha_causal_by_default",
    replaces="MultiHeadAttention",
    says="When no mask is given, you put a causal one of Tq x Tq in its place, which does not even "
    "fit if Tk is another number. Without a mask everything is allowed.",
    hint=5,
)
class CausalByDefault(Attention):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        if mask is None:
            Tq = scores.shape[-2]
            mask = torch.ones(Tq, Tq, dtype=torch.bool, device=scores.device).tril()
        return super().attend(scores, mask)


# The softmax


@misconception(
    "mha_softmax_float32",
    replaces="MultiHeadAttention",
    says="Your numbers become float32 on the way, often in the softmax, and then no longer fit "
    "the others. Convert them back to the dtype of the input.",
)
class SoftmaxFloat32(Attention):
    def weights(self, scores: Tensor) -> Tensor:
        return super().weights(scores.float())


# Dropout


class _PlainWeights(Attention):
    """It returns the weights from before dropout, so only the output shows a mistake in it."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        q, k, v = self.heads(*self.project(query, key, value))
        weights = self.attend(self.scores(q, k), mask)  # (B, H, Tq, Tk)
        return self.out(self.combine(self.drop(weights) @ v), query), weights


@misconception(
    "mha_dropout_twice_unseen",
    replaces="MultiHeadAttention",
    says="You apply dropout twice, to the weights that meet the values and to the output. Apply it "
    "once, to the weights.",
    hint=6,
)
class DropoutTwiceUnseen(_PlainWeights):
    def out(self, joined: Tensor, query: Tensor) -> Tensor:
        return self.dropout(self.w_o(joined))


@misconception(
    "mha_dropout_always_unseen",
    replaces="MultiHeadAttention",
    says="Your dropout is still active after eval(), on the weights that meet the values: "
    "F.dropout drops unless you pass training=self.training, F.scaled_dot_product_attention "
    "whatever the mode.",
    hint=6,
)
class DropoutAlwaysUnseen(_PlainWeights):
    def drop(self, weights: Tensor) -> Tensor:
        return F.dropout(weights, p=self.dropout.p)


@misconception(
    "mha_dropout_keeps_p_unseen",
    replaces="MultiHeadAttention",
    says="With the default dropout, 0.0, you drop every weight before it meets its value, as if it "
    "were the share that is kept. It is the share that is dropped.",
    hint=6,
)
class DropoutKeepsPUnseen(_PlainWeights):
    def make_dropout(self, p: float) -> nn.Dropout:
        return nn.Dropout(1.0 - p)


# What is returned


@misconception(
    "mha_output_only",
    replaces="MultiHeadAttention",
    says="You return only the output. The caller also wants the attention weights: return a pair, "
    "output first.",
    hint=5,
)
class OutputOnly(Attention):
    def result(self, output: Tensor, weights: Tensor) -> Tensor:  # type: ignore[override]
        return output


@misconception(
    "mha_weights_first",
    replaces="MultiHeadAttention",
    says="You return the weights before the output. The output comes first.",
    hint=5,
)
class WeightsFirst(Attention):
    def result(self, output: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return weights, output


@misconception(
    "mha_weights_averaged",
    replaces="MultiHeadAttention",
    says="You average the weights over the heads, as nn.MultiheadAttention does by default. "
    "Return each head's own: [B, H, Tq, Tk].",
    hint=5,
)
class WeightsAveraged(Attention):
    def result(self, output: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return output, weights.mean(dim=1)


@misconception(
    "mha_weights_folded",
    replaces="MultiHeadAttention",
    says="Batch and heads are folded into one axis of your weights. Give the heads their own axis "
    "again: [B, H, Tq, Tk].",
    hint=7,
)
class WeightsFolded(Attention):
    def result(self, output: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return output, weights.flatten(0, 1)


@misconception(
    "mha_weights_unmasked",
    replaces="MultiHeadAttention",
    says="Your output is right, but the weights that you return were computed without the mask. "
    "Return those that the output was made with.",
    hint=5,
)
class WeightsUnmasked(Attention):
    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        q, k, _ = self.heads(*self.project(query, key, value))
        output, _ = super().forward(query, key, value, mask)
        return output, self.weights(self.scores(q, k))


@misconception(
    "mha_scores_returned",
    replaces="MultiHeadAttention",
    says="Your second result is the scores before the softmax. Return the weights, whose rows sum "
    "to 1.",
    hint=5,
)
class ScoresReturned(Attention):
    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        q, k, _ = self.heads(*self.project(query, key, value))
        scores = self.scores(q, k)
        output, _ = super().forward(query, key, value, mask)
        return output, scores if mask is None else self.block(scores, mask)


# Two at once


@misconception(
    "mha_no_scale_mask_inverted",
    replaces="MultiHeadAttention",
    says="Two mistakes at once: your scores are not divided by sqrt(d_k), and you block where the "
    "mask is True, though True means allowed here.",
    hint=5,
)
class NoScaleMaskInverted(NoScale, MaskInverted):
    pass


@misconception(
    "mha_mask_inverted_minus_1e9",
    replaces="MultiHeadAttention",
    says="Two mistakes at once: you block where the mask is True, though True means allowed here, "
    "and with a large negative number such as -1e9 in place of -inf.",
    hint=5,
)
class MaskInvertedMinus1e9(Attention):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(mask.bool(), -1e9)


@misconception(
    "mha_mask_inverted_weights_averaged",
    replaces="MultiHeadAttention",
    says="Two habits of nn.MultiheadAttention at once: True blocks, and the weights are averaged "
    "over the heads. Here True allows, and each head's own weights are returned.",
    hint=5,
)
class MaskInvertedWeightsAveraged(MaskInverted, WeightsAveraged):
    pass


@misconception(
    "mha_split_and_join_by_view_no_value_error",
    replaces="MultiHeadAttention",
    says="Two mistakes at once: a view straight to [B, H, T, d_k] mixes tokens between the heads, "
    "and the constructor raises no ValueError for sizes that do not divide.",
    hint=3,
)
class SplitAndJoinByViewNoValueError(SplitAndJoinByView, NoValueError):
    pass


@misconception(
    "mha_split_by_view_no_scale",
    replaces="MultiHeadAttention",
    says="Two mistakes at once: a view straight to [B, H, T, d_k] mixes tokens between the heads, "
    "and the scores are not divided by sqrt(d_k).",
    hint=5,
)
class SplitByViewNoScale(SplitByView, NoScale):
    pass


@misconception(
    "mha_assert_default_init",
    replaces="MultiHeadAttention",
    says="Two mistakes at once: the sizes are checked with assert instead of a ValueError, and the "
    "initial values are left to nn.Linear. Set Xavier weights and zero biases.",
    hint=3,
)
class AssertDefaultInit(Assert, DefaultInit):
    pass


@misconception(
    "mha_no_value_error_default_init",
    replaces="MultiHeadAttention",
    says="Two mistakes at once: no ValueError for sizes that do not divide, and the initial values "
    "are left to nn.Linear. Check first, then set Xavier weights and zero biases.",
    hint=3,
)
class NoValueErrorDefaultInit(NoValueError, DefaultInit):
    pass


@misconception(
    "mha_output_only_no_biases",
    replaces="MultiHeadAttention",
    says="Two mistakes at once: you return the output without the weights, and your layers never "
    "have a bias. Return the pair, and pass the argument bias on.",
    hint=5,
)
class OutputOnlyNoBiases(OutputOnly, BiasNever):
    pass


# How a result looks beside the right one


@misconception(
    "mha_scaled_after_softmax_by_width",
    replaces="MultiHeadAttention",
    says="You divide the weights by sqrt(d_model), after the softmax, as a widely copied vision "
    "transformer does. Scale the scores instead, before the softmax, and by sqrt(d_k).",
    hint=5,
)
class ScaledAfterSoftmaxByWidth(Attention):
    def scale(self) -> float:
        return 1.0

    def weights(self, scores: Tensor) -> Tensor:
        return super().weights(scores) / math.sqrt(self.d_k * self.num_heads)


@symptom(
    "mha_single_keys",
    of="MultiHeadAttention",
    says="Your output is right only for queries that may look at a single key, where the weight is "
    "1 whatever the score. For all others it is wrong: look at how several keys share the "
    "attention.",
    hint=5,
)
def single_keys(
    got: tuple[Tensor, Tensor],
    expected: tuple[Tensor, Tensor],
    mask: Tensor,
) -> bool:
    allowed = (mask != 0).expand(expected[1].shape)  # (B, H, Tq, Tk)
    single = (allowed.sum(dim=-1) == 1).all(dim=1)  # (B, Tq)
    right = torch.isclose(got[0], expected[0], rtol=1e-3, atol=1e-4).all(dim=-1)  # (B, Tq)
    return bool(single.any()) and not single.all() and torch.equal(right, single)


@symptom(
    "mha_normalised",
    of="MultiHeadAttention",
    says="Each token of your output has mean 0 and standard deviation 1, as a LayerNorm leaves it. "
    "That, like a residual connection, is the job of the block around the attention; this module "
    "ends with w_o.",
    hint=5,
)
def normalised(got: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor]) -> bool:
    def is_normal(output: Tensor) -> bool:
        spread, mean = torch.std_mean(output.double(), dim=-1, correction=0)
        return bool(((spread - 1).abs() < 1e-2).all() and (mean.abs() < 1e-3).all())

    is_wide = expected[0].shape[-1] > 3
    return got[0].shape == expected[0].shape and is_wide and is_normal(got[0])


@symptom(
    "mha_weights_of_five_axes",
    of="MultiHeadAttention",
    says="With this mask your weights have five axes instead of four. A mask lines up with the "
    "scores of all heads, [B, H, Tq, Tk], as it is, counted from the last axis. The scores of a "
    "single head need only that head's part of it.",
    hint=5,
)
def weights_of_five_axes(
    got: tuple[Tensor, Tensor],
    expected: tuple[Tensor, Tensor],
    mask: Tensor | None = None,
) -> bool:
    return mask is not None and got[1].dim() == 5 and expected[1].dim() == 4


@symptom(
    "mha_weights_dropped",
    of="MultiHeadAttention",
    says="Some of your weights are 0, and all others are too large by one factor: that is dropout "
    "where none is asked for. Use the rate that the constructor is given, and drop in training "
    "mode only.",
    hint=6,
)
def weights_dropped(got: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor]) -> bool:
    weights, right = got[1], expected[1]
    if weights.shape != right.shape or not (weights[right == 0] == 0).all():
        return False
    sums = right.sum(-1)[right.any(-1)]
    if not torch.allclose(sums, torch.ones_like(sums), 0, 1e-3):
        return False  # the right weights are dropped, too
    kept = (weights != 0) & (right != 0)
    factors = (weights / right)[kept].double()
    dropped = int(((weights == 0) & (right != 0)).sum())
    return (
        dropped > 0
        and len(factors) > 1
        and bool(factors[0] > 1 + 1e-2)
        and torch.allclose(factors, factors[:1].expand_as(factors), 5e-3)
    )


@symptom(
    "mha_not_shares",
    of="MultiHeadAttention",
    says="The weights of a query must add up to 1, and yours add up to other numbers. A softmax "
    "over the keys, after scale and mask, makes such shares of the scores.",
    hint=5,
)
def not_shares(got: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor]) -> bool:
    weights, right = got[1], expected[1]
    seeing = right.any(-1)
    sums, due = weights.sum(-1)[seeing], right.sum(-1)[seeing]
    if weights.shape != right.shape or not torch.allclose(due, torch.ones_like(due), 0, 2e-2):
        return False
    if weights.isnan().any():
        return False
    for axis in (1, 2):  # shares of another axis are a mistake of their own
        over = weights.sum(axis)
        if (torch.isclose(over, torch.ones_like(over), 0, 2e-2) | (over == 0)).all():
            return False
    is_one = torch.isclose(sums, due, 1e-3, 1e-3)
    return bool(is_one.float().mean() < 0.5) and len(sums.double().round(decimals=3).unique()) > 2


@symptom(
    "mha_blocked_rows",
    of="MultiHeadAttention",
    says="Your result is wrong only for queries that may see no key. Their weights must all be 0, "
    "so that their output is the bias of w_o.",
    hint=5,
)
def blocked_rows(
    got: tuple[Tensor, Tensor],
    expected: tuple[Tensor, Tensor],
    mask: Tensor,
) -> bool:
    seeing = (mask != 0).expand(expected[1].shape).any(dim=-1)  # (B, H, Tq)
    wrong = ~torch.isclose(got[0], expected[0], 1e-3, 1e-4).all(-1)  # (B, Tq)
    shares_wrong = ~torch.isclose(got[1], expected[1], 1e-3, 1e-4).all(-1)  # (B, H, Tq)
    return (
        bool(shares_wrong.any())
        and not (wrong & seeing.all(1)).any()
        and not (shares_wrong & seeing).any()
    )
