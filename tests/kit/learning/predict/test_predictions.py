"""The questions of this course: every answer is worked out anew, in code, beside its question.

For each stage a function does what its questions describe, one after the other, and yields each
answer: a shape, a number, or what the right choice says. Beside it are the words of the question
that the code relies on, with " | " between them, so that neither can be changed without the other.
"""

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import torch
from torch import nn

from grader.learning.predict.questions import judge, read_predictions
from grader.learning.predict.screen import asked, explained
from grader.learning.predict.types import Predictions, Question
from grader.run.solutions import local_solutions
from tests.kit.support.checkout import COURSE, ROOT
from tests.kit.support.drawn import draw

CORE = [stage.slug for stage in COURSE.stages if not stage.bonus]
ASKED = [stage.slug for stage in COURSE.stages if stage.predictions_file.is_file()]
HOMES = {entry.name: stage.slug for stage in COURSE.stages for entry in stage.entry_points}
INF = math.inf

Proofs = Iterator[tuple[tuple[int, ...] | torch.Size | float | str, str]]


@cache
def solution(name: str) -> Any:
    return local_solutions(COURSE, COURSE.stage(HOMES[name]))(name)


@cache
def predictions(slug: str) -> Predictions:
    found = read_predictions(COURSE.stage(slug))
    assert found is not None
    return found


def in_words(rows: torch.Tensor) -> str:
    return " and ".join(str([int(number) for number in row]) for row in rows)


def split_heads() -> Proofs:
    worked = solution("split_heads")(torch.zeros(5, 7, 12), 3).shape
    yield worked, "5 sequences | 7 tokens | 12 features | 3 heads"

    x = torch.arange(0, 120, 10)
    heads = solution("split_heads")(x.view(1, 1, 12), 4)
    assert heads[0, :, 0].tolist() == [[0, 10, 20], [30, 40, 50], [60, 70, 80], [90, 100, 110]]
    assert x.view(3, 4)[:, 2].tolist()[0] == 20  # dealt out like cards
    yield heads[0, 2, 0, 0].item(), "0, 10, 20, ... up to 110 | 4 heads | head 2"

    x = torch.arange(1, 9).view(1, 2, 4)
    assert in_words(solution("split_heads")(x, 2)[0, 0]) == "[1, 2] and [5, 6]"
    worked = in_words(x.reshape(1, 2, 2, 2)[0, 0])
    yield worked, "[1, 2, 3, 4] | [5, 6, 7, 8] | two heads | (1, 2, 4) | (1, 2, 2, 2)"

    fitting = []
    for heads in range(1, 13):
        try:
            solution("split_heads")(torch.zeros(1, 1, 12), heads)
            fitting.append(heads)
        except ValueError:
            pass
    assert fitting == [1, 2, 3, 4, 6, 12]
    yield len(fitting), "12 features | 1, 2, 3, ... 12"


def scaled_scores() -> Proofs:
    worked = solution("scaled_scores")(torch.zeros(2, 8, 5, 3), torch.zeros(2, 8, 9, 3)).shape
    yield worked, "(2, 8, 5, 3) | (2, 8, 9, 3)"

    q, k = torch.zeros(1, 4, 5, 1), torch.zeros(1, 4, 5, 1)
    q[0, 1, 2], k[0, 1, 3] = 1, 1
    scores = solution("scaled_scores")(q, k)
    ((_, head, query, key),) = scores.nonzero().tolist()
    assert scores[0, 1, 2, 3] != 0
    yield f"query {query} with key {key}, in head {head}", "scores[0, 1, 2, 3]"

    q, k = torch.full((1, 1, 1, 9), 1.0), torch.full((1, 1, 1, 9), 2.0)
    assert (q * k).sum() == 18 and (q * k).sum() / 9 == 2
    worked = solution("scaled_scores")(q, k).item()
    yield worked, "9 features, all of them 1 | 9 features, all of them 2"

    q, k = torch.rand(2, 1, 4, 49, 25, dtype=torch.float64)
    ratios = (q @ k.transpose(-2, -1)) / solution("scaled_scores")(q, k)
    assert torch.allclose(ratios, ratios.mean())
    yield round(ratios.mean().item(), 9), "D = 100 | 4 heads of 25 features | 49 tokens"

    q, k = torch.randn(2, 1, 1, 1000, 100, generator=torch.Generator().manual_seed(1))
    assert solution("scaled_scores")(q, k).std().item() == pytest.approx(1, rel=0.02)
    assert torch.tensor([10.0, 0.0, -10.0]).softmax(-1)[0] > 0.9999  # one key has everything
    deviation = (q @ k.transpose(-2, -1)).std().item()
    assert deviation == pytest.approx(10, rel=0.02)
    yield round(deviation), "mean 0 | deviation 1 | 100 features"


