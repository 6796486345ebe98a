"""Known misconceptions of the stage multi_head_attention: what people really write, and a sentence.

`_Base` is a correct module cut into steps; each misconception replaces one or two of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grader.misconceptions import Value, misconception, symptom, values


class _Base(nn.Module):
    """Multi-head attention in steps, drawing random numbers in the order of a usual solution."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        self.check(d_model, num_heads)
        self.d_model, self.num_heads, self.d_k = d_model, num_heads, d_model // num_heads
        self.make_layers(d_model, bias)
        self.initialise()
        self.dropout = self.make_dropout(dropout)

    def check(self, d_model: int, num_heads: int) -> None:
        if d_model % num_heads != 0:
            raise ValueError(f"d_model={d_model} does not divide into num_heads={num_heads}")

    def make_layers(self, d_model: int, bias: bool) -> None:
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)

    def initialise(self) -> None:
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                self.initialise_layer(layer)

    def initialise_layer(self, layer: nn.Linear) -> None:
        nn.init.xavier_uniform_(layer.weight)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)

    def make_dropout(self, p: float) -> nn.Dropout:
        return nn.Dropout(p)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        q, k, v = self.heads(*self.project(query, key, value))
        scores = self.scores(q, k)  # (B, H, Tq, Tk)
        weights = self.drop(self.attend(scores, mask))  # (B, H, Tq, Tk)
        output = self.out(self.combine(weights @ v), query)  # (B, Tq, D)
        return self.result(output, weights)

    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_q(query), self.w_k(key), self.w_v(value)

    def heads(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.split(q), self.split(k), self.split(v)

    def split(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        return x.view(B, T, self.num_heads, self.d_k).transpose(1, 2)  # (B, H, T, d_k)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k.transpose(-2, -1) / self.scale()

    def scale(self) -> float:
        return math.sqrt(self.d_k)

    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None:
            scores = self.block(scores, mask)
        return self.weights(scores)

    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(mask == 0, float("-inf"))

    def weights(self, scores: Tensor) -> Tensor:
        blocked = (scores == float("-inf")).all(dim=-1, keepdim=True)
        return torch.softmax(scores.masked_fill(blocked, 0.0), dim=-1).masked_fill(blocked, 0.0)

    def drop(self, weights: Tensor) -> Tensor:
        return self.dropout(weights)

    def combine(self, heads: Tensor) -> Tensor:
        return heads.transpose(1, 2).reshape(heads.shape[0], -1, self.d_model)  # (B, T, D)

    def out(self, x: Tensor, query: Tensor) -> Tensor:
        return self.w_o(x)

    def result(self, output: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return output, weights


@values(of="MultiHeadAttention")
def way(
    mha: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Iterator[Value | tuple[Value, ...]]:
    """The values on the way to the output; weights are those before dropout."""
    B, Tq, D = query.shape
    H = mha.num_heads

    def heads(x: Tensor) -> Tensor:
        return x.reshape(B, -1, H, D // H).transpose(1, 2)  # (B, H, T, d_k)

    q, k, v = mha.w_q(query), mha.w_k(key), mha.w_v(value)
    yield (
        Value("the projected query", q, "B Tq D"),
        Value("the projected key", k, "B Tk D"),
        Value("the projected value", v, "B Tk D"),
    )
    q, k, v = heads(q), heads(k), heads(v)
    yield (
        Value("the query's heads", q, "B H Tq d_k"),
        Value("the key's heads", k, "B H Tk d_k"),
        Value("the value's heads", v, "B H Tk d_k"),
    )
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
    yield Value("the output", mha.w_o(joined), "B Tq D")


# The constructor: sizes and layers


@misconception(
    "mha_no_value_error",
    replaces="MultiHeadAttention",
    says="Your constructor accepts a d_model that the heads do not divide, so an error comes late, "
    "if at all. Check it at the start and raise a ValueError.",
    hint=3,
)
class NoValueError(_Base):
    def check(self, d_model: int, num_heads: int) -> None:
        pass


@misconception(
    "mha_assert",
    replaces="MultiHeadAttention",
    says="Your constructor refuses sizes with an AssertionError, as assert does, which vanishes "
    "under python -O. A wrong argument deserves a ValueError.",
    hint=3,
)
class Assert(_Base):
    def check(self, d_model: int, num_heads: int) -> None:
        assert d_model % num_heads == 0, "d_model must be divisible by num_heads"


@misconception(
    "mha_bias_always",
    replaces="MultiHeadAttention",
    says="Your layers have a bias even with bias=False. Pass the argument on to each of the four.",
    hint=1,
)
class BiasAlways(_Base):
    def make_layers(self, d_model: int, bias: bool) -> None:
        super().make_layers(d_model, bias=True)


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

    def initialise_layer(self, layer: nn.Linear) -> None:
        nn.init.xavier_uniform_(layer.weight)
        if self.zeroed:
            nn.init.zeros_(layer.bias)


@misconception(
    "mha_bias_never",
    replaces="MultiHeadAttention",
    says="Your layers never have a bias. Pass the argument bias, True by default, on to each of "
    "the four.",
    hint=1,
)
class BiasNever(_Base):
    def make_layers(self, d_model: int, bias: bool) -> None:
        super().make_layers(d_model, bias=False)


@misconception(
    "mha_bias_of_output_only",
    replaces="MultiHeadAttention",
    says="Only w_o has a bias; w_q, w_k and w_v never have one. Pass the argument bias, True by "
    "default, on to each of the four.",
    hint=1,
)
class BiasOfOutputOnly(_Base):
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
class OutputBiasAlways(_Base):
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
class OtherNames(_Base):
    def make_layers(self, d_model: int, bias: bool) -> None:
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.out_proj = nn.Linear(d_model, d_model, bias=bias)

    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.q_proj(query), self.k_proj(key), self.v_proj(value)

    def out(self, x: Tensor, query: Tensor) -> Tensor:
        return self.out_proj(x)


@misconception(
    "mha_one_packed_layer",
    replaces="MultiHeadAttention",
    says="You pack queries, keys and values into one layer w_qkv. That is a bonus stage; here the "
    "layers are w_q, w_k and w_v, and saved weights are found by these names.",
    hint=1,
)
class OnePackedLayer(_Base):
    def make_layers(self, d_model: int, bias: bool) -> None:
        self.w_qkv = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)

    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        inputs = (query, key, value)
        q, k, v = (self.w_qkv(x).chunk(3, dim=-1)[i] for i, x in enumerate(inputs))
        return q.contiguous(), k.contiguous(), v.contiguous()


@misconception(
    "mha_query_and_key_share_a_layer",
    replaces="MultiHeadAttention",
    says="w_q and w_k are one and the same layer, so in self-attention queries equal keys. "
    "Create four separate layers.",
    hint=1,
)
class QueryAndKeyShareALayer(_Base):
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
class OneLayerForThree(_Base):
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
class OneLayerForAll(_Base):
    def make_layers(self, d_model: int, bias: bool) -> None:
        self.w_q = self.w_k = self.w_v = self.w_o = nn.Linear(d_model, d_model, bias=bias)


@misconception(
    "mha_layers_of_one_head",
    replaces="MultiHeadAttention",
    says="Your layers are d_k x d_k and work on heads that are split off first, so each head sees "
    "only its own slice of the input. Make them D x D: project first, then split.",
    hint=5,
)
class LayersOfOneHead(_Base):
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
class ScaleSaved(_Base):
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
class ResidualAndNorm(_Base):
    def make_layers(self, d_model: int, bias: bool) -> None:
        super().make_layers(d_model, bias)
        self.layer_norm = nn.LayerNorm(d_model)

    def out(self, x: Tensor, query: Tensor) -> Tensor:
        return self.layer_norm(self.w_o(x) + query)


@misconception(
    "mha_residual",
    replaces="MultiHeadAttention",
    says="You add the query to the output. The residual connection belongs to the block around "
    "the attention; this module ends with w_o.",
    hint=5,
)
class Residual(_Base):
    def out(self, x: Tensor, query: Tensor) -> Tensor:
        return self.w_o(x) + query


# The initial values


@misconception(
    "mha_default_init",
    replaces="MultiHeadAttention",
    says="Your layers keep nn.Linear's own initial values: weights about 0.58 times as wide as "
    "Xavier's, and random biases. Once the layers exist, set both: Xavier weights, zero biases.",
    hint=2,
)
class DefaultInit(_Base):
    def initialise(self) -> None:
        pass


@misconception(
    "mha_random_biases",
    replaces="MultiHeadAttention",
    says="Your weights start right, but nn.Linear starts its biases at random. Set them to zero.",
    hint=2,
)
class RandomBiases(_Base):
    def initialise_layer(self, layer: nn.Linear) -> None:
        nn.init.xavier_uniform_(layer.weight)


@misconception(
    "mha_w_o_default_init",
    replaces="MultiHeadAttention",
    says="w_q, w_k and w_v start as they should, but w_o is left to nn.Linear. All four start with "
    "Xavier weights and zero biases.",
    hint=1,
)
class WODefaultInit(_Base):
    def initialise_layer(self, layer: nn.Linear) -> None:
        if layer is not self.w_o:
            super().initialise_layer(layer)


@misconception(
    "mha_zero_biases_only",
    replaces="MultiHeadAttention",
    says="Your biases start at zero as they should, but the weights start as nn.Linear's do, "
    "about 0.58 times as wide as Xavier's. Give them Xavier values.",
    hint=2,
)
class ZeroBiasesOnly(_Base):
    def initialise_layer(self, layer: nn.Linear) -> None:
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


@misconception(
    "mha_normal_002",
    replaces="MultiHeadAttention",
    says="You start the weights from a normal distribution of width 0.02, as GPT-2 does. "
    "Xavier's width depends on the size of the layer: 1 / sqrt(D) here.",
    hint=2,
)
class Normal002(_Base):
    def initialise_layer(self, layer: nn.Linear) -> None:
        nn.init.normal_(layer.weight, std=0.02)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


# How forward is called


@misconception(
    "mha_value_first",
    replaces="MultiHeadAttention",
    says="Your forward takes value, key, query, in this order. Callers who name no arguments pass "
    "query, key, value: take them in that order.",
    hint=4,
)
class ValueFirst(_Base):
    def forward(  # type: ignore[override]
        self, value: Tensor, key: Tensor, query: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        return super().forward(query, key, value, mask)


@misconception(
    "mha_short_names",
    replaces="MultiHeadAttention",
    says="Your forward calls its arguments q, k and v. Callers may write query=, key= and value=, "
    "so these names are part of the contract.",
)
class ShortNames(_Base):
    def forward(  # type: ignore[override]
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        return super().forward(q, k, v, mask)


@misconception(
    "mha_mask_required",
    replaces="MultiHeadAttention",
    says="Your forward requires a mask. Many calls have none: give it the default None.",
)
class MaskRequired(_Base):
    def forward(  # type: ignore[override]
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        return super().forward(query, key, value, mask)


@misconception(
    "mha_one_input",
    replaces="MultiHeadAttention",
    says="Your forward takes one input x and can only do self-attention. Take query, key and "
    "value: in cross-attention they differ.",
    hint=4,
)
class OneInput(_Base):
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
class TokensBeforeBatch(_Base):
    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        q, k, v = (x.transpose(0, 1).contiguous() for x in (query, key, value))
        output, weights = super().forward(q, k, v, mask)
        return output.transpose(0, 1), weights


@misconception(
    "mha_one_length_for_all",
    replaces="MultiHeadAttention",
    says="You read the number of tokens from the query and use it for key and value too. In "
    "cross-attention these have another length.",
    hint=4,
)
class OneLengthForAll(_Base):
    def heads(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        B, T, _ = q.shape
        q, k, v = (x.view(B, T, self.num_heads, self.d_k).transpose(1, 2) for x in (q, k, v))
        return q, k, v


# The projections


@misconception(
    "mha_query_for_all",
    replaces="MultiHeadAttention",
    says="You compute queries, keys and values all from the query, so key and value are ignored. "
    "Each layer has its own input.",
    hint=4,
)
class QueryForAll(_Base):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_q(query), self.w_k(query), self.w_v(query)


@misconception(
    "mha_value_from_key",
    replaces="MultiHeadAttention",
    says="You compute the values from the key, so the argument value is ignored. The two are "
    "often the same tensor, but need not be.",
    hint=4,
)
class ValueFromKey(_Base):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_q(query), self.w_k(key), self.w_v(key)


@misconception(
    "mha_key_and_value_exchanged",
    replaces="MultiHeadAttention",
    says="You compute the keys from the argument value, and the values from key. When both are "
    "the same tensor, nobody notices.",
    hint=2,
)
class KeyAndValueExchanged(_Base):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_q(query), self.w_k(value), self.w_v(key)


@misconception(
    "mha_layers_exchanged",
    replaces="MultiHeadAttention",
    says="You send the query through w_k and the key through w_q. The module would train as well, "
    "but saved weights are found by name.",
    hint=2,
)
class LayersExchanged(_Base):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_k(query), self.w_q(key), self.w_v(value)


@misconception(
    "mha_key_through_w_q",
    replaces="MultiHeadAttention",
    says="You send the key through w_q, so w_k is never used (a copy and paste error?). Each "
    "input has its own layer.",
    hint=4,
)
class KeyThroughWQ(_Base):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_q(query), self.w_q(key), self.w_v(value)


@misconception(
    "mha_value_through_w_k",
    replaces="MultiHeadAttention",
    says="You send the value through w_k, so w_v is never used (a copy and paste error?). Each "
    "input has its own layer.",
    hint=4,
)
class ValueThroughWK(_Base):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_q(query), self.w_k(key), self.w_k(value)


@misconception(
    "mha_keys_for_values",
    replaces="MultiHeadAttention",
    says="You multiply the weights by the keys instead of the values, so w_v and the argument "
    "value have no effect.",
    hint=4,
)
class KeysForValues(_Base):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        k = self.w_k(key)
        return self.w_q(query), k, k


@misconception(
    "mha_all_through_w_v",
    replaces="MultiHeadAttention",
    says="You send query, key and value all through w_v, so w_q and w_k have no effect. A function "
    "made in a loop looks up the loop's variable when it is called: then it is the last layer.",
    hint=4,
)
class AllThroughWv(_Base):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_v(query), self.w_v(key), self.w_v(value)


@misconception(
    "mha_key_from_query",
    replaces="MultiHeadAttention",
    says="You compute the keys from the query, so the argument key is ignored. Only in "
    "self-attention are the two the same tensor.",
    hint=4,
)
class KeyFromQuery(_Base):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_q(query), self.w_k(query), self.w_v(value)


@misconception(
    "mha_key_and_value_layers_exchanged",
    replaces="MultiHeadAttention",
    says="You send the key through w_v and the value through w_k. The module would train as well, "
    "but saved weights are found by name.",
    hint=2,
)
class KeyAndValueLayersExchanged(_Base):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_q(query), self.w_v(key), self.w_k(value)


@misconception(
    "mha_value_not_projected",
    replaces="MultiHeadAttention",
    says="Your values are the argument itself: they never go through w_v. Each of the three inputs "
    "has its own layer.",
    hint=4,
)
class ValueNotProjected(_Base):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_q(query), self.w_k(key), value


@misconception(
    "mha_relu_projections",
    replaces="MultiHeadAttention",
    says="You put a ReLU after the projections. They are plain linear maps: without negative "
    "numbers no key could ever lower a score.",
)
class ReluProjections(_Base):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(query, key, value)
        return F.relu(q), F.relu(k), F.relu(v)


@misconception(
    "mha_key_detached",
    replaces="MultiHeadAttention",
    says="You detach the keys, so neither the key nor w_k gets a gradient and w_k never learns. "
    "Leave them in the graph.",
)
class KeyDetached(_Base):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(query, key, value)
        return q, k.detach(), v


@misconception(
    "mha_value_detached",
    replaces="MultiHeadAttention",
    says="No gradient reaches the values, so w_v never learns. Leave them in the graph: no "
    "detach(), no .data, no torch.no_grad().",
    hint=5,
)
class ValueDetached(_Base):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(query, key, value)
        return q, k, v.detach()


@misconception(
    "mha_weights_detached",
    replaces="MultiHeadAttention",
    says="No gradient reaches the weights, so w_q and w_k never learn. Leave scores and weights "
    "in the graph: no detach(), no .data, no torch.no_grad().",
    hint=5,
)
class WeightsDetached(_Base):
    def weights(self, scores: Tensor) -> Tensor:
        return super().weights(scores).detach()


@misconception(
    "mha_no_w_o",
    replaces="MultiHeadAttention",
    says="You have a layer w_o but return the heads without it. It is the only place where the "
    "heads are mixed.",
    hint=5,
)
class NoWO(_Base):
    def out(self, x: Tensor, query: Tensor) -> Tensor:
        return x


# Splitting and joining the heads


@misconception(
    "mha_heads_and_size_exchanged",
    replaces="MultiHeadAttention",
    says="You make d_k heads of num_heads features each: the two numbers are exchanged. "
    "split_heads takes the number of heads, and finds d_k itself.",
    hint=1,
)
class HeadsAndSizeExchanged(_Base):
    def split(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        return x.view(B, T, self.d_k, self.num_heads).transpose(1, 2)

    def scale(self) -> float:
        return math.sqrt(self.num_heads)


@misconception(
    "mha_split_by_view",
    replaces="MultiHeadAttention",
    says="You view straight to [B, H, T, d_k], which mixes tokens between the heads. Cut the "
    "features first, then swap tokens and heads.",
    hint=5,
)
class SplitByView(_Base):
    def split(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        return x.view(B, self.num_heads, T, self.d_k)


@misconception(
    "mha_join_by_view",
    replaces="MultiHeadAttention",
    says="You split the heads correctly but join them by a reshape alone, which mixes the tokens. "
    "Swap heads and tokens back before you merge.",
    hint=5,
)
class JoinByView(_Base):
    def combine(self, heads: Tensor) -> Tensor:
        B, _, T, _ = heads.shape
        return heads.reshape(B, T, self.d_model)


@misconception(
    "mha_split_and_join_by_view",
    replaces="MultiHeadAttention",
    says="You view straight to [B, H, T, d_k] and back again. It looks consistent, but a head "
    "gets the next T * d_k numbers, not its part of every token: swap tokens and heads both ways.",
    hint=5,
)
class SplitAndJoinByView(SplitByView, JoinByView):
    pass


@misconception(
    "mha_interleaved",
    replaces="MultiHeadAttention",
    says="Your heads take every H-th feature, both when you split and when you join. The module "
    "would train, but saved weights expect d_k neighbouring features in a head.",
    hint=5,
)
class Interleaved(_Base):
    def split(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        return x.view(B, T, self.d_k, self.num_heads).permute(0, 3, 1, 2)

    def combine(self, heads: Tensor) -> Tensor:
        B, _, T, _ = heads.shape
        return heads.permute(0, 2, 3, 1).reshape(B, T, self.d_model)


@misconception(
    "mha_interleaved_split",
    replaces="MultiHeadAttention",
    says="Your split gives each head every H-th feature, but your join puts the heads side by "
    "side. Split with view(B, T, H, d_k), so that a head gets d_k neighbouring features.",
    hint=5,
)
class InterleavedSplit(_Base):
    def split(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        return x.view(B, T, self.d_k, self.num_heads).permute(0, 3, 1, 2)


@misconception(
    "mha_interleaved_join",
    replaces="MultiHeadAttention",
    says="Your split gives each head d_k neighbouring features, but your join lets features of the "
    "heads alternate. Join so that the heads stand side by side.",
    hint=5,
)
class InterleavedJoin(_Base):
    def combine(self, heads: Tensor) -> Tensor:
        return heads.permute(0, 2, 3, 1).flatten(2)


@misconception(
    "mha_heads_attend_to_heads",
    replaces="MultiHeadAttention",
    says="You never swap tokens and heads, so within each token heads attend to heads. Tokens "
    "must attend to tokens, in every head.",
    hint=7,
)
class HeadsAttendToHeads(_Base):
    def split(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        return x.view(B, T, self.num_heads, self.d_k)

    def combine(self, heads: Tensor) -> Tensor:
        B, T, _, _ = heads.shape
        return heads.reshape(B, T, self.d_model)


@misconception(
    "mha_heads_averaged",
    replaces="MultiHeadAttention",
    says="You average the heads and repeat the average H times, so what each one found is lost. "
    "Lay them side by side instead.",
    hint=5,
)
class HeadsAveraged(_Base):
    def combine(self, heads: Tensor) -> Tensor:
        return heads.mean(dim=1).repeat(1, 1, self.num_heads)


# The scale


@misconception(
    "mha_no_scale",
    replaces="MultiHeadAttention",
    says="Your scores are not scaled. Their standard deviation grows with sqrt(d_k): "
    "divide by it before mask and softmax.",
    hint=5,
)
class NoScale(_Base):
    def scale(self) -> float:
        return 1.0


@misconception(
    "mha_scale_by_d_k",
    replaces="MultiHeadAttention",
    says="Your scores are divided by d_k, perhaps by its root twice: that is too much. "
    "Their standard deviation grows with the root of d_k.",
    hint=5,
)
class ScaleByDK(_Base):
    def scale(self) -> float:
        return float(self.d_k)


@misconception(
    "mha_scale_by_d_model",
    replaces="MultiHeadAttention",
    says="You divide the scores by the root of d_model. One head's product sums over its own d_k "
    "features only.",
    hint=5,
)
class ScaleByDModel(_Base):
    def scale(self) -> float:
        return math.sqrt(self.d_model)


@misconception(
    "mha_scores_clamped",
    replaces="MultiHeadAttention",
    says="You raise negative scores to 0, as relu and clamp do, so all keys that fit badly count "
    "alike. A score may have either sign.",
    hint=5,
)
class ScoresClamped(_Base):
    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return super().scores(q, k).clamp(min=0.0)


# The mask


@misconception(
    "mha_mask_inverted",
    replaces="MultiHeadAttention",
    says="You block where the mask is True, as nn.MultiheadAttention does. "
    "In this course True means allowed.",
    hint=5,
)
class MaskInverted(_Base):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(mask.bool(), float("-inf"))


@misconception(
    "mha_mask_ignored",
    replaces="MultiHeadAttention",
    says="Your mask has no effect. Apply it between the scores and the softmax, and use the "
    "result: masked_fill returns a new tensor.",
    hint=5,
)
class MaskIgnored(_Base):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores


@misconception(
    "mha_mask_added",
    replaces="MultiHeadAttention",
    says="You add the mask to the scores, so blocked keys only fall behind by 1. This mask says "
    "yes or no: blocked scores must become -inf.",
    hint=5,
)
class MaskAdded(_Base):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores + mask


@misconception(
    "mha_mask_wrong_sign",
    replaces="MultiHeadAttention",
    says="You add a large positive number to blocked scores, so blocked keys take all the "
    "attention. The minus sign is missing; best fill in -inf.",
    hint=5,
)
class MaskWrongSign(_Base):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores + (1.0 - mask.to(scores.dtype)) * 1e9


@misconception(
    "mha_mask_plus_inf",
    replaces="MultiHeadAttention",
    says="You fill blocked positions with +inf, and the softmax makes NaN of it: inf minus inf. "
    "Fill them with -inf.",
    hint=5,
)
class MaskPlusInf(_Base):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(mask == 0, float("inf"))


@misconception(
    "mha_mask_times_inf",
    replaces="MultiHeadAttention",
    says="You multiply -inf by a 0/1 mask, and 0 times inf is NaN at every allowed position. Fill "
    "the blocked ones with -inf: masked_fill or torch.where.",
    hint=5,
)
class MaskTimesInf(_Base):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores + (1.0 - mask.to(scores.dtype)) * float("-inf")


@misconception(
    "mha_mask_multiplied",
    replaces="MultiHeadAttention",
    says="You multiply the scores by the mask, so blocked ones become 0. "
    "exp(0) is 1, and they still get weight; only -inf becomes 0 in the softmax.",
    hint=5,
)
class MaskMultiplied(_Base):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores * mask


@misconception(
    "mha_mask_after_softmax",
    replaces="MultiHeadAttention",
    says="You mask the weights after the softmax, so blocked keys have already taken their "
    "share and rows no longer sum to 1. Mask the scores, before the softmax.",
    hint=5,
)
class MaskAfterSoftmax(_Base):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        weights = torch.softmax(scores, dim=-1)
        return weights if mask is None else weights.masked_fill(mask == 0, 0.0)


@misconception(
    "mha_mask_renormalised",
    replaces="MultiHeadAttention",
    says="You mask the weights after the softmax and divide by what is left. If a blocked key has "
    "a far larger score, almost nothing is left for the allowed ones. Mask the scores, before the "
    "softmax.",
    hint=5,
)
class MaskRenormalised(_Base):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        weights = torch.softmax(scores, dim=-1)
        if mask is None:
            return weights
        weights = weights * (mask != 0)
        return weights / (weights.sum(dim=-1, keepdim=True) + 1e-9)


@misconception(
    "mha_mask_adds_minus_10000",
    replaces="MultiHeadAttention",
    says="A query that may look at nothing looks at its keys as if nothing were blocked, as when "
    "you add -10000 to all its scores, as BERT does. Use -inf and give such a row zeros.",
    hint=5,
)
class MaskAddsMinus10000(_Base):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores + (1.0 - mask.to(scores.dtype)) * -10000.0


@misconception(
    "mha_minus_1e9",
    replaces="MultiHeadAttention",
    says="A query that may look at nothing looks at all keys equally, as when you block with a "
    "large negative number such as -1e9. Use -inf and give such a row zeros.",
    hint=5,
)
class Minus1e9(_Base):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(mask == 0, -1e9)


@misconception(
    "mha_blocked_nan",
    replaces="MultiHeadAttention",
    says="If a query may look at nothing, your softmax gives NaN, which spreads through the "
    "output. Your attention_weights gives zeros instead: use it.",
    hint=5,
)
class BlockedNan(_Base):
    def weights(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, dim=-1)


@misconception(
    "mha_mask_extra_axis",
    replaces="MultiHeadAttention",
    says="You give every mask another axis. It already lines up with the scores, counted from the "
    "last axis; broadcasting does the rest.",
    hint=5,
)
class MaskExtraAxis(_Base):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(mask.unsqueeze(1) == 0, float("-inf"))


@misconception(
    "mha_mask_three_axes_by_sequence",
    replaces="MultiHeadAttention",
    says="You read a mask with three axes as [B, Tq, Tk]. Broadcasting counts axes from the last "
    "one, so it is [H, Tq, Tk] and needs no further axis.",
    hint=5,
)
class MaskThreeAxesBySequence(_Base):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        mask = mask.unsqueeze(1) if mask.ndim == 3 else mask
        return scores.masked_fill(mask == 0, float("-inf"))


@misconception(
    "mha_mask_of_first_head",
    replaces="MultiHeadAttention",
    says="All your heads use the first head's mask. A mask such as [1, H, 1, Tk] may differ from "
    "head to head: leave its head axis as it is.",
    hint=5,
)
class MaskOfFirstHead(_Base):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return super().block(scores, mask[:, :1] if mask.dim() == 4 else mask)


@misconception(
    "mha_mask_of_another",
    replaces="MultiHeadAttention",
    says="You repeat the masks in the wrong order, so a sequence gets the mask of another one. "
    "All heads of one sequence share its mask: broadcasting does that.",
)
class MaskOfAnother(_Base):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        one_a_sequence = mask.expand(scores.shape)[:, 0]  # (B, Tq, Tk)
        one_a_head = one_a_sequence.repeat(self.num_heads, 1, 1)  # (H * B, Tq, Tk)
        return scores.masked_fill(one_a_head.view(scores.shape) == 0, float("-inf"))


@misconception(
    "mha_mask_remembered",
    replaces="MultiHeadAttention",
    says="You keep the mask in the module and use it again when the next call brings none. Each "
    "call must stand alone.",
)
class MaskRemembered(_Base):
    last_mask: Tensor | None = None

    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None:
            self.last_mask = mask
        return super().attend(scores, self.last_mask)


@misconception(
    "mha_mask_in_place",
    replaces="MultiHeadAttention",
    says="You invert the mask in place. It belongs to the caller, whose next call would get it "
    "inverted: make a new tensor.",
)
class MaskInPlace(_Base):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(mask.eq_(0).bool(), float("-inf"))


@misconception(
    "mha_always_causal",
    replaces="MultiHeadAttention",
    says="You always block the future, even when no mask is given. Only the caller knows whether "
    "that is wanted, and says so with a mask.",
)
class AlwaysCausal(_Base):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        past = torch.ones_like(scores, dtype=torch.bool).tril()
        return super().attend(scores.masked_fill(~past, float("-inf")), mask)


@misconception(
    "mha_causal_without_mask",
    replaces="MultiHeadAttention",
    says="When no mask is given, you block the future. Without a mask everything is allowed; only "
    "the caller knows whether more is wanted.",
    hint=5,
)
class CausalWithoutMask(_Base):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        Tq, Tk = scores.shape[-2:]
        if mask is None and Tq == Tk:
            mask = torch.ones(Tq, Tk, dtype=torch.bool, device=scores.device).tril()
        return super().attend(scores, mask)


@misconception(
    "mha_causal_by_default",
    replaces="MultiHeadAttention",
    says="When no mask is given, you put a causal one of Tq x Tq in its place, which does not even "
    "fit if Tk is another number. Without a mask everything is allowed.",
    hint=5,
)
class CausalByDefault(_Base):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        if mask is None:
            Tq = scores.shape[-2]
            mask = torch.ones(Tq, Tq, dtype=torch.bool, device=scores.device).tril()
        return super().attend(scores, mask)


# The softmax


@misconception(
    "mha_softmax_over_queries",
    replaces="MultiHeadAttention",
    says="Your softmax runs over the queries. Each query shares its attention among the keys, the "
    "last axis.",
    hint=5,
)
class SoftmaxOverQueries(_Base):
    def weights(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, dim=-2)


@misconception(
    "mha_softmax_over_heads",
    replaces="MultiHeadAttention",
    says="Your softmax runs over the heads, axis 1. Each head stands alone; "
    "normalise over the keys, the last axis.",
    hint=5,
)
class SoftmaxOverHeads(_Base):
    def weights(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, dim=1)


@misconception(
    "mha_softmax_over_queries_blocked_mended",
    replaces="MultiHeadAttention",
    says="You handle blocked rows, but your softmax runs over the queries. Each query shares its "
    "attention among the keys, the last axis.",
    hint=5,
)
class SoftmaxOverQueriesBlockedMended(_Base):
    axis = -2

    def weights(self, scores: Tensor) -> Tensor:
        blocked = (scores == float("-inf")).all(dim=-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(blocked, 0.0), dim=self.axis)
        return weights.masked_fill(blocked, 0.0)


@misconception(
    "mha_softmax_over_heads_blocked_mended",
    replaces="MultiHeadAttention",
    says="You handle blocked rows, but your softmax runs over the heads, axis 1. Each head stands "
    "alone; normalise over the keys, the last axis.",
    hint=5,
)
class SoftmaxOverHeadsBlockedMended(SoftmaxOverQueriesBlockedMended):
    axis = 1


@misconception(
    "mha_softmax_over_queries_nan_to_num",
    replaces="MultiHeadAttention",
    says="Your softmax runs over the queries, and you put 0 where it would give NaN. Each query "
    "shares its attention among the keys, the last axis.",
    hint=5,
)
class SoftmaxOverQueriesNanToNum(_Base):
    def weights(self, scores: Tensor) -> Tensor:
        return torch.nan_to_num(torch.softmax(scores, dim=-2))


@misconception(
    "mha_softmax_over_heads_nan_to_num",
    replaces="MultiHeadAttention",
    says="Your softmax runs over the heads, axis 1, and you put 0 where it would give NaN. Each "
    "head stands alone; normalise over the keys, the last axis.",
    hint=5,
)
class SoftmaxOverHeadsNanToNum(_Base):
    def weights(self, scores: Tensor) -> Tensor:
        return torch.nan_to_num(torch.softmax(scores, dim=1))


@misconception(
    "mha_softmax_twice",
    replaces="MultiHeadAttention",
    says="You apply the softmax twice. The second time it gets shares between 0 and 1, so all "
    "weights come out nearly equal, and blocked keys get some, too.",
    hint=5,
)
class SoftmaxTwice(_Base):
    def weights(self, scores: Tensor) -> Tensor:
        return super().weights(super().weights(scores))


@misconception(
    "mha_queries_and_keys_exchanged",
    replaces="MultiHeadAttention",
    says="You swap queries and keys when you compute the scores. Rows are queries, columns are "
    "keys: q k^T.",
    hint=4,
)
class QueriesAndKeysExchanged(_Base):
    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return super().scores(k, q)


@misconception(
    "mha_values_added_up",
    replaces="MultiHeadAttention",
    says="Each head fetches the values of all heads added up. In einsum a letter that only one "
    "input has is summed away: give the heads of weights and values the same one.",
    hint=4,
)
class ValuesAddedUp(_Base):
    def heads(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().heads(q, k, v)
        return q, k, v.sum(dim=1, keepdim=True)


@misconception(
    "mha_scaled_after_softmax",
    replaces="MultiHeadAttention",
    says="You divide the weights by sqrt(d_k), after the softmax. Scale the scores instead: the "
    "weights of a query sum to 1.",
    hint=4,
)
class ScaledAfterSoftmax(_Base):
    def scale(self) -> float:
        return 1.0

    def weights(self, scores: Tensor) -> Tensor:
        return super().weights(scores) / math.sqrt(self.d_k)


@misconception(
    "mha_heads_scaled",
    replaces="MultiHeadAttention",
    says="You divide by sqrt(d_k) after the softmax, on the way to the values. Scale the scores "
    "instead, before the softmax.",
    hint=4,
)
class HeadsScaled(_Base):
    def scale(self) -> float:
        return 1.0

    def combine(self, heads: Tensor) -> Tensor:
        return super().combine(heads) / math.sqrt(self.d_k)


@misconception(
    "mha_softmax_float32",
    replaces="MultiHeadAttention",
    says="Your softmax turns the weights into float32, and then they no longer fit the values. "
    "Convert them back to the dtype of the input.",
)
class SoftmaxFloat32(_Base):
    def weights(self, scores: Tensor) -> Tensor:
        return super().weights(scores.float())


# Dropout


@misconception(
    "mha_dropout_on_output",
    replaces="MultiHeadAttention",
    says="You drop parts of the output. In this module dropout acts on the attention weights, "
    "before they meet the values.",
    hint=6,
)
class DropoutOnOutput(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        return weights

    def out(self, x: Tensor, query: Tensor) -> Tensor:
        return self.dropout(self.w_o(x))


@misconception(
    "mha_dropout_twice",
    replaces="MultiHeadAttention",
    says="You apply dropout twice, to the weights and to the output. Apply it once, to the "
    "weights.",
    hint=6,
)
class DropoutTwice(_Base):
    def out(self, x: Tensor, query: Tensor) -> Tensor:
        return self.dropout(self.w_o(x))


class _PlainWeights(_Base):
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
    def out(self, x: Tensor, query: Tensor) -> Tensor:
        return self.dropout(self.w_o(x))


@misconception(
    "mha_dropout_twice_on_weights",
    replaces="MultiHeadAttention",
    says="Your weights go through dropout twice, so far more of them are dropped than the rate "
    "says. Apply it once.",
    hint=6,
)
class DropoutTwiceOnWeights(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        return self.dropout(self.dropout(weights))


@misconception(
    "mha_dropout_on_values",
    replaces="MultiHeadAttention",
    says="You drop parts of the values. In this module dropout acts on the attention weights, "
    "before they meet the values.",
    hint=6,
)
class DropoutOnValues(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        return weights

    def heads(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().heads(q, k, v)
        return q, k, self.dropout(v)


@misconception(
    "mha_dropout_on_heads",
    replaces="MultiHeadAttention",
    says="You drop parts of the joined heads. In this module dropout acts on the attention "
    "weights, before they meet the values.",
    hint=6,
)
class DropoutOnHeads(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        return weights

    def combine(self, heads: Tensor) -> Tensor:
        return self.dropout(super().combine(heads))


@misconception(
    "mha_dropout_on_context",
    replaces="MultiHeadAttention",
    says="You drop parts of what each head returns. In this module dropout acts on the attention "
    "weights, before they meet the values.",
    hint=6,
)
class DropoutOnContext(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        return weights

    def combine(self, heads: Tensor) -> Tensor:
        return super().combine(self.dropout(heads))


@misconception(
    "mha_dropout_always",
    replaces="MultiHeadAttention",
    says="Your dropout is still active after eval(): F.dropout drops unless you pass "
    "training=self.training. An nn.Dropout layer knows the mode by itself.",
    hint=6,
)
class DropoutAlways(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        return F.dropout(weights, p=self.dropout.p)


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
    "mha_dropout_never",
    replaces="MultiHeadAttention",
    says="In training mode you drop none of the weights. Apply dropout to the attention weights, "
    "and use what it returns: it changes no tensor in place.",
    hint=6,
)
class DropoutNever(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        return weights


@misconception(
    "mha_dropout_ends_with_eval",
    replaces="MultiHeadAttention",
    says="After one call in evaluation mode your module drops nothing any more, not even in "
    "training mode: the call changes a rate that the module keeps. Leave it, and choose in each "
    "call by self.training, or use nn.Dropout.",
    hint=6,
)
class DropoutEndsWithEval(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        if not self.training:
            self.dropout.p = 0.0
        return super().drop(weights)


@misconception(
    "mha_dropout_not_rescaled",
    replaces="MultiHeadAttention",
    says="You drop weights but leave the others as they are, so the sums are smaller in training "
    "than in eval. Multiply the kept ones by 1 / (1 - p).",
    hint=6,
)
class DropoutNotRescaled(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        if not self.training:
            return weights
        return weights * (torch.rand_like(weights) > self.dropout.p)


@misconception(
    "mha_dropout_on_scores",
    replaces="MultiHeadAttention",
    says="You apply dropout before the softmax. A score of 0 still gets weight there; drop the "
    "weights, after the softmax.",
    hint=6,
)
class DropoutOnScores(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        return weights

    def weights(self, scores: Tensor) -> Tensor:
        return super().weights(self.dropout(scores))


@misconception(
    "mha_dropout_renormalised",
    replaces="MultiHeadAttention",
    says="After dropout you divide the weights by their sum again. Dropout already scales up what "
    "it keeps, so that the sum is right on average; leave the weights as they are.",
    hint=6,
)
class DropoutRenormalised(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        kept = self.dropout(weights)
        return kept / kept.sum(dim=-1, keepdim=True).clamp(min=1e-9) if self.training else kept


@misconception(
    "mha_dropout_keeps_p",
    replaces="MultiHeadAttention",
    says="With the default dropout, 0.0, you drop every weight, as if it were the share that is "
    "kept, or as if nn.Dropout got another argument. It is the share that is dropped.",
    hint=6,
)
class DropoutKeepsP(_Base):
    def make_dropout(self, p: float) -> nn.Dropout:
        return nn.Dropout(1.0 - p)


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


@misconception(
    "mha_dropout_rate_unused",
    replaces="MultiHeadAttention",
    says="You drop one half whatever the rate, as nn.Dropout does if you give it none. Pass the "
    "argument dropout on to it.",
    hint=6,
)
class DropoutRateUnused(_Base):
    def make_dropout(self, p: float) -> nn.Dropout:
        return nn.Dropout()


@misconception(
    "mha_dropout_always_a_tenth",
    replaces="MultiHeadAttention",
    says="You drop one tenth of the weights whatever the rate. Pass the argument dropout on to "
    "nn.Dropout; its default is 0.0.",
    hint=6,
)
class DropoutAlwaysATenth(_Base):
    def make_dropout(self, p: float) -> nn.Dropout:
        return nn.Dropout(0.1)


@misconception(
    "mha_dropout_default",
    replaces="MultiHeadAttention",
    says="Your dropout is 0.1 by default. The default must be 0.0.",
    hint=6,
)
class DropoutDefault(_Base):
    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.1, bias: bool = True
    ) -> None:
        super().__init__(d_model, num_heads, dropout, bias)


# What is returned


@misconception(
    "mha_output_only",
    replaces="MultiHeadAttention",
    says="You return only the output. The caller also wants the attention weights: return a pair, "
    "output first.",
    hint=5,
)
class OutputOnly(_Base):
    def result(self, output: Tensor, weights: Tensor) -> Tensor:  # type: ignore[override]
        return output


@misconception(
    "mha_weights_first",
    replaces="MultiHeadAttention",
    says="You return the weights before the output. The output comes first.",
    hint=5,
)
class WeightsFirst(_Base):
    def result(self, output: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return weights, output


@misconception(
    "mha_weights_averaged",
    replaces="MultiHeadAttention",
    says="You average the weights over the heads, as nn.MultiheadAttention does by default. "
    "Return each head's own: [B, H, Tq, Tk].",
    hint=5,
)
class WeightsAveraged(_Base):
    def result(self, output: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return output, weights.mean(dim=1)


@misconception(
    "mha_weights_folded",
    replaces="MultiHeadAttention",
    says="Batch and heads are folded into one axis of your weights. Give the heads their own axis "
    "again: [B, H, Tq, Tk].",
    hint=7,
)
class WeightsFolded(_Base):
    def result(self, output: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return output, weights.flatten(0, 1)


@misconception(
    "mha_weights_unmasked",
    replaces="MultiHeadAttention",
    says="Your output is right, but the weights that you return were computed without the mask. "
    "Return those that the output was made with.",
    hint=5,
)
class WeightsUnmasked(_Base):
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
class ScoresReturned(_Base):
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
class MaskInvertedMinus1e9(_Base):
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
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
) -> bool:
    allowed = (mask != 0).expand(expected[1].shape)  # (B, H, Tq, Tk)
    single = (allowed.sum(dim=-1) == 1).all(dim=1)  # (B, Tq)
    right = torch.isclose(got[0], expected[0], rtol=1e-3, atol=1e-4).all(dim=-1)  # (B, Tq)
    return bool(single.any()) and not single.all() and torch.equal(right, single)


@symptom(
    "mha_weights_of_five_axes",
    of="MultiHeadAttention",
    says="With this mask your weights have five axes instead of four. A mask needs no further "
    "axis: it already lines up with the scores, counted from the last axis.",
    hint=5,
)
def weights_of_five_axes(
    got: tuple[Tensor, Tensor],
    expected: tuple[Tensor, Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
) -> bool:
    return mask is not None and got[1].dim() == 5 and expected[1].dim() == 4


@symptom(
    "mha_not_shares",
    of="MultiHeadAttention",
    says="The weights of a query must add up to 1, and yours add up to other numbers. A softmax "
    "over the keys, after scale and mask, makes such shares of the scores.",
    hint=5,
)
def not_shares(
    got: tuple[Tensor, Tensor],
    expected: tuple[Tensor, Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
) -> bool:
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
    query: Tensor,
    key: Tensor,
    value: Tensor,
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
