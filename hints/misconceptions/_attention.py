"""The usual mistakes in a module of multi-head attention, for the stages that ask for one.

`Attention` is a correct module cut into steps. A stage's own base is a subclass with the steps that
are different there; `usual_mistakes` makes each mistake in that base.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grader.misconceptions import Value, misconception


class Attention(nn.Module):
    """Multi-head attention in steps, drawing random numbers in the order of a usual solution."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float | None = None, bias: bool = True
    ) -> None:
        super().__init__()
        self.check(d_model, num_heads)
        self.d_model, self.num_heads, self.d_k = d_model, num_heads, d_model // num_heads
        self.make_layers(d_model, bias)
        self.initialise()
        self.dropout = self.make_dropout(self.default_dropout() if dropout is None else dropout)

    def check(self, *sizes: int) -> None:
        d_model, num_heads = sizes
        if d_model % num_heads != 0:
            raise ValueError(f"num_heads={num_heads} does not divide d_model={d_model}")

    def make_layers(self, d_model: int, bias: bool) -> None:
        self.w_q = self.linear(d_model, d_model, bias)
        self.w_k = self.linear(d_model, d_model, bias)
        self.w_v = self.linear(d_model, d_model, bias)
        self.w_o = self.linear(d_model, d_model, bias)

    def linear(self, inputs: int, outputs: int, bias: bool) -> nn.Linear:
        return nn.Linear(inputs, outputs, bias=bias)

    def initialise(self) -> None:
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                self.start_weight(layer)
                if layer.bias is not None:
                    self.start_bias(layer.bias)

    def start_weight(self, layer: nn.Linear) -> None:
        nn.init.xavier_uniform_(layer.weight)

    def start_bias(self, bias: Tensor) -> None:
        nn.init.zeros_(bias)

    def default_dropout(self) -> float:
        return 0.0

    def make_dropout(self, p: float) -> nn.Dropout:
        return nn.Dropout(p)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
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
        return x.unflatten(-1, (-1, self.d_k)).transpose(1, 2)  # (B, H, T, d_k)

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
        width = self.num_heads * self.d_k
        return heads.transpose(1, 2).reshape(len(heads), -1, width)  # (B, T, D)

    def out(self, joined: Tensor, query: Tensor) -> Tensor:
        return self.w_o(joined)

    def result(self, output: Tensor, weights: Tensor) -> Any:
        return output, weights


def values_to_heads(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    tokens: tuple[str, str] = ("Tq", "Tk"),
    width: str = "D",
) -> Generator[tuple[Value, ...], None, tuple[Tensor, Tensor, Tensor]]:
    """What a right answer makes of its arguments, up to the heads, which it returns."""
    axes = (tokens[0], tokens[1], tokens[1])
    names = ("query", "key", "value")
    q, k, v = module.w_q(query), module.w_k(key), module.w_v(value)
    yield tuple(
        Value(f"the projected {name}", x, f"B {T} {width}")
        for name, x, T in zip(names, (q, k, v), axes, strict=True)
    )
    q, k, v = (x.unflatten(-1, (module.num_heads, -1)).transpose(1, 2) for x in (q, k, v))
    yield tuple(
        Value(f"the {name}'s heads", x, f"B H {T} d_k")
        for name, x, T in zip(names, (q, k, v), axes, strict=True)
    )
    return q, k, v