def masking() -> Proofs:
    mask = solution("causal_mask")(5)
    assert mask.numel() == 25
    assert mask.tril(-1).sum() == 10  # without the diagonal
    yield mask.sum().item(), "5 tokens | itself and at earlier tokens | 25 pairs"

    worked = solution("padding_mask")(torch.tensor([4, 0, 6]), 6).shape
    yield worked, "4, 0 and 6 tokens | padded to 6"

    causal, padding = (
        solution("causal_mask")(6),
        solution("padding_mask")(torch.tensor([4, 0, 6]), 6),
    )
    assert (*causal.shape, *padding.shape) == (1, 1, 6, 6, 3, 1, 1, 6)
    yield (causal & padding).shape, "(1, 1, 6, 6) | (3, 1, 1, 6) | `&`"

    scores, mask = torch.tensor([0.0, 0.0, 5.0]), torch.tensor([1.0, 1.0, 0.0])
    assert solution("apply_mask")(scores, mask).softmax(-1).tolist() == [0.5, 0.5, 0]
    yield (scores * mask).softmax(-1)[2].item(), "0, 0 and 5 | multiplies the scores by 1, 1, 0"

    mask = solution("causal_mask")(5)[0, 0]
    x = torch.randn(1, 5, 4)
    built_in = nn.MultiheadAttention(4, 1, batch_first=True).eval()
    _, weights = built_in(x, x, x, attn_mask=mask)
    assert weights[0, 4].isnan().all()  # nothing is left for the last token
    q = torch.randn(1, 1, 5, 4)
    ours = nn.functional.scaled_dot_product_attention(q, q, torch.eye(5)[None, None], mask)
    assert ours[0, 0, 0].nonzero().flatten().tolist() == [0]  # reads masks as we do
    seen = weights[0, 0].nonzero().flatten().tolist()
    worked = f"tokens {', '.join(map(str, seen[:-1]))} and {seen[-1]}"
    yield worked, "5 tokens | causal mask | nn.MultiheadAttention | token 0"


def softmax() -> Proofs:
    scores = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    assert round(scores.softmax(-2).sum().item(), 9) == 30  # over the queries
    worked = round(solution("attention_weights")(scores).sum().item(), 9)
    yield worked, "(2, 3, 4, 5) | heads, queries, keys"

    scores = torch.tensor([[4.0, -INF, 4.0, 4.0, 4.0], [-4.0, -INF, -4.0, -4.0, -4.0]])
    weights = solution("attention_weights")(scores)
    assert torch.equal(weights[0], weights[1])
    yield weights[0, 0].item(), "4, -inf, 4, 4, 4 | first key"

    scores = torch.tensor([0.0, math.log(4)], dtype=torch.float64)
    weights = solution("attention_weights")
    assert torch.allclose(weights(scores), torch.tensor([0.2, 0.8], dtype=torch.float64))
    assert torch.tensor(500.0).exp().isinf()
    yield round(weights(scores + 500)[1].item(), 9), "0.2 and 0.8 | 500 is added to both"

    scores = torch.full((3,), -INF)
    assert solution("attention_weights")(scores).tolist() == [0, 0, 0]
    weights = scores.exp() / scores.exp().sum()
    worked = "NaN" if weights.isnan().all() else str(weights)
    yield worked, "-inf, -inf, -inf | exp divided by the sum of exp"

    scores = torch.full((3,), -INF, requires_grad=True)
    weights = torch.nan_to_num(scores.softmax(-1))
    assert weights.tolist() == [0, 0, 0]
    weights.sum().backward()
    worked = "NaN" if scores.grad.isnan().all() else str(scores.grad)
    yield worked, "such a row | 0 in place of each NaN"


