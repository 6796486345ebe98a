"""Known misconceptions of the stage fused_qkv: what people really write, and a sentence for each.

Those that other stages share are in _attention.py. `_Base` is a correct module cut into steps; each
misconception replaces one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from _attention import Attention, usual_mistakes, values_from_heads
from torch import Tensor, nn

from grader.misconceptions import Value, misconception, symptom, values


class _Base(Attention):
    def make_layers(self, d_model: int, bias: bool) -> None:
        self.w_qkv = self.linear(d_model, 3 * d_model, bias)
        self.w_o = self.linear(d_model, d_model, bias)

    def start_weight(self, layer: nn.Linear) -> None:
        for part in layer.weight.split(layer.in_features):  # each third as a layer of its own
            nn.init.xavier_uniform_(part)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        q, k, v = self.parts(self.w_qkv(x))  # (B, H, T, d_k)
        weights = self.drop(self.attend(self.scores(q, k), mask))
        return self.out(self.combine(weights @ v), x), weights

    def parts(self, packed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.heads(*packed.chunk(3, dim=-1))


@values(of="FusedMultiHeadAttention")
def way(module: Any, x: Tensor, mask: Tensor | None = None) -> Iterator[Value | tuple[Value, ...]]:
    """The values on the way to the output; weights are those before dropout."""
    B, T, _ = x.shape
    packed = module.w_qkv(x)
    yield Value("the packed projection", packed, "B T 3*D")
    q, k, v = packed.reshape(B, T, 3, module.num_heads, -1).permute(2, 0, 3, 1, 4)
    yield (
        Value("the query's heads", q, "B H T d_k"),
        Value("the key's heads", k, "B H T d_k"),
        Value("the value's heads", v, "B H T d_k"),
    )
    yield from values_from_heads(module, q, k, v, mask, tokens="T")


usual = usual_mistakes(
    _Base,
    "FusedMultiHeadAttention",
    "fused",
    without=(
        "start_gain_of_three",  # Xavier over all of w_qkv, as the stage allows
        "dropout_default",
        "dropout_on_heads",
        "dropout_on_projections",
        "interleaved",
        "queries_and_keys_exchanged",
        "random_biases",
        "split_and_join_by_view",
    ),
    check=1,
    bias=1,
    start=1,
    heads=3,
    scale=4,
    mask=4,
    softmax=4,
    blocked=4,
    dropout=4,
)


# The module


@misconception(
    "fused_dropout_on_packed",
    replaces="FusedMultiHeadAttention",
    says="You drop parts of the packed projection: of queries, keys and values. In this module "
    "dropout acts on the attention weights, after the softmax.",
    hint=4,
)
class DropoutOnPacked(_Base):
    def drop(self, weights: Tensor) -> Tensor:
        return weights

    def parts(self, packed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return super().parts(self.dropout(packed))


@misconception(
    "fused_heads_before_parts",
    replaces="FusedMultiHeadAttention",
    says="You cut the packed features into heads first and each head into q, k and v. The rows of "
    "w_qkv are all queries, then all keys, then all values: cut into three first.",
    hint=3,
)
class HeadsBeforeParts(_Base):
    def parts(self, packed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        heads = packed.unflatten(-1, (self.num_heads, 3 * self.d_k)).transpose(1, 2)
        q, k, v = heads.chunk(3, dim=-1)
        return q, k, v


@misconception(
    "fused_every_third",
    replaces="FusedMultiHeadAttention",
    says="You give every third packed feature to the queries. The rows of w_qkv come in three "
    "blocks of D.",
    hint=3,
)
class EveryThird(_Base):
    def parts(self, packed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = packed.unflatten(-1, (-1, 3)).unbind(-1)
        return self.split(q), self.split(k), self.split(v)


@misconception(
    "fused_heads_last_of_all",
    replaces="FusedMultiHeadAttention",
    says="You cut the packed features into (d_k, 3, H). The rows of w_qkv are in the order of "
    "(3, H, d_k): parts, then heads, then the features of a head.",
    hint=3,
)
class HeadsLastOfAll(_Base):
    def parts(self, packed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        cut = packed.unflatten(-1, (self.d_k, 3, self.num_heads))
        q, k, v = cut.permute(3, 0, 4, 1, 2)
        return q, k, v


@misconception(
    "fused_keys_first",
    replaces="FusedMultiHeadAttention",
    says="You read the first block of w_qkv as the keys and the second as the queries. "
    "The order is q, k, v.",
    hint=2,
)
class KeysFirst(_Base):
    def parts(self, packed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().parts(packed)
        return k, q, v


@misconception(
    "fused_values_first",
    replaces="FusedMultiHeadAttention",
    says="You read the first block of w_qkv as the values and the last as the queries. "
    "The order is q, k, v.",
    hint=2,
)
class ValuesFirst(_Base):
    def parts(self, packed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().parts(packed)
        return v, k, q


@misconception(
    "fused_values_second",
    replaces="FusedMultiHeadAttention",
    says="You read the second block of w_qkv as the values and the last as the keys. "
    "The order is q, k, v.",
    hint=2,
)
class ValuesSecond(_Base):
    def parts(self, packed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().parts(packed)
        return q, v, k


# As most answers, these two start w_qkv as one matrix: what they draw comes before dropout's draws.


class _WholeStart(_Base):
    def start_weight(self, layer: nn.Linear) -> None:
        nn.init.xavier_uniform_(layer.weight)


@misconception(
    "fused_random_biases",
    replaces="FusedMultiHeadAttention",
    says="Your weights start right, but nn.Linear starts its biases at random. Set them to zero.",
    hint=1,
)
class RandomBiases(_WholeStart):
    def start_bias(self, bias: Tensor) -> None:
        pass


@misconception(
    "fused_dropout_default",
    replaces="FusedMultiHeadAttention",
    says="Your dropout is 0.1 by default. The default is 0.0.",
    hint=4,
)
class DropoutDefault(_WholeStart):
    def default_dropout(self) -> float:
        return 0.1


# fuse


def _fused(
    mha: Any, num_heads: int, names: str = "qkv", bias: bool | None = None, dim: int = 0
) -> _Base:
    """What fuse makes if it stacks the layers `names`; the biases are copied if mha has them."""
    layers = [getattr(mha, f"w_{name}") for name in names]
    has_bias = mha.w_o.bias is not None
    fused = _Base(mha.w_o.weight.shape[0], num_heads, bias=has_bias if bias is None else bias)
    fused.to(mha.w_o.weight)
    stacked = torch.cat([layer.weight for layer in layers], dim=dim)
    with torch.no_grad():
        fused.w_qkv.weight.copy_(stacked.reshape(fused.w_qkv.weight.shape))
        fused.w_o.weight.copy_(mha.w_o.weight)
        if has_bias:
            fused.w_qkv.bias.copy_(torch.cat([layer.bias for layer in layers]))
            fused.w_o.bias.copy_(mha.w_o.bias)
    return fused


@misconception(
    "fuse_keys_first",
    replaces="fuse",
    says="fuse stacks the key layer before the query layer. The order of the rows is q, k, v.",
    hint=5,
)
def fuse_keys_first(mha: Any, num_heads: int) -> nn.Module:
    return _fused(mha, num_heads, "kqv")


@misconception(
    "fuse_along_inputs",
    replaces="fuse",
    says="The rows of the fused weight take turns: one for the queries, one for the keys, one for "
    "the values, as if you had stacked along the inputs. Stack the rows, which are the outputs: "
    "all query rows come first.",
    hint=5,
)
def fuse_along_inputs(mha: Any, num_heads: int) -> nn.Module:
    return _fused(mha, num_heads, dim=1)


@misconception(
    "fuse_without_biases",
    replaces="fuse",
    says="fuse copies the weights but leaves the biases at zero. They were learnt, too: copy them.",
    hint=6,
)
def fuse_without_biases(mha: Any, num_heads: int) -> nn.Module:
    fused = _fused(mha, num_heads)
    for layer in (fused.w_qkv, fused.w_o):
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
    return fused


@misconception(
    "fuse_always_biases",
    replaces="fuse",
    says="fuse gives biases to a module that had none. The fused module must have biases exactly "
    "if mha has.",
    hint=6,
)
def fuse_always_biases(mha: Any, num_heads: int) -> nn.Module:
    return _fused(mha, num_heads, bias=True)


@misconception(
    "fuse_forgets_w_o",
    replaces="fuse",
    says="fuse leaves w_o at its random start. It is not packed, but it is part of the module too.",
    hint=6,
)
def fuse_forgets_w_o(mha: Any, num_heads: int) -> nn.Module:
    fused = _fused(mha, num_heads)
    fused.start_weight(fused.w_o)
    return fused


@misconception(
    "fuse_shares_w_o",
    replaces="fuse",
    says="The fused module shares w_o with the core module, so training one changes the other. "
    "Copy its numbers into a new layer.",
    hint=7,
)
def fuse_shares_w_o(mha: Any, num_heads: int) -> nn.Module:
    fused = _fused(mha, num_heads)
    fused.w_o = mha.w_o
    return fused


@misconception(
    "fuse_shares_a_weight",
    replaces="fuse",
    says="w_o.weight of the fused module is the core module's own tensor, so training one changes "
    "the other. Copy its numbers: detach() and .data are the same memory, and so is what "
    "load_state_dict takes with assign=True.",
    hint=7,
)
def fuse_shares_a_weight(mha: Any, num_heads: int) -> nn.Module:
    fused = _fused(mha, num_heads)
    fused.w_o.weight = mha.w_o.weight
    return fused


@misconception(
    "fuse_float32",
    replaces="fuse",
    says="The fused module is float32 whatever mha was. Move it to the dtype and device of mha's "
    "weights before you copy.",
    hint=7,
)
def fuse_float32(mha: Any, num_heads: int) -> nn.Module:
    return _fused(mha, num_heads).float()


@misconception(
    "fuse_one_head",
    replaces="fuse",
    says="fuse does not pass num_heads on. The weights do not say how many heads there are.",
    hint=6,
)
def fuse_one_head(mha: Any, num_heads: int) -> nn.Module:
    return _fused(mha, 1)


@misconception(
    "fuse_switches_mode",
    replaces="fuse",
    says="fuse calls mha.eval(), so a module in training loses its dropout from then on. Copying "
    "needs no mode: leave mha as it is.",
    hint=7,
)
def fuse_switches_mode(mha: Any, num_heads: int) -> nn.Module:
    mha.eval()
    return _fused(mha, num_heads)


@symptom(
    "fuse_output_alone",
    of="fuse",
    says="The attention weights of the fused module are right, and its output is not. The output "
    "also depends on the last third of w_qkv, for the values, and on w_o.",
    hint=6,
)
def fuse_output_alone(got: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor]) -> bool:
    off = got[0] - expected[0]
    is_bias = torch.allclose(off, off[:1, :1].expand_as(off), 1e-3, 1e-5)  # which the kit says
    return torch.allclose(got[1], expected[1], 1e-3, 1e-5) and not is_bias