def values_from_heads(
    module: Any,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    scores_axes: str = "B H Tq Tk",
    tokens: str = "Tq",
    width: str = "D",
) -> Iterator[Value]:
    """What a right answer makes of the heads of queries, keys and values, up to the output.

    The weights are those before dropout.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    yield Value("the scaled scores", scores, scores_axes)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
        yield Value("the masked scores", scores, scores_axes)
    blocked = (scores == float("-inf")).all(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(blocked, 0.0), dim=-1).masked_fill(blocked, 0.0)
    yield Value("the weights", weights, scores_axes)
    context = weights @ v
    yield Value("each head's context", context, f"B H {tokens} d_k")
    joined = context.transpose(1, 2).flatten(2)
    yield Value("the joined heads", joined, f"B {tokens} {width}")
    yield Value("the output", module.w_o(joined), f"B {tokens} {width}")


_USUAL: list[tuple[str, str, str, type[Attention]]] = []  # topic, id, sentence, steps

Steps = type[Attention]


def usual_mistakes(
    base: Steps, replaces: str, prefix: str, *, without: Collection[str] = (), **hints: int | None
) -> list[Steps]:
    """The usual mistakes in the topics that `hints` gives a hint for, made in `base`.

    `without` are the ids of those that nobody can make in this stage, or that it words otherwise.
    """
    return [
        misconception(f"{prefix}_{id}", replaces=replaces, says=says, hint=hints[topic])(
            type(steps.__name__, (steps, base), {})
        )
        for topic, id, says, steps in _USUAL
        if topic in hints and id not in without
    ]


def _usual(topic: str, id: str, says: str) -> Callable[[Steps], Steps]:
    def add(steps: Steps) -> Steps:
        _USUAL.append((topic, id, says, steps))
        return steps

    return add


# The sizes


@_usual(
    "check",
    "no_value_error",
    "Your constructor accepts sizes that the heads do not divide, so an error comes late, if at "
    "all. Check them at the start and raise a ValueError.",
)
class NoValueError(Attention):
    def check(self, *sizes: int) -> None:
        pass


@_usual(
    "check",
    "assert",
    "Your constructor refuses sizes with an AssertionError, as assert does, which vanishes "
    "under python -O. A wrong argument deserves a ValueError.",
)
class Assert(Attention):
    def check(self, *sizes: int) -> None:
        try:
            super().check(*sizes)
        except ValueError as error:
            raise AssertionError(str(error)) from None


# The layers


@_usual(
    "bias",
    "bias_always",
    "Your layers have a bias even with bias=False. Pass the argument on to each of them.",
)
class BiasAlways(Attention):
    def linear(self, inputs: int, outputs: int, bias: bool) -> nn.Linear:
        return super().linear(inputs, outputs, bias=True)


@_usual(
    "bias",
    "bias_never",
    "Your layers have no bias, although bias is True by default. Pass the argument on to each of "
    "them.",
)
class BiasNever(Attention):
    def linear(self, inputs: int, outputs: int, bias: bool) -> nn.Linear:
        return super().linear(inputs, outputs, bias=False)


# The initial values


@_usual(
    "start",
    "default_init",
    "Your layers keep nn.Linear's own initial values: weights narrower than Xavier's, and random "
    "biases. Once the layers exist, set both: Xavier weights, zero biases.",
)
class DefaultInit(Attention):
    def initialise(self) -> None:
        pass


@_usual(
    "start",
    "random_biases",
    "Your weights start right, but nn.Linear starts its biases at random. Set them to zero.",
)
class RandomBiases(Attention):
    def start_bias(self, bias: Tensor) -> None:
        pass


@_usual(
    "start",
    "w_o_default_init",
    "Your other layers start as they should, but w_o is left to nn.Linear. All start with Xavier "
    "weights and zero biases.",
)
class WODefaultInit(Attention):
    def start_weight(self, layer: nn.Linear) -> None:
        if layer is not self.w_o:
            super().start_weight(layer)

    def start_bias(self, bias: Tensor) -> None:
        if bias is not self.w_o.bias:
            super().start_bias(bias)


@_usual(
    "start",
    "zero_biases_only",
    "Your biases start at zero as they should, but the weights start as nn.Linear's do, narrower "
    "than Xavier's. Give them Xavier values.",
)
class ZeroBiasesOnly(Attention):
    def start_weight(self, layer: nn.Linear) -> None:
        pass


@_usual(
    "start",
    "normal_002",
    "You start the weights from a normal distribution of width 0.02, as GPT-2 does. Xavier's width "
    "depends on the size of the layer.",
)
class Normal002(Attention):
    def start_weight(self, layer: nn.Linear) -> None:
        nn.init.normal_(layer.weight, std=0.02)


@_usual(
    "start",
    "start_he",
    "Your weights start 1.41 times as wide as they should, as with kaiming_normal_ (He) or the "
    "gain of a ReLU. No ReLU follows these layers: start them with Xavier's width, gain 1.",
)
class StartHe(Attention):
    def start_weight(self, layer: nn.Linear) -> None:
        nn.init.xavier_uniform_(layer.weight, gain=math.sqrt(2))


@_usual(
    "start",
    "start_gain_of_three",
    "w_q, w_k and w_v start 0.71 times as wide as they should, as with gain=1/sqrt(2) in fairseq, "
    "or as if Xavier counted them as one matrix, [3D, D]. Here each layer starts for itself, gain "
    "1.",
)
class StartGainOfThree(Attention):
    def start_weight(self, layer: nn.Linear) -> None:
        gain = 1.0 if layer is self.w_o else math.sqrt(0.5)
        nn.init.xavier_uniform_(layer.weight, gain=gain)


# What is projected


@_usual(
    "inputs",
    "query_for_all",
    "You compute queries, keys and values all from the query, so key and value are ignored. "
    "Each layer has its own input.",
)
class QueryForAll(Attention):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_q(query), self.w_k(query), self.w_v(query)


@_usual(
    "inputs",
    "value_from_key",
    "You compute the values from the key, so the argument value is ignored. The two are "
    "often the same tensor, but need not be.",
)
class ValueFromKey(Attention):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_q(query), self.w_k(key), self.w_v(key)


@_usual(
    "inputs",
    "value_from_query",
    "You compute the values from the query, so the argument value is ignored. Only in "
    "self-attention are the two the same tensor.",
)
class ValueFromQuery(Attention):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_q(query), self.w_k(key), self.w_v(query)


@_usual(
    "inputs",
    "key_and_value_exchanged",
    "Your keys come from the argument value, and your values from key: look at the layers and at "
    "the order of the parameters. When both are the same tensor, nobody notices.",
)
class KeyAndValueExchanged(Attention):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_q(query), self.w_k(value), self.w_v(key)


@_usual(
    "inputs",
    "key_from_query",
    "You compute the keys from the query, so the argument key is ignored. Only in "
    "self-attention are the two the same tensor.",
)
class KeyFromQuery(Attention):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_q(query), self.w_k(query), self.w_v(value)


# The projections


@_usual(
    "layers",
    "layers_exchanged",
    "You make the queries with w_k and the keys with w_q. The module would train as well, but "
    "saved weights are found by name.",
)
class LayersExchanged(Attention):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_k(query), self.w_q(key), self.w_v(value)


def _made_with(others: str, made: str, own: str, wrong: str) -> None:
    """Add the mistake that one of the three is `made` with the layer of another."""

    @_usual(
        "layers",
        f"{made}_through_{wrong}",
        f"You make the {others} with {wrong}: {own} is never used, or the same layer (a copy and "
        "paste error?). Queries, keys and values each have a layer of their own.",
    )
    class MadeWith(Attention):
        def project(
            self, query: Tensor, key: Tensor, value: Tensor
        ) -> tuple[Tensor, Tensor, Tensor]:
            q, k, v = (
                getattr(self, wrong if layer == own else layer) for layer in ("w_q", "w_k", "w_v")
            )
            return q(query), k(key), v(value)


for _others, _made, _own in (
    ("queries", "query", "w_q"),
    ("keys", "key", "w_k"),
    ("values", "value", "w_v"),
):
    for _wrong in ("w_q", "w_k", "w_v"):
        if _wrong != _own:
            _made_with(_others, _made, _own, _wrong)


@_usual(
    "layers",
    "keys_for_values",
    "Your weights meet the keys instead of the values, so w_v has no effect.",
)
class KeysForValues(Attention):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        k = self.w_k(key)
        return self.w_q(query), k, k


@_usual(
    "layers",
    "all_through_w_v",
    "You make queries, keys and values all with w_v, so w_q and w_k have no effect. A function "
    "made in a loop looks up the loop's variable when it is called: then it is the last layer.",
)
class AllThroughWv(Attention):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_v(query), self.w_v(key), self.w_v(value)


@_usual(
    "layers",
    "key_and_value_layers_exchanged",
    "You make the keys with w_v and the values with w_k. The module would train as well, but saved "
    "weights are found by name.",
)
class KeyAndValueLayersExchanged(Attention):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_q(query), self.w_v(key), self.w_k(value)


@_usual(
    "layers",
    "value_not_projected",
    "Your values are the argument itself: they never go through w_v. Queries, keys and values each "
    "have a layer of their own.",
)
class ValueNotProjected(Attention):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.w_q(query), self.w_k(key), value


@_usual(
    "layers",
    "key_detached",
    "No gradient reaches the keys, so w_k never learns. Leave them in the graph: no detach(), no "
    ".data, no torch.no_grad().",
)
class KeyDetached(Attention):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(query, key, value)
        return q, k.detach(), v


@_usual(
    "layers",
    "value_detached",
    "No gradient reaches the values, so w_v never learns. Leave them in the graph: no "
    "detach(), no .data, no torch.no_grad().",
)
class ValueDetached(Attention):
    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(query, key, value)
        return q, k, v.detach()


@_usual(
    "layers",
    "weights_detached",
    "No gradient reaches the weights, so w_q and w_k never learn. Leave scores and weights "
    "in the graph: no detach(), no .data, no torch.no_grad().",
)
class WeightsDetached(Attention):
    def weights(self, scores: Tensor) -> Tensor:
        return super().weights(scores).detach()


@_usual(
    "layers",
    "no_w_o",
    "You return the heads without passing them through w_o. It is the only place where the heads "
    "are mixed.",
)
class NoWO(Attention):
    def out(self, joined: Tensor, query: Tensor) -> Tensor:
        return joined


# Splitting and joining the heads


@_usual(
    "heads",
    "split_by_view",
    "You view straight to [B, H, T, d_k], which mixes tokens between the heads. Cut the "
    "features first, then swap tokens and heads.",
)
class SplitByView(Attention):
    def split(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        return x.reshape(B, -1, T, self.d_k)


@_usual(
    "heads",
    "join_by_view",
    "You split the heads correctly, but where you merge them they still come before the tokens, "
    "which mixes the tokens. Swap the two back first, and only once.",
)
class JoinByView(Attention):
    def combine(self, heads: Tensor) -> Tensor:
        B, _, T, _ = heads.shape
        return heads.reshape(B, T, -1)


@_usual(
    "heads",
    "split_and_join_by_view",
    "You view straight to [B, H, T, d_k] and back again. It looks consistent, but a head "
    "gets the next T * d_k numbers, not its part of every token: swap tokens and heads both ways.",
)
class SplitAndJoinByView(SplitByView, JoinByView):
    pass


@_usual(
    "heads",
    "interleaved",
    "Your heads take every H-th feature, both when you split and when you join. The module "
    "would train, but saved weights expect d_k neighbouring features in a head.",
)
class Interleaved(Attention):
    def split(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        return x.view(B, T, self.d_k, -1).permute(0, 3, 1, 2)

    def combine(self, heads: Tensor) -> Tensor:
        B, _, T, _ = heads.shape
        return heads.permute(0, 2, 3, 1).reshape(B, T, -1)


@_usual(
    "heads",
    "interleaved_split",
    "Your split gives each head every H-th feature, but your join puts the heads side by "
    "side. Split with view(B, T, H, d_k), so that a head gets d_k neighbouring features.",
)
class InterleavedSplit(Attention):
    def split(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        return x.view(B, T, self.d_k, -1).permute(0, 3, 1, 2)


@_usual(
    "heads",
    "interleaved_join",
    "Your split gives each head d_k neighbouring features, but your join lets features of the "
    "heads alternate. Join so that the heads stand side by side.",
)
class InterleavedJoin(Attention):
    def combine(self, heads: Tensor) -> Tensor:
        return heads.permute(0, 2, 3, 1).flatten(2)


@_usual(
    "heads",
    "split_not_swapped",
    "Your heads keep the order [B, T, H, d_k], so within each token heads attend to heads. Swap "
    "tokens and heads after you cut the features: [B, H, T, d_k].",
)
class SplitNotSwapped(Attention):
    def split(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        return x.view(B, T, -1, self.d_k)


@_usual(
    "heads",
    "heads_attend_to_heads",
    "You never swap tokens and heads, so within each token heads attend to heads. Tokens "
    "must attend to tokens, in every head.",
)
class HeadsAttendToHeads(SplitNotSwapped):
    def combine(self, heads: Tensor) -> Tensor:
        B, T, _, _ = heads.shape
        return heads.reshape(B, T, -1)


@_usual(
    "heads",
    "heads_averaged",
    "You average the heads and repeat the average H times, so what each one found is lost. "
    "Lay them side by side instead.",
)
class HeadsAveraged(Attention):
    def combine(self, heads: Tensor) -> Tensor:
        return heads.mean(dim=1).repeat(1, 1, self.num_heads)


# The scale


@_usual(
    "scale",
    "no_scale",
    "Your scores are not scaled. Their standard deviation grows with sqrt(d_k): "
    "divide by it before mask and softmax.",
)
class NoScale(Attention):
    def scale(self) -> float:
        return 1.0


@_usual(
    "scale",
    "scale_by_d_k",
    "Your scores are divided by d_k, perhaps by its root twice: that is too much. "
    "Their standard deviation grows with the root of d_k.",
)
class ScaleByDK(Attention):
    def scale(self) -> float:
        return float(self.d_k)


@_usual(
    "scale",
    "scale_by_d_model",
    "You divide the scores by the root of d_model. One head's product sums over its own d_k "
    "features only.",
)
class ScaleByDModel(Attention):
    def scale(self) -> float:
        return math.sqrt(self.d_model)


@_usual(
    "scale",
    "scale_times_root",
    "You multiply the scores by sqrt(d_k), which makes large scores larger still. The scale is "
    "there to shrink them: divide.",
)
class ScaleTimesRoot(Attention):
    def scale(self) -> float:
        return 1 / math.sqrt(self.d_k)


@_usual(
    "scale",
    "scale_by_eight",
    "You divide the scores by 8 whatever the size of a head is. 8 is the root of 64, the paper's "
    "d_k: take the root of your own.",
)
class ScaleByEight(Attention):
    def scale(self) -> float:
        return 8.0


# The mask


@_usual(
    "mask",
    "mask_inverted",
    "You block where the mask is True, as nn.MultiheadAttention does. "
    "In this course True means allowed.",
)
class MaskInverted(Attention):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(mask.bool(), float("-inf"))


@_usual(
    "mask",
    "mask_ignored",
    "Your mask has no effect. Apply it between the scores and the softmax, and use the "
    "result: masked_fill returns a new tensor.",
)
class MaskIgnored(Attention):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores


@_usual(
    "mask",
    "mask_added",
    "You add the mask to the scores, so blocked keys only fall behind by 1. This mask says "
    "yes or no: blocked scores must become -inf.",
)
class MaskAdded(Attention):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores + mask


@_usual(
    "mask",
    "mask_wrong_sign",
    "You add a large positive number to blocked scores, so blocked keys take all the "
    "attention. The minus sign is missing; best fill in -inf.",
)
class MaskWrongSign(Attention):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores + (1.0 - mask.to(scores.dtype)) * 1e9


@_usual(
    "mask",
    "mask_plus_inf",
    "Where one key is blocked, its whole row becomes NaN, as with +inf in its place, or with a sum "
    "or mean that holds -inf. Put -inf there, last of all before the softmax.",
)
class MaskPlusInf(Attention):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(mask == 0, float("inf"))


@_usual(
    "mask",
    "mask_times_inf",
    "You multiply inf or -inf by a 0/1 mask, and 0 times inf is NaN at every allowed position. "
    "Fill the blocked ones with -inf: masked_fill or torch.where.",
)
class MaskTimesInf(Attention):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores + (1.0 - mask.to(scores.dtype)) * float("-inf")


@_usual(
    "mask",
    "mask_multiplied",
    "Your blocked scores become 0, as when you multiply by the mask or fill in 1e-9. exp(0) is 1, "
    "so they still get weight; only -inf becomes 0 in the softmax.",
)
class MaskMultiplied(Attention):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores * mask


@_usual(
    "mask",
    "mask_after_softmax",
    "You mask the weights after the softmax, so blocked keys have already taken their "
    "share and rows no longer sum to 1. Mask the scores, before the softmax.",
)
class MaskAfterSoftmax(Attention):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        weights = torch.softmax(scores, dim=-1)
        return weights if mask is None else weights.masked_fill(mask == 0, 0.0)


@_usual(
    "mask",
    "mask_renormalised",
    "You mask the weights after the softmax and divide by what is left. If a blocked key has "
    "a far larger score, almost nothing is left for the allowed ones. Mask the scores, before the "
    "softmax.",
)
class MaskRenormalised(Attention):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        weights = torch.softmax(scores, dim=-1)
        if mask is None:
            return weights
        weights = weights * (mask != 0)
        return weights / (weights.sum(dim=-1, keepdim=True) + 1e-9)


@_usual(
    "mask",
    "mask_adds_minus_10000",
    "A query that may look at nothing looks at its keys as if nothing were blocked, as when "
    "you add -10000 to all its scores, as BERT does. Use -inf and give such a row zeros.",
)
class MaskAddsMinus10000(Attention):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores + (1.0 - mask.to(scores.dtype)) * -10000.0


@_usual(
    "mask",
    "minus_1e9",
    "A query that may look at nothing looks at all keys equally, as when you block with a "
    "large negative number such as -1e9. Use -inf and give such a row zeros.",
)
class Minus1e9(Attention):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(mask == 0, -1e9)


@_usual(
    "mask",
    "blocked_nan",
    "If a query may look at nothing, your softmax gives NaN, which spreads through the "
    "output. Your attention_weights gives zeros instead: use it.",
)
class BlockedNan(Attention):
    def weights(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, dim=-1)


@_usual(
    "mask",
    "mask_extra_axis",
    "You give every mask another axis. It already lines up with the scores, counted from the "
    "last axis; broadcasting does the rest.",
)
class MaskExtraAxis(Attention):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(mask.unsqueeze(1) == 0, float("-inf"))


@_usual(
    "mask",
    "mask_three_axes_by_sequence",
    "You read a mask with three axes as [B, Tq, Tk]. Broadcasting counts axes from the last "
    "one, so it is [H, Tq, Tk] and needs no further axis.",
)
class MaskThreeAxesBySequence(Attention):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        mask = mask.unsqueeze(1) if mask.ndim == 3 else mask
        return scores.masked_fill(mask == 0, float("-inf"))


@_usual(
    "mask",
    "mask_of_first_head",
    "All your heads use the first head's mask. A mask such as [1, H, 1, Tk] may differ from "
    "head to head: leave its head axis as it is.",
)
class MaskOfFirstHead(Attention):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return super().block(scores, mask[:, :1] if mask.dim() == 4 else mask)


@_usual(
    "mask",
    "mask_of_another",
    "You repeat the masks in the wrong order, so a sequence gets the mask of another one. "
    "All heads of one sequence share its mask: broadcasting does that.",
)
class MaskOfAnother(Attention):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        one_a_sequence = mask.expand(scores.shape)[:, 0]  # (B, Tq, Tk)
        one_a_head = one_a_sequence.repeat(self.num_heads, 1, 1)  # (H * B, Tq, Tk)
        return scores.masked_fill(one_a_head.view(scores.shape) == 0, float("-inf"))


@_usual(
    "mask",
    "mask_in_place",
    "You invert the mask in place. It belongs to the caller, whose next call would get it "
    "inverted: make a new tensor.",
)
class MaskInPlace(Attention):
    def block(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(mask.eq_(0).bool(), float("-inf"))


@_usual(
    "mask",
    "always_causal",
    "You always block the future, even when no mask is given. Only the caller knows whether "
    "that is wanted, and says so with a mask.",
)
class AlwaysCausal(Attention):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        past = torch.ones_like(scores, dtype=torch.bool).tril()
        return super().attend(scores.masked_fill(~past, float("-inf")), mask)


@_usual(
    "mask",
    "causal_without_mask",
    "When no mask is given, you block the future. Without a mask everything is allowed; only "
    "the caller knows whether more is wanted.",
)
class CausalWithoutMask(Attention):
    def attend(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        Tq, Tk = scores.shape[-2:]
        if mask is None and Tq == Tk:
            mask = torch.ones(Tq, Tk, dtype=torch.bool, device=scores.device).tril()
        return super().attend(scores, mask)


# The softmax


@_usual(
    "softmax",
    "softmax_over_queries",
    "Your softmax runs over the queries. Each query shares its attention among the keys, the "
    "last axis of [B, H, Tq, Tk].",
)
class SoftmaxOverQueries(Attention):
    def weights(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, dim=-2)


@_usual(
    "softmax",
    "softmax_over_heads",
    "Your softmax runs over the heads, axis 1 of [B, H, Tq, Tk]. Each head stands alone; "
    "normalise over the keys, the last axis.",
)
class SoftmaxOverHeads(Attention):
    def weights(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, dim=1)


@_usual(
    "softmax",
    "softmax_twice",
    "You apply the softmax twice. The second time it gets shares between 0 and 1, so all "
    "weights come out nearly equal, and blocked keys get some, too.",
)
class SoftmaxTwice(Attention):
    def weights(self, scores: Tensor) -> Tensor:
        return super().weights(super().weights(scores))


@_usual(
    "softmax",
    "queries_and_keys_exchanged",
    "You swap queries and keys in the scores. Rows are queries, from w_q, and columns are keys, "
    "from w_k: q k^T.",
)
class QueriesAndKeysExchanged(Attention):
    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return super().scores(k, q)


@_usual(
    "softmax",
    "values_added_up",
    "Each head fetches the values of all heads added up. In einsum a letter that only one "
    "input has is summed away: give the heads of weights and values the same one.",
)
class ValuesAddedUp(Attention):
    def heads(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().heads(q, k, v)
        return q, k, v.sum(dim=1, keepdim=True)


@_usual(
    "softmax",
    "scaled_after_softmax",
    "You divide the weights by sqrt(d_k), after the softmax. Scale the scores instead: the "
    "weights of a query sum to 1.",
)
class ScaledAfterSoftmax(Attention):
    def scale(self) -> float:
        return 1.0

    def weights(self, scores: Tensor) -> Tensor:
        return super().weights(scores) / math.sqrt(self.d_k)


@_usual(
    "softmax",
    "heads_scaled",
    "You divide by sqrt(d_k) after the softmax, on the way to the values. Scale the scores "
    "instead, before the softmax.",
)
class HeadsScaled(Attention):
    def scale(self) -> float:
        return 1.0

    def combine(self, heads: Tensor) -> Tensor:
        return super().combine(heads) / math.sqrt(self.d_k)


# The softmax, with blocked rows cared for


@_usual(
    "blocked",
    "softmax_over_queries_blocked_mended",
    "You handle blocked rows, but your softmax runs over the queries. Each query shares its "
    "attention among the keys, the last axis of [B, H, Tq, Tk].",
)
class SoftmaxOverQueriesBlockedMended(Attention):
    axis = -2

    def weights(self, scores: Tensor) -> Tensor:
        blocked = (scores == float("-inf")).all(dim=-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(blocked, 0.0), dim=self.axis)
        return weights.masked_fill(blocked, 0.0)


@_usual(
    "blocked",
    "softmax_over_heads_blocked_mended",
    "You handle blocked rows, but your softmax runs over the heads, axis 1 of [B, H, Tq, Tk]. "
    "Each head stands alone; normalise over the keys, the last axis.",
)
class SoftmaxOverHeadsBlockedMended(SoftmaxOverQueriesBlockedMended):
    axis = 1


@_usual(
    "blocked",
    "softmax_over_queries_nan_to_num",
    "Your softmax runs over the queries. Each query shares its attention among the keys, the last "
    "axis of [B, H, Tq, Tk].",
)
class SoftmaxOverQueriesNanToNum(Attention):
    def weights(self, scores: Tensor) -> Tensor:
        return torch.nan_to_num(torch.softmax(scores, dim=-2))


@_usual(
    "blocked",
    "softmax_over_heads_nan_to_num",
    "Your softmax runs over the heads, axis 1 of [B, H, Tq, Tk]. Each head stands alone; normalise "
    "over the keys, the last axis.",
)
class SoftmaxOverHeadsNanToNum(Attention):
    def weights(self, scores: Tensor) -> Tensor:
        return torch.nan_to_num(torch.softmax(scores, dim=1))


# Dropout


@_usual(
    "dropout",
    "dropout_on_output",
    "You drop parts of the output. In this module dropout acts on the attention weights, "
    "before they meet the values.",
)
class DropoutOnOutput(Attention):
    def drop(self, weights: Tensor) -> Tensor:
        return weights

    def out(self, joined: Tensor, query: Tensor) -> Tensor:
        return self.dropout(super().out(joined, query))


@_usual(
    "dropout",
    "dropout_twice",
    "You apply dropout twice, to the weights and to the output. Apply it once, to the weights.",
)
class DropoutTwice(Attention):
    def out(self, joined: Tensor, query: Tensor) -> Tensor:
        return self.dropout(super().out(joined, query))


@_usual(
    "dropout",
    "dropout_twice_on_weights",
    "Your weights go through dropout twice, so far more of them are dropped than the rate "
    "says. Apply it once.",
)
class DropoutTwiceOnWeights(Attention):
    def drop(self, weights: Tensor) -> Tensor:
        return self.dropout(self.dropout(weights))


@_usual(
    "dropout",
    "dropout_on_values",
    "You drop parts of the values. In this module dropout acts on the attention weights, "
    "before they meet the values.",
)
class DropoutOnValues(Attention):
    def drop(self, weights: Tensor) -> Tensor:
        return weights

    def heads(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().heads(q, k, v)
        return q, k, self.dropout(v)


@_usual(
    "dropout",
    "dropout_on_projections",
    "You drop parts of the queries, keys and values. In this module dropout acts on the attention "
    "weights, after the softmax.",
)
class DropoutOnProjections(Attention):
    def drop(self, weights: Tensor) -> Tensor:
        return weights

    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(query, key, value)
        return self.dropout(q), self.dropout(k), self.dropout(v)


@_usual(
    "dropout",
    "dropout_on_heads",
    "You drop parts of the joined heads. In this module dropout acts on the attention "
    "weights, before they meet the values.",
)
class DropoutOnHeads(Attention):
    def drop(self, weights: Tensor) -> Tensor:
        return weights

    def combine(self, heads: Tensor) -> Tensor:
        return self.dropout(super().combine(heads))


@_usual(
    "dropout",
    "dropout_on_context",
    "You drop parts of what each head returns. In this module dropout acts on the attention "
    "weights, before they meet the values.",
)
class DropoutOnContext(Attention):
    def drop(self, weights: Tensor) -> Tensor:
        return weights

    def combine(self, heads: Tensor) -> Tensor:
        return super().combine(self.dropout(heads))


@_usual(
    "dropout",
    "dropout_always",
    "Your dropout is still active after eval(): F.dropout drops unless you pass "
    "training=self.training, F.scaled_dot_product_attention whatever the mode. An nn.Dropout made "
    "in __init__ knows the mode; one made in forward does not.",
)
class DropoutAlways(Attention):
    def drop(self, weights: Tensor) -> Tensor:
        return F.dropout(weights, p=self.dropout.p)


@_usual(
    "dropout",
    "dropout_never",
    "In training mode this call drops none of the weights. Apply dropout to the attention "
    "weights of every call, and use what it returns: it changes no tensor in place.",
)
class DropoutNever(Attention):
    def drop(self, weights: Tensor) -> Tensor:
        return weights


@_usual(
    "dropout",
    "dropout_ends_with_eval",
    "After one call in evaluation mode your module drops nothing any more, not even in "
    "training mode: the call changes a rate that the module keeps. Leave it, and choose in each "
    "call by self.training, or use nn.Dropout.",
)
class DropoutEndsWithEval(Attention):
    def drop(self, weights: Tensor) -> Tensor:
        if not self.training:
            self.dropout.p = 0.0
        return super().drop(weights)


@_usual(
    "dropout",
    "dropout_not_rescaled",
    "You drop weights but leave the others as they are, so the sums are smaller in training "
    "than in eval. Multiply the kept ones by 1 / (1 - p).",
)
class DropoutNotRescaled(Attention):
    def drop(self, weights: Tensor) -> Tensor:
        if not self.training:
            return weights
        return weights * (torch.rand_like(weights) > self.dropout.p)


@_usual(
    "dropout",
    "dropout_on_scores",
    "You apply dropout before the softmax. A score of 0 still gets weight there; drop the "
    "weights, after the softmax.",
)
class DropoutOnScores(Attention):
    def drop(self, weights: Tensor) -> Tensor:
        return weights

    def weights(self, scores: Tensor) -> Tensor:
        return super().weights(self.dropout(scores))


@_usual(
    "dropout",
    "dropout_renormalised",
    "After dropout you divide the weights by their sum again. Dropout already scales up what "
    "it keeps, so that the sum is right on average; leave the weights as they are.",
)
class DropoutRenormalised(Attention):
    def drop(self, weights: Tensor) -> Tensor:
        kept = self.dropout(weights)
        return kept / kept.sum(dim=-1, keepdim=True).clamp(min=1e-9) if self.training else kept


@_usual(
    "dropout",
    "dropout_keeps_p",
    "With the default dropout, 0.0, you drop every weight, as if it were the share that is "
    "kept, or as if nn.Dropout got another argument. It is the share that is dropped.",
)
class DropoutKeepsP(Attention):
    def make_dropout(self, p: float) -> nn.Dropout:
        return nn.Dropout(1.0 - p)


@_usual(
    "dropout",
    "dropout_rate_unused",
    "You drop one half whatever the rate, as nn.Dropout does if you give it none. Pass the "
    "argument dropout on to it.",
)
class DropoutRateUnused(Attention):
    def make_dropout(self, p: float) -> nn.Dropout:
        return nn.Dropout()


@_usual(
    "dropout",
    "dropout_always_a_tenth",
    "You drop one tenth of the weights whatever the rate. Pass the argument dropout on to "
    "nn.Dropout; its default is 0.0.",
)
class DropoutAlwaysATenth(Attention):
    def make_dropout(self, p: float) -> nn.Dropout:
        return nn.Dropout(0.1)


@_usual(
    "dropout",
    "dropout_default",
    "Your dropout is 0.1 by default. The default must be 0.0.",
)
class DropoutDefault(Attention):
    def default_dropout(self) -> float:
        return 0.1