def concat_heads() -> Proofs:
    yield solution("concat_heads")(torch.zeros(3, 4, 6, 5)).shape, "(3, 4, 6, 5)"

    x = torch.zeros(1, 3, 2, 4)
    x[0, 2, 1, 2] = 1
    worked = solution("concat_heads")(x)[0, 1].argmax().item()
    yield worked, "Each of 3 heads holds 4 features | feature 2 of head 2"

    x = torch.arange(1, 9).view(1, 2, 2, 2)
    assert in_words(solution("concat_heads")(x)[0][:1]) == "[1, 2, 5, 6]"
    worked = in_words(x.reshape(1, 2, 4)[0][:1])
    yield worked, "[1, 2] for token 0 | [3, 4] for token 1 | [5, 6] and [7, 8]"

    swapped = torch.zeros(2, 4, 3, 5).transpose(1, 2)
    assert swapped.shape == (2, 3, 4, 5) and swapped.stride()[2:] == (15, 1)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        swapped.view(2, 3, 20)
    worked = "PyTorch raises an error"
    yield worked, "(2, 4, 3, 5) | axes 1 and 2 swapped | (2, 3, 4, 5) | (2, 3, 20)"


def cross() -> tuple[torch.Tensor, torch.Tensor]:
    decoder, encoder = torch.randn(2, 3, 8), torch.randn(2, 5, 8)
    built_in = nn.MultiheadAttention(8, 4, batch_first=True)
    assert built_in(decoder, encoder, encoder)[1].shape == (2, 3, 5)  # averaged
    output, weights = solution("MultiHeadAttention")(8, 4)(decoder, encoder, encoder)
    return output, weights


def multi_head_attention() -> Proofs:
    module = solution("MultiHeadAttention")(10, 5)
    worked = sum(parameter.numel() for parameter in module.parameters())
    yield worked, "D = 10 | 5 heads | every layer has a bias"

    worked = cross()[0].shape
    yield worked, "2 sequences | 3 tokens of a decoder | 5 tokens of an | 8 features | 4 heads"

    worked = cross()[1].shape
    yield worked, "2 sequences | 3 decoder tokens | 5 encoder tokens | 8 features | 4 heads"

    dropout = solution("MultiHeadAttention")(8, 4, dropout=0.25).dropout
    weights = torch.full((400,), 0.3)
    assert torch.equal(dropout.eval()(weights), weights)
    kept = {round(weight, 6) for weight in dropout.train()(weights).tolist()} - {0.0}
    assert len(kept) == 1
    yield kept.pop(), "dropout = 0.25 | a weight of 0.3 is not dropped"

    heads = torch.zeros(1, 4, 1, 2)
    heads[0, 1] = 1
    places = solution("concat_heads")(heads)[0, 0].nonzero().flatten().tolist()
    worked = f"in features {places[0]} and {places[1]}"
    yield worked, "8 features, 4 heads | Before the last layer | head 1"


def grouped(*sizes: int, bias: bool = True) -> Any:
    return solution("GroupedQueryAttention")(*sizes, bias=bias)


def grouped_query() -> Proofs:
    worked = grouped(32, 8, 2).w_k.weight.shape
    yield worked, "D = 32 features | 8 query heads | 2 key heads | the weight of w_k"

    query, key = torch.randn(2, 3, 32), torch.randn(2, 5, 32)
    worked = grouped(32, 8, 2)(query, key, key)[1].shape
    yield worked, "2 sequences | 3 queries | 5 keys | 8 query heads | 2 key heads"

    module = grouped(12, 6, 2)
    with torch.no_grad():
        module.w_k.weight[2:] = 0  # so whoever reads it looks at all keys alike
    x = torch.randn(1, 3, 12)
    evenly = (module(x, x, x)[1][0] - 1 / 3).abs().amax(dim=(1, 2)) < 1e-6
    first, second, third = evenly.nonzero().flatten().tolist()
    worked = f"heads {first}, {second} and {third}"
    yield worked, "6 query heads | 2 key heads | counted from 0 | key head 1"

    widths = [grouped(64, 32, heads).w_k.out_features for heads in (8, 32)]
    worked = widths[0] / widths[1]  # whatever D is
    yield worked, "D = 4096 features | 32 query heads and 8 key heads | with 32 key heads"

    assert sum(p.numel() for p in grouped(8, 4, 4, bias=False).parameters()) == 256
    worked = sum(p.numel() for p in grouped(8, 4, 1, bias=False).parameters())
    yield worked, "D = 8 | 4 query heads | 1 key head | no biases"


def rope() -> Proofs:
    yield solution("rope_angles")(9, 16).shape, "9 tokens | 16 features"

    assert solution("rope_angles")(2, 4)[1, 1].item() == pytest.approx(1 / 100)
    yield solution("rope_angles")(2, 4, base=400.0)[1, 1].item(), "d_k = 4 | base = 400"

    pair = torch.tensor([3.0, 4.0]).view(1, 1, 1, 2)
    yield solution("apply_rope")(pair, torch.tensor([[2.0]])).norm().item(), "(3, 4) | 2 radians"

    q, k = torch.randn(2, 1, 1, 1, 8)

    def score(moved: int) -> float:
        at = solution("rope_angles")(6, 8, offset=moved)
        turn = solution("apply_rope")
        return (turn(q, at[3:4]) * turn(k, at[5:6])).sum().item()

    assert score(40) == pytest.approx(score(0), abs=1e-4)
    yield "1.2", "position 3 scores 1.2 | position 5 | 40 places to the right"

    x, moved = torch.randn(1, 5, 8), [3, 1, 4, 0, 2]
    names = {"MultiHeadAttention": "the module of stage 6", "RotaryMultiHeadAttention": "turned"}
    blind = []
    for name, words in names.items():
        module = solution(name)(8, 2)
        output, again = module(x, x, x)[0], module(*[x[:, moved]] * 3)[0]
        if torch.allclose(again, output[:, moved], atol=1e-5):
            blind.append(words)
    yield " and ".join(blind), "Without masks"


def forties(dtype: torch.dtype) -> torch.Tensor:
    return torch.full((1, 1, 1, 64), 40.0, dtype=dtype)


def half_precision() -> Proofs:
    assert torch.finfo(torch.float16).max == 65504
    product = (forties(torch.float16) @ forties(torch.float16).mT).item()
    assert (forties(torch.float32) @ forties(torch.float32).mT).item() == 102400
    yield str(product), "ends at 65504 | 64 entries, all of them 40"

    assert torch.tensor(12803.0).half() == 12800 < torch.tensor(12805.0).half() == 12808
    assert round(math.exp(3)) == 20
    worked = solution("scaled_scores")(forties(torch.float32), forties(torch.float32)).item()
    yield worked, "64 entries of 40 | sqrt(d_k)"

    count = torch.tensor(1, dtype=torch.bfloat16)
    while count + 1 != count:
        count = count + 1
    yield count.item(), "start at 1 and add 1"

    scores = torch.tensor([1.0, 1e5, 2.0]).half().float()
    worked = str(torch.softmax(scores, -1)[1].item()).replace("nan", "NaN")
    yield worked, "inf in float16 | only inf of its row"

    q, k = torch.zeros(2, 1, 1, 2048, 4, dtype=torch.float16)
    assert torch.full((2048,), 100.0).sum() == 204800
    result = solution("stable_attention")(q[:, :, :1], k, torch.full_like(k, 100.0))
    yield result[0, 0, 0, 0].item(), "2048 keys | every value is 100 | 204800"


def fused_qkv() -> Proofs:
    worked = solution("FusedMultiHeadAttention")(8, 2).w_qkv.weight.shape
    yield worked, "8 features | 2 heads | w_qkv.weight"

    numbered = torch.arange(24.0).view(1, 1, 24)
    values = numbered.chunk(3, dim=-1)[2]
    worked = solution("split_heads")(values, 2)[0, 1, 0, 0].item()
    yield worked, "D = 8 features, H = 2 heads | numbered from 0 | values of head 1"

    fused, apart = solution("FusedMultiHeadAttention")(8, 2), solution("MultiHeadAttention")(8, 2)
    counts = {sum(p.numel() for p in module.parameters()) for module in (fused, apart)}
    assert len(counts) == 1
    yield counts.pop(), "with biases | D = 8 and 2 heads"

    D = 64
    worked = (2 / (D + D)) / (2 / (D + 3 * D))
    yield worked, "variance is 2 / (inputs + outputs) | (D, D) layer | (3 D, D)"

    mha = solution("MultiHeadAttention")(8, 2)
    new = solution("fuse")(mha, 2)
    new.w_o = mha.w_o
    before = mha.w_o.weight.detach().clone()
    new(torch.randn(1, 3, 8))[0].sum().backward()
    with torch.no_grad():  # a step of training
        new.w_o.weight -= 0.1 * new.w_o.weight.grad
    worked = "it stays as it was" if torch.equal(mha.w_o.weight, before) else "it changes too"
    yield worked, "new.w_o = mha.w_o | only the new one is trained"


def need_weights() -> Proofs:
    x = torch.randn(3, 5, 8)
    worked = len(solution("OptionalWeightsAttention")(8, 2)(x, x, x, need_weights=False))
    yield worked, "need_weights=False | len(result)"

    x = torch.randn(2, 100, 8)
    output, weights = solution("OptionalWeightsAttention")(8, 4)(x, x, x)
    worked = weights.numel() / output.numel()
    yield worked, "2 sequences of 100 tokens, 4 heads, 8 features per token"

    module, sizes = solution("OptionalWeightsAttention")(8, 2), []
    for T in (5, 10):
        x = torch.randn(1, T, 8)
        sizes.append(module(x, x, x)[1].nbytes)
    yield sizes[1] / sizes[0], "twice as long | memory of the weights grow"

    last = None
    for call, need_weights in (("the weights of the first call", True), ("second", False)):
        if need_weights:
            last = call
    yield str(last), "if need_weights: self.last = weights | True is followed by one with"

    module = solution("OptionalWeightsAttention")(40, 4, dropout=0.5, bias=False)
    with torch.no_grad():
        module.w_v.weight.copy_(torch.eye(40))
        module.w_o.weight.copy_(torch.eye(40))
    x, value = torch.randn(1, 200, 40), torch.eye(40)[None]
    dropped = [
        (module(x, value, value, need_weights=need)[0] == 0).float().mean().item()
        for need in (True, False)
    ]
    worked = "no" if abs(dropped[0] - dropped[1]) < 0.05 else "yes, nothing is dropped then"
    yield worked, "dropout 0.5 | need_weights=False"


def flash() -> Proofs:
    q = torch.zeros(1, 4, 1024, 1)
    worked = solution("scaled_scores")(q, q).nbytes / 1024**2
    yield worked, "1024 tokens, 4 heads | 4 bytes | 1024 x 1024 bytes"

    few, many = torch.zeros(1, 1, 7, 2), torch.zeros(1, 1, 70, 2)
    scores = solution("scaled_scores")
    yield (
        scores(many, many).numel() / scores(few, few).numel(),
        "ten times as long | plain attention",
    )

    q, k = torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, 2, 4)
    v, mask = torch.tensor([0.0, 1.0]).view(1, 1, 2, 1), torch.tensor([[1.0, 0.0]])
    added = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert added.item() == pytest.approx(1 / (1 + math.e)) == pytest.approx(0.27, abs=0.01)
    worked = solution("flash_attention")(q, k, v, mask).item()
    yield worked, "q = k = 0 | the values 0 and 1, and the mask 1, 0 | 1 / (1 + e), about 0.27"

    first, second = [0.0, 0.0], [math.log(4)]
    assert sum(math.exp(score - max(first)) for score in first) == 2
    worked = sum(math.exp(score - max(first + second)) for score in first + second)
    yield worked, "scores 0 and 0 | score log 4 | of the exponentials is 2 | is subtracted"

    # Each weight of a row depends on every key: none of the T x T products can be left out.
    q, k, v = (torch.randn(1, 1, 5, 4, requires_grad=True) for _ in range(3))
    for query in range(5):
        (gradient,) = torch.autograd.grad(
            solution("flash_attention")(q, k, v)[0, 0, query].sum(), k
        )
        assert (gradient[0, 0] != 0).any(dim=-1).all()
    yield "no, just as many", "fewer products of queries and keys"


def valid_lens() -> Proofs:
    worked = solution("transpose_qkv")(torch.zeros(2, 4, 100), 5).shape
    yield worked, "2 sequences of 4 tokens with 100 features each; 5 heads"

    x = torch.zeros(2, 4, 100)
    x[1, :, 60:80] = 1  # head 3 of the second sequence
    (place,) = solution("transpose_qkv")(x, 5).sum(dim=(1, 2)).nonzero()
    yield place.item(), "from 0 | head 3 of the second sequence"

    lengths = torch.repeat_interleave(torch.tensor([3, 2]), 5)
    worked = " ".join(str(length) for length in lengths[:5].tolist())
    yield worked, "lengths of these two sequences are 3 and 2 | the ten begin"

    x = torch.randn(1, 4, 10)
    worked = solution("ValidLensAttention")(10, 5)(x, x, x, torch.tensor([0]))[0, 0, 0].item()
    yield worked, "length is 0 | no bias"

    module = solution("ValidLensAttention")(12, 3)
    module(torch.randn(1, 2, 7), torch.randn(1, 4, 9), torch.randn(1, 4, 11))
    worked = sum(parameter.numel() for parameter in module.parameters())
    yield worked, "num_hiddens = 12, no biases | 7 features, keys with 9, values with 11"


def causal_self_attention() -> Proofs:
    worked = solution("CausalSelfAttention")(4, 6, 8, 2)(torch.randn(2, 7, 4)).shape
    yield worked, "d_in = 4, d_out = 6, 2 heads, context_size = 8 | 2 texts of 7"

    worked = sum(p.numel() for p in solution("CausalSelfAttention")(4, 6, 8, 2).parameters())
    yield worked, "same module, without qkv_bias"

    worked = solution("causal_mask")(8)[..., :5, :5].sum().item()
    yield worked, "context_size = 8 | 5 tokens | allow"

    class Assigned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mask = solution("causal_mask")(8)

    module = Assigned()
    assert list(module.parameters()) == []
    module.to("meta")  # a device that every machine has
    stays = module.mask.device.type == "cpu"
    worked = "the mask is still on the CPU, and torch complains" if stays else "moved"
    yield worked, 'self.mask = causal_mask(8) | .to("cuda")'

    with pytest.raises(ValueError, match="8"):
        solution("CausalSelfAttention")(4, 6, 8, 2)(torch.randn(1, 9, 4))
    yield "raise a ValueError", "context_size = 8 | 9 tokens"


def write_the_tests() -> Proofs:
    q, k = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 5, 8)
    scores = solution("scaled_scores")(q, k)
    assert (scores - q @ k.mT).abs().max() > 0.1
    worked = "no" if scores.shape == (q @ k.mT).shape else "yes"
    yield worked, "forgets to divide its scores | the shapes of output and weights"

    worked = (torch.full((4,), 0.25) * torch.tensor([1, 0, 0, 1]) / (1 - 0.5)).sum().item()
    yield worked, "dropout=0.5 | four keys | Two of the four weights are dropped"

    masks = torch.rand(1, 1, 1, 4) > 0.5
    yield float((masks[:1].expand_as(masks) != masks).sum()), "the mask of the first | one sequence"

    rows = torch.arange(6).view(3, 2)[[2, 0, 1]].flatten()
    assert rows.tolist() == [4, 5, 0, 1, 2, 3]
    yield float(rows[0]), "Three heads of two features | order 2, 0, 1 | counted from 0"

    mha, x = solution("MultiHeadAttention")(6, 2), torch.randn(2, 4, 6)
    mha(x, x, x)[0].sin().sum().backward()
    none = [n for n, p in mha.named_parameters() if p.grad.abs().max() < 1e-6]
    assert len(none) == 1
    yield none[0], "a gradient of 0"


def memory_benchmark() -> Proofs:
    taken, most = 0, 0
    for step in (4, -4, 3, 2, -5):
        taken += step
        most = max(most, taken)
    yield most, "takes 4 MiB, frees them, takes 3 MiB, takes 2 more and frees all"

    x = torch.zeros(1000, 1000)
    y = x[0]
    del x
    yield y.untyped_storage().nbytes() / 1e6, "1000 x 1000 float32 | y = x[0] | del x"

    worked = solution("growth_exponent")([1000, 2000], [2 << 20, 16 << 20])
    yield worked, "2 MiB for 1000 tokens and 16 MiB for 2000"

    lengths = [100, 200, 400]
    measured = solution("growth_exponent")(lengths, [(10 << 20) + (n << 10) for n in lengths])
    yield str(round(measured)), "10 MiB once | 1 KiB per token | From 100 to 400 tokens"

    q = torch.zeros(1, 2, 64, 8)
    scores = q @ q.mT
    assert {scores.numel(), scores.softmax(-1).numel()} == {2 * 64 * 64}
    worked = "no, both see the matrices of T x T"
    yield worked, "results of operations | every allocation | plain attention"


def cached_call() -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
    """2 texts, 4 heads, D = 32: 5 tokens, then 3 new ones."""
    module = solution("CachedSelfAttention")(32, 4)
    _, cache = module(torch.randn(2, 5, 32))
    output, grown = module(torch.randn(2, 3, 32), cache)
    return output, grown


def kv_cache() -> Proofs:
    yield cached_call()[1][0].shape, "2 texts, 4 heads, d_k = 8 | 5 tokens | 3 new ones"

    yield cached_call()[0].shape, "D = 32"

    worked = (~solution("causal_mask")(14)[..., 10:, :]).sum().item()
    yield worked, "10 old tokens, 4 new ones | 4 x 14"

    module, cache, seen = solution("CachedSelfAttention")(8, 2), None, []
    module.w_k.register_forward_hook(lambda layer, given, result: seen.append(given[0].shape[1]))
    for _ in range(100):
        _, cache = module(torch.randn(1, 1, 8), cache)
    assert sum(range(1, 101)) == 5050
    yield sum(seen), "100 tokens is written one by one | w_k"

    allowed = torch.ones(2, 7).tril()[0].nonzero().flatten().tolist()
    worked = {(0,): "the oldest token alone"}[tuple(allowed)]
    yield worked, "5 old tokens, 2 new ones | row i sees columns 0 to i"


# --- all of them -------------------------------------------------------------------------------


PROOFS = (
    *(split_heads, scaled_scores, masking, softmax, concat_heads, multi_head_attention, rope),
    *(grouped_query, half_precision, fused_qkv, need_weights, flash, valid_lens, kv_cache),
    *(causal_self_attention, write_the_tests, memory_benchmark),
)


def every_question() -> list[tuple[str, int]]:
    return [(slug, n + 1) for slug in ASKED for n in range(len(predictions(slug).questions))]


def get(slug: str, number: int) -> Question:
    return predictions(slug).questions[number - 1]


def test_every_stage_with_questions_is_worked_out_and_every_core_stage_has_some() -> None:
    assert set(CORE) <= set(ASKED) == {work.__name__ for work in PROOFS}


@pytest.mark.parametrize("work", PROOFS, ids=lambda work: work.__name__)
def test_the_answers_are_right(work: Callable[[], Proofs]) -> None:
    for question, (worked, words) in zip(predictions(work.__name__).questions, work(), strict=True):
        asked = " ".join(question.text.split())
        assert [fact for fact in words.split(" | ") if fact not in asked] == []
        found = (question.answer.kind, question.answer.value)
        if isinstance(worked, str):
            said = [letter for letter, text in question.choices.items() if text == worked]
            assert [found] == [("choice", it) for it in said]
        elif isinstance(worked, tuple):
            assert found == ("shape", tuple(worked))
        else:
            assert found == ("number", pytest.approx(worked, rel=1e-6))


@pytest.mark.parametrize("slug, number", every_question())
def test_the_answer_shown_would_be_taken(slug: str, number: int) -> None:
    question = get(slug, number)
    assert judge(question, question.answer.text) is True


@pytest.mark.parametrize("slug", ASKED)
def test_each_stage_has_a_few_questions_of_more_than_one_kind(slug: str) -> None:
    stage = COURSE.stage(slug)
    assert predictions(slug).title == stage.title
    questions = predictions(slug).questions
    assert 3 <= len(questions) <= 5
    assert len({question.answer.kind for question in questions}) >= 2


def test_there_is_no_file_without_a_stage() -> None:
    files = {stage.predictions_file for stage in COURSE.stages}
    assert set((ROOT / "hints" / "predictions").iterdir()) <= files


@pytest.mark.parametrize("slug, number", every_question())
def test_a_question_and_its_answer_fit_a_small_screen(slug: str, number: int) -> None:
    question = get(slug, number)
    assert 2 <= len(question.because.splitlines()) <= 4
    assert len(set(question.choices.values())) == len(question.choices)
    lines = (draw(asked(question, number, 5)) + draw(explained(question, False))).splitlines()
    assert len(lines) + 3 <= 24  # two answers, and "Not quite" between them
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("slug, number", every_question())
def test_a_shape_that_is_asked_for_is_not_one_that_the_stub_shows(slug: str, number: int) -> None:
    stub = COURSE.stage(slug).exercise_file.read_text(encoding="utf-8")
    answer = get(slug, number).answer
    if answer.kind == "shape":
        assert answer.text not in stub
        assert f"[{answer.text[1:-1]}]" not in stub
