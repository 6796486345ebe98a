"""The questions of this course: every answer is worked out anew, in code, beside its question.

Each function below does what its question describes and returns the answer: a shape, a number, or
what the right choice says. `facts` are the words of the question that the code relies on, so that
neither can be changed without the other.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
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

Worked = tuple[int, ...] | torch.Size | float | str


@dataclass(frozen=True)
class Proof:
    """How the answer to one question is worked out."""

    work: Callable[[], Worked]
    facts: tuple[str, ...]


PROOFS: dict[tuple[str, int], Proof] = {}


def answers(slug: str, number: int, *facts: str) -> Callable[[Callable[[], Worked]], Any]:
    def add(work: Callable[[], Worked]) -> Callable[[], Worked]:
        assert (slug, number) not in PROOFS
        PROOFS[slug, number] = Proof(work, facts)
        return work

    return add


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


# --- split_heads -------------------------------------------------------------------------------


@answers("split_heads", 1, "5 sequences", "7 tokens", "12 features", "3 heads")
def shape_of_heads() -> Worked:
    return solution("split_heads")(torch.zeros(5, 7, 12), 3).shape


@answers("split_heads", 2, "0, 10, 20, ... up to 110", "4\nheads", "head 2")
def first_of_head_2() -> Worked:
    x = torch.arange(0, 120, 10)
    heads = solution("split_heads")(x.view(1, 1, 12), 4)
    assert heads[0, :, 0].tolist() == [[0, 10, 20], [30, 40, 50], [60, 70, 80], [90, 100, 110]]
    assert x.view(3, 4)[:, 2].tolist()[0] == 20  # dealt out like cards
    return heads[0, 2, 0, 0].item()


@answers("split_heads", 3, "[1, 2, 3, 4]", "[5, 6, 7, 8]", "two heads", "(1, 2, 4)", "(1, 2, 2, 2)")
def reshaped_to_the_end() -> Worked:
    x = torch.arange(1, 9).view(1, 2, 4)
    assert in_words(solution("split_heads")(x, 2)[0, 0]) == "[1, 2] and [5, 6]"
    return in_words(x.reshape(1, 2, 2, 2)[0, 0])


@answers("split_heads", 4, "12 features", "1, 2, 3, ... 12")
def numbers_of_heads() -> Worked:
    fitting = []
    for heads in range(1, 13):
        try:
            solution("split_heads")(torch.zeros(1, 1, 12), heads)
            fitting.append(heads)
        except ValueError:
            pass
    assert fitting == [1, 2, 3, 4, 6, 12]
    return len(fitting)


# --- scaled_scores -----------------------------------------------------------------------------


@answers("scaled_scores", 1, "(2, 8, 5, 3)", "(2, 8, 9, 3)")
def shape_of_scores() -> Worked:
    return solution("scaled_scores")(torch.zeros(2, 8, 5, 3), torch.zeros(2, 8, 9, 3)).shape


@answers("scaled_scores", 2, "scores[0, 1, 2, 3]")
def compared_in_one_score() -> Worked:
    q, k = torch.zeros(1, 4, 5, 1), torch.zeros(1, 4, 5, 1)
    q[0, 1, 2], k[0, 1, 3] = 1, 1
    scores = solution("scaled_scores")(q, k)
    ((_, head, query, key),) = scores.nonzero().tolist()
    assert scores[0, 1, 2, 3] != 0
    return f"query {query} with key {key}, in head {head}"


@answers("scaled_scores", 3, "9 features, all of them 1", "9 features, all of them 2")
def one_score() -> Worked:
    q, k = torch.full((1, 1, 1, 9), 1.0), torch.full((1, 1, 1, 9), 2.0)
    assert (q * k).sum() == 18 and (q * k).sum() / 9 == 2
    return solution("scaled_scores")(q, k).item()


@answers("scaled_scores", 4, "D = 100", "4 heads of 25 features", "49 tokens")
def divisor() -> Worked:
    q, k = torch.rand(2, 1, 4, 49, 25, dtype=torch.float64)
    ratios = (q @ k.transpose(-2, -1)) / solution("scaled_scores")(q, k)
    torch.testing.assert_close(ratios, torch.full_like(ratios, ratios.mean()))
    return round(ratios.mean().item(), 9)


@answers("scaled_scores", 5, "mean 0", "deviation 1", "100 features")
def spread() -> Worked:
    q, k = torch.randn(2, 1, 1, 1000, 100, generator=torch.Generator().manual_seed(1))
    assert solution("scaled_scores")(q, k).std().item() == pytest.approx(1, rel=0.02)
    assert torch.tensor([10.0, 0.0, -10.0]).softmax(-1)[0] > 0.9999  # one key has everything
    deviation = (q @ k.transpose(-2, -1)).std().item()
    assert deviation == pytest.approx(10, rel=0.02)
    return round(deviation)


# --- masking -----------------------------------------------------------------------------------


@answers("masking", 1, "5 tokens", "itself and at earlier tokens", "25 pairs")
def allowed_pairs() -> Worked:
    mask = solution("causal_mask")(5)
    assert mask.numel() == 25
    assert mask.tril(-1).sum() == 10  # without the diagonal
    return mask.sum().item()


@answers("masking", 2, "4, 0 and 6 tokens", "padded to 6")
def shape_of_padding() -> Worked:
    return solution("padding_mask")(torch.tensor([4, 0, 6]), 6).shape


@answers("masking", 3, "(1, 1, 6, 6)", "(3, 1, 1, 6)", "`&`")
def shape_of_both() -> Worked:
    causal, padding = (
        solution("causal_mask")(6),
        solution("padding_mask")(torch.tensor([4, 0, 6]), 6),
    )
    assert (*causal.shape, *padding.shape) == (1, 1, 6, 6, 3, 1, 1, 6)
    return (causal & padding).shape


@answers("masking", 4, "0, 0 and 5", "multiplies the scores by 1, 1, 0")
def share_of_score_0() -> Worked:
    scores, mask = torch.tensor([0.0, 0.0, 5.0]), torch.tensor([1.0, 1.0, 0.0])
    assert solution("apply_mask")(scores, mask).softmax(-1).tolist() == [0.5, 0.5, 0]
    return (scores * mask).softmax(-1)[2].item()


@answers("masking", 5, "5 tokens", "causal mask", "nn.MultiheadAttention", "token 0")
def seen_with_the_built_in() -> Worked:
    mask = solution("causal_mask")(5)[0, 0]
    x = torch.randn(1, 5, 4)
    built_in = nn.MultiheadAttention(4, 1, batch_first=True).eval()
    _, weights = built_in(x, x, x, attn_mask=mask)
    assert weights[0, 4].isnan().all()  # nothing is left for the last token
    q = torch.randn(1, 1, 5, 4)
    ours = nn.functional.scaled_dot_product_attention(q, q, torch.eye(5)[None, None], mask)
    assert ours[0, 0, 0].nonzero().flatten().tolist() == [0]  # reads masks as we do
    seen = weights[0, 0].nonzero().flatten().tolist()
    return f"tokens {', '.join(map(str, seen[:-1]))} and {seen[-1]}"


# --- softmax -----------------------------------------------------------------------------------


@answers("softmax", 1, "(2, 3, 4, 5)", "heads, queries, keys")
def sum_of_all_weights() -> Worked:
    scores = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    assert round(scores.softmax(-2).sum().item(), 9) == 30  # over the queries
    return round(solution("attention_weights")(scores).sum().item(), 9)


@answers("softmax", 2, "4, -inf, 4, 4, 4", "first key")
def one_key_blocked() -> Worked:
    scores = torch.tensor([[4.0, -INF, 4.0, 4.0, 4.0], [-4.0, -INF, -4.0, -4.0, -4.0]])
    weights = solution("attention_weights")(scores)
    assert torch.equal(weights[0], weights[1])
    return weights[0, 0].item()


@answers("softmax", 3, "0.2 and 0.8", "500 is added to both")
def shifted_scores() -> Worked:
    scores = torch.tensor([0.0, math.log(4)], dtype=torch.float64)
    weights = solution("attention_weights")
    torch.testing.assert_close(weights(scores), torch.tensor([0.2, 0.8], dtype=torch.float64))
    assert torch.tensor(500.0).exp().isinf()
    return round(weights(scores + 500)[1].item(), 9)


@answers("softmax", 4, "-inf, -inf, -inf", "exp divided by the sum of exp")
def blocked_row() -> Worked:
    scores = torch.full((3,), -INF)
    assert solution("attention_weights")(scores).tolist() == [0, 0, 0]
    weights = scores.exp() / scores.exp().sum()
    return "NaN" if weights.isnan().all() else str(weights)


@answers("softmax", 5, "such a row", "0 in place of each\nNaN")
def mended_too_late() -> Worked:
    scores = torch.full((3,), -INF, requires_grad=True)
    weights = torch.nan_to_num(scores.softmax(-1))
    assert weights.tolist() == [0, 0, 0]
    weights.sum().backward()
    return "NaN" if scores.grad.isnan().all() else str(scores.grad)


# --- concat_heads ------------------------------------------------------------------------------


@answers("concat_heads", 1, "(3, 4, 6, 5)")
def shape_of_joined() -> Worked:
    return solution("concat_heads")(torch.zeros(3, 4, 6, 5)).shape


@answers("concat_heads", 2, "Each of 3 heads holds 4 features", "feature 2 of head 2")
def place_of_a_feature() -> Worked:
    x = torch.zeros(1, 3, 2, 4)
    x[0, 2, 1, 2] = 1
    return solution("concat_heads")(x)[0, 1].argmax().item()


@answers("concat_heads", 3, "[1, 2] for token 0", "[3, 4] for token 1", "[5, 6] and [7, 8]")
def reshaped_at_once() -> Worked:
    x = torch.arange(1, 9).view(1, 2, 2, 2)
    assert in_words(solution("concat_heads")(x)[0][:1]) == "[1, 2, 5, 6]"
    return in_words(x.reshape(1, 2, 4)[0][:1])


@answers("concat_heads", 4, "(2, 4, 3, 5)", "axes 1 and 2 swapped", "(2, 3, 4, 5)", "(2, 3, 20)")
def viewed_after_the_swap() -> Worked:
    swapped = torch.zeros(2, 4, 3, 5).transpose(1, 2)
    assert swapped.shape == (2, 3, 4, 5) and swapped.stride()[2:] == (15, 1)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        swapped.view(2, 3, 20)
    return "PyTorch raises an error"


# --- multi_head_attention ----------------------------------------------------------------------


@answers("multi_head_attention", 1, "D = 10", "5 heads", "every layer has a bias")
def parameters() -> Worked:
    module = solution("MultiHeadAttention")(10, 5)
    return sum(parameter.numel() for parameter in module.parameters())


def cross() -> tuple[torch.Tensor, torch.Tensor]:
    decoder, encoder = torch.randn(2, 3, 8), torch.randn(2, 5, 8)
    built_in = nn.MultiheadAttention(8, 4, batch_first=True)
    assert built_in(decoder, encoder, encoder)[1].shape == (2, 3, 5)  # averaged
    output, weights = solution("MultiHeadAttention")(8, 4)(decoder, encoder, encoder)
    return output, weights


@answers(
    "multi_head_attention", 2,
    "2 sequences", "3 tokens of a decoder", "5 tokens of an", "8 features", "4 heads",
)  # fmt: skip
def shape_of_output() -> Worked:
    return cross()[0].shape


@answers(
    "multi_head_attention", 3,
    "2 sequences", "3 decoder tokens", "5 encoder tokens", "8 features", "4 heads",
)  # fmt: skip
def shape_of_weights() -> Worked:
    return cross()[1].shape


@answers("multi_head_attention", 4, "dropout = 0.25", "a weight of 0.3 is not dropped")
def what_dropout_leaves() -> Worked:
    dropout = solution("MultiHeadAttention")(8, 4, dropout=0.25).dropout
    weights = torch.full((400,), 0.3)
    assert torch.equal(dropout.eval()(weights), weights)
    kept = {round(weight, 6) for weight in dropout.train()(weights).tolist()} - {0.0}
    assert len(kept) == 1
    return kept.pop()


@answers("multi_head_attention", 5, "8 features, 4 heads", "Before the last layer", "head 1")
def places_of_head_1() -> Worked:
    heads = torch.zeros(1, 4, 1, 2)
    heads[0, 1] = 1
    places = solution("concat_heads")(heads)[0, 0].nonzero().flatten().tolist()
    return f"in features {places[0]} and {places[1]}"


# --- grouped_query -----------------------------------------------------------------------------


def grouped(*sizes: int, bias: bool = True) -> Any:
    return solution("GroupedQueryAttention")(*sizes, bias=bias)


@answers(
    "grouped_query", 1, "D = 32 features", "8 query heads", "2 key heads", "the weight\nof w_k"
)
def shape_of_w_k() -> Worked:
    return grouped(32, 8, 2).w_k.weight.shape


@answers(
    "grouped_query", 2,
    "2 sequences", "3 queries", "5 keys", "8 query heads", "2 key heads",
)  # fmt: skip
def shape_of_shared_weights() -> Worked:
    query, key = torch.randn(2, 3, 32), torch.randn(2, 5, 32)
    return grouped(32, 8, 2)(query, key, key)[1].shape


@answers("grouped_query", 3, "6 query heads", "2 key heads", "counted from 0", "key\nhead 1")
def readers_of_key_head_1() -> Worked:
    module = grouped(12, 6, 2)
    with torch.no_grad():
        module.w_k.weight[2:] = 0  # so whoever reads it looks at all keys alike
    x = torch.randn(1, 3, 12)
    evenly = (module(x, x, x)[1][0] - 1 / 3).abs().amax(dim=(1, 2)) < 1e-6
    first, second, third = evenly.nonzero().flatten().tolist()
    return f"heads {first}, {second} and {third}"


@answers(
    "grouped_query", 4,
    "D = 4096 features", "32 query heads and 8 key heads", "with 32 key heads",
)  # fmt: skip
def part_of_the_cache() -> Worked:
    widths = [grouped(64, 32, heads).w_k.out_features for heads in (8, 32)]
    return widths[0] / widths[1]  # whatever D is


@answers("grouped_query", 5, "D = 8", "4 query heads", "1 key head", "no biases")
def shared_parameters() -> Worked:
    assert sum(p.numel() for p in grouped(8, 4, 4, bias=False).parameters()) == 256
    return sum(p.numel() for p in grouped(8, 4, 1, bias=False).parameters())


# --- rope --------------------------------------------------------------------------------------


@answers("rope", 1, "9 tokens", "16 features")
def shape_of_angles() -> Worked:
    return solution("rope_angles")(9, 16).shape


@answers("rope", 2, "d_k = 4", "base = 400")
def speed_of_pair_1() -> Worked:
    assert solution("rope_angles")(2, 4)[1, 1].item() == pytest.approx(1 / 100)
    return solution("rope_angles")(2, 4, base=400.0)[1, 1].item()


@answers("rope", 3, "(3, 4)", "2 radians")
def length_of_a_pair() -> Worked:
    pair = torch.tensor([3.0, 4.0]).view(1, 1, 1, 2)
    return solution("apply_rope")(pair, torch.tensor([[2.0]])).norm().item()


@answers("rope", 4, "position 3 scores 1.2", "position 5", "40 places to the right")
def score_of_moved_words() -> Worked:
    q, k = torch.randn(2, 1, 1, 1, 8)

    def score(moved: int) -> float:
        at = solution("rope_angles")(6, 8, offset=moved)
        turn = solution("apply_rope")
        return (turn(q, at[3:4]) * turn(k, at[5:6])).sum().item()

    assert score(40) == pytest.approx(score(0), abs=1e-4)
    return "1.2"


@answers("rope", 5, "Without masks")
def without_an_order() -> Worked:
    x, moved = torch.randn(1, 5, 8), [3, 1, 4, 0, 2]
    names = {"MultiHeadAttention": "the module of stage 6", "RotaryMultiHeadAttention": "turned"}
    blind = []
    for name, words in names.items():
        module = solution(name)(8, 2)
        output, again = module(x, x, x)[0], module(*[x[:, moved]] * 3)[0]
        if torch.allclose(again, output[:, moved], atol=1e-5):
            blind.append(words)
    return " and ".join(blind)


# --- half_precision ----------------------------------------------------------------------------


def forties(dtype: torch.dtype) -> torch.Tensor:
    return torch.full((1, 1, 1, 64), 40.0, dtype=dtype)


@answers("half_precision", 1, "ends at 65504", "64 entries, all of them 40")
def product_in_float16() -> Worked:
    assert torch.finfo(torch.float16).max == 65504
    product = (forties(torch.float16) @ forties(torch.float16).mT).item()
    assert (forties(torch.float32) @ forties(torch.float32).mT).item() == 102400
    return str(product)


@answers("half_precision", 2, "64 entries of 40", "sqrt(d_k)")
def score_of_forties() -> Worked:
    assert torch.tensor(12803.0).half() == 12800 < torch.tensor(12805.0).half() == 12808
    assert round(math.exp(3)) == 20
    return solution("scaled_scores")(forties(torch.float32), forties(torch.float32)).item()


@answers("half_precision", 3, "start at 1 and add 1")
def counted_in_bfloat16() -> Worked:
    count = torch.tensor(1, dtype=torch.bfloat16)
    while count + 1 != count:
        count = count + 1
    return count.item()


@answers("half_precision", 4, "inf in float16", "only inf of its row")
def weight_of_an_inf() -> Worked:
    scores = torch.tensor([1.0, 1e5, 2.0]).half().float()
    return str(torch.softmax(scores, -1)[1].item()).replace("nan", "NaN")


@answers("half_precision", 5, "2048 keys", "every value is 100", "204800")
def average_of_a_long_row() -> Worked:
    q, k = torch.zeros(2, 1, 1, 2048, 4, dtype=torch.float16)
    assert torch.full((2048,), 100.0).sum() == 204800
    result = solution("stable_attention")(q[:, :, :1], k, torch.full_like(k, 100.0))
    return result[0, 0, 0, 0].item()


# --- fused_qkv ---------------------------------------------------------------------------------


@answers("fused_qkv", 1, "8 features", "2 heads", "w_qkv.weight")
def shape_of_the_packed_weight() -> Worked:
    return solution("FusedMultiHeadAttention")(8, 2).w_qkv.weight.shape


@answers("fused_qkv", 2, "D = 8 features, H = 2 heads", "numbered from 0", "values of head 1")
def first_value_of_head_1() -> Worked:
    numbered = torch.arange(24.0).view(1, 1, 24)
    values = numbered.chunk(3, dim=-1)[2]
    return solution("split_heads")(values, 2)[0, 1, 0, 0].item()


@answers("fused_qkv", 3, "with biases", "D = 8\nand 2 heads")
def numbers_to_learn() -> Worked:
    fused, apart = solution("FusedMultiHeadAttention")(8, 2), solution("MultiHeadAttention")(8, 2)
    counts = {sum(p.numel() for p in module.parameters()) for module in (fused, apart)}
    assert len(counts) == 1
    return counts.pop()


@answers("fused_qkv", 4, "variance is 2 / (inputs + outputs)", "(D, D) layer", "(3 D, D)")
def ratio_of_variances() -> Worked:
    D = 64
    return (2 / (D + D)) / (2 / (D + 3 * D))


@answers("fused_qkv", 5, "new.w_o = mha.w_o", "only the new one is trained")
def shared_layer() -> Worked:
    mha = solution("MultiHeadAttention")(8, 2)
    new = solution("fuse")(mha, 2)
    new.w_o = mha.w_o
    before = mha.w_o.weight.detach().clone()
    new(torch.randn(1, 3, 8))[0].sum().backward()
    torch.optim.SGD(new.parameters(), lr=0.1).step()
    return "it stays as it was" if torch.equal(mha.w_o.weight, before) else "it changes too"


# --- need_weights ------------------------------------------------------------------------------


@answers("need_weights", 1, "need_weights=False", "len(result)")
def length_of_the_result() -> Worked:
    x = torch.randn(3, 5, 8)
    return len(solution("OptionalWeightsAttention")(8, 2)(x, x, x, need_weights=False))


@answers("need_weights", 2, "2 sequences of 100 tokens, 4 heads, 8 features per token")
def weights_for_each_number() -> Worked:
    x = torch.randn(2, 100, 8)
    output, weights = solution("OptionalWeightsAttention")(8, 4)(x, x, x)
    return weights.numel() / output.numel()


@answers("need_weights", 3, "twice as long", "memory of the weights grow")
def weights_of_twice_the_tokens() -> Worked:
    module, sizes = solution("OptionalWeightsAttention")(8, 2), []
    for T in (5, 10):
        x = torch.randn(1, T, 8)
        sizes.append(module(x, x, x)[1].nbytes)
    return sizes[1] / sizes[0]


@answers("need_weights", 4, "if need_weights: self.last = weights", "True is followed by one with")
def what_is_left() -> Worked:
    last = None
    for call, need_weights in (("the weights of the first call", True), ("second", False)):
        if need_weights:
            last = call
    return str(last)


@answers("need_weights", 5, "dropout 0.5", "need_weights=False")
def dropout_without_weights() -> Worked:
    module = solution("OptionalWeightsAttention")(40, 4, dropout=0.5, bias=False)
    with torch.no_grad():
        module.w_v.weight.copy_(torch.eye(40))
        module.w_o.weight.copy_(torch.eye(40))
    x, value = torch.randn(1, 200, 40), torch.eye(40)[None]
    dropped = [
        (module(x, value, value, need_weights=need)[0] == 0).float().mean().item()
        for need in (True, False)
    ]
    return "no" if abs(dropped[0] - dropped[1]) < 0.05 else "yes, nothing is dropped then"


# --- flash -------------------------------------------------------------------------------------


@answers("flash", 1, "1024 tokens, 4 heads", "4 bytes", "1024 x 1024 bytes")
def mebibytes_of_scores() -> Worked:
    q = torch.zeros(1, 4, 1024, 1)
    return solution("scaled_scores")(q, q).nbytes / 1024**2


@answers("flash", 2, "ten times as long", "plain attention")
def scores_of_ten_times_the_tokens() -> Worked:
    few, many = torch.zeros(1, 1, 7, 2), torch.zeros(1, 1, 70, 2)
    return (
        solution("scaled_scores")(many, many).numel() / solution("scaled_scores")(few, few).numel()
    )


@answers(
    "flash", 3, "q = k = 0", "the values 0 and 1, and the mask\n1, 0", "1 / (1 + e), about 0.27"
)
def a_mask_of_numbers() -> Worked:
    q, k = torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, 2, 4)
    v, mask = torch.tensor([0.0, 1.0]).view(1, 1, 2, 1), torch.tensor([[1.0, 0.0]])
    added = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert added.item() == pytest.approx(1 / (1 + math.e)) == pytest.approx(0.27, abs=0.01)
    return solution("flash_attention")(q, k, v, mask).item()


@answers("flash", 4, "scores 0 and 0", "score log 4", "of the exponentials is 2", "is subtracted")
def running_sum() -> Worked:
    first, second = [0.0, 0.0], [math.log(4)]
    assert sum(math.exp(score - max(first)) for score in first) == 2
    return sum(math.exp(score - max(first + second)) for score in first + second)


@answers("flash", 5, "fewer products of queries and keys")
def products_of_flash() -> Worked:
    # Each weight of a row depends on every key: none of the T x T products can be left out.
    q, k, v = (torch.randn(1, 1, 5, 4, requires_grad=True) for _ in range(3))
    for query in range(5):
        (gradient,) = torch.autograd.grad(
            solution("flash_attention")(q, k, v)[0, 0, query].sum(), k
        )
        assert (gradient[0, 0] != 0).any(dim=-1).all()
    return "no, just as many"


# --- valid_lens --------------------------------------------------------------------------------


@answers("valid_lens", 1, "2 sequences of 4 tokens with 100 features each; 5 heads")
def folded_shape() -> Worked:
    return solution("transpose_qkv")(torch.zeros(2, 4, 100), 5).shape


@answers("valid_lens", 2, "from 0", "head 3 of the second sequence")
def place_in_the_batch() -> Worked:
    x = torch.zeros(2, 4, 100)
    x[1, :, 60:80] = 1  # head 3 of the second sequence
    (place,) = solution("transpose_qkv")(x, 5).sum(dim=(1, 2)).nonzero()
    return place.item()


@answers("valid_lens", 3, "lengths of these two sequences are 3 and 2", "the ten\nbegin")
def lengths_of_the_ten() -> Worked:
    lengths = torch.repeat_interleave(torch.tensor([3, 2]), 5)
    return " ".join(str(length) for length in lengths[:5].tolist())


@answers("valid_lens", 4, "length is 0", "no bias")
def output_of_nothing_valid() -> Worked:
    x = torch.randn(1, 4, 10)
    return solution("ValidLensAttention")(10, 5)(x, x, x, torch.tensor([0]))[0, 0, 0].item()


@answers("valid_lens", 5, "num_hiddens = 12, no biases", "7 features, keys with 9, values\nwith 11")
def parameters_after_a_call() -> Worked:
    module = solution("ValidLensAttention")(12, 3)
    module(torch.randn(1, 2, 7), torch.randn(1, 4, 9), torch.randn(1, 4, 11))
    return sum(parameter.numel() for parameter in module.parameters())


# --- causal_self_attention ---------------------------------------------------------------------


@answers(
    "causal_self_attention", 1, "d_in = 4, d_out = 6, 2 heads, context_size = 8", "2 texts of 7"
)
def shape_of_the_text() -> Worked:
    return solution("CausalSelfAttention")(4, 6, 8, 2)(torch.randn(2, 7, 4)).shape


@answers("causal_self_attention", 2, "same module, without qkv_bias")
def learnt_numbers() -> Worked:
    return sum(p.numel() for p in solution("CausalSelfAttention")(4, 6, 8, 2).parameters())


@answers("causal_self_attention", 3, "context_size = 8", "5 tokens", "allow")
def allowed_in_part_of_the_mask() -> Worked:
    return solution("causal_mask")(8)[..., :5, :5].sum().item()


@answers("causal_self_attention", 4, "self.mask = causal_mask(8)", '.to("cuda")')
def mask_that_stays() -> Worked:
    class Assigned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mask = solution("causal_mask")(8)

    module = Assigned()
    assert list(module.parameters()) == []
    module.to("meta")  # a device that every machine has
    stays = module.mask.device.type == "cpu"
    return "the mask is still on the CPU, and torch complains" if stays else "moved"


@answers("causal_self_attention", 5, "context_size = 8", "9 tokens")
def one_token_too_many() -> Worked:
    try:
        solution("CausalSelfAttention")(4, 6, 8, 2)(torch.randn(1, 9, 4))
    except ValueError:
        return "raise a ValueError"
    return "nothing"


# --- write_the_tests ---------------------------------------------------------------------------


@answers("write_the_tests", 1, "forgets to divide its scores", "the shapes of output and weights")
def what_shapes_tell() -> Worked:
    q, k = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 5, 8)
    scores = solution("scaled_scores")(q, k)
    assert (scores - q @ k.mT).abs().max() > 0.1
    return "no" if scores.shape == (q @ k.mT).shape else "yes"


@answers("write_the_tests", 2, "dropout=0.5", "four keys", "Two\nof the four weights are dropped")
def sum_of_what_is_left() -> Worked:
    return (torch.full((4,), 0.25) * torch.tensor([1, 0, 0, 1]) / (1 - 0.5)).sum().item()


@answers("write_the_tests", 3, "the mask of the first", "one sequence")
def masks_that_are_another() -> Worked:
    masks = torch.rand(1, 1, 1, 4) > 0.5
    return float((masks[:1].expand_as(masks) != masks).sum())


@answers("write_the_tests", 4, "Three heads of two features", "order 2, 0, 1", "counted from 0")
def first_row() -> Worked:
    rows = torch.arange(6).view(3, 2)[[2, 0, 1]].flatten()
    assert rows.tolist() == [4, 5, 0, 1, 2, 3]
    return float(rows[0])


@answers("write_the_tests", 5, "a gradient of 0")
def bias_without_a_gradient() -> Worked:
    mha, x = solution("MultiHeadAttention")(6, 2), torch.randn(2, 4, 6)
    mha(x, x, x)[0].sin().sum().backward()
    none = [n for n, p in mha.named_parameters() if p.grad.abs().max() < 1e-6]
    assert len(none) == 1
    return none[0]


# --- memory_benchmark --------------------------------------------------------------------------


@answers("memory_benchmark", 1, "takes 4 MiB, frees them, takes 3 MiB, takes 2 more and frees all")
def peak_of_steps() -> Worked:
    taken, most = 0, 0
    for step in (4, -4, 3, 2, -5):
        taken += step
        most = max(most, taken)
    return most


@answers("memory_benchmark", 2, "1000 x 1000 float32", "y = x[0]", "del x")
def bytes_behind_a_view() -> Worked:
    x = torch.zeros(1000, 1000)
    y = x[0]
    del x
    return y.untyped_storage().nbytes() / 1e6


@answers("memory_benchmark", 3, "2 MiB for 1000 tokens and 16 MiB for 2000")
def exponent_of_two_points() -> Worked:
    return solution("growth_exponent")([1000, 2000], [2 << 20, 16 << 20])


@answers("memory_benchmark", 4, "10 MiB once", "1 KiB per\ntoken", "From 100 to 400 tokens")
def exponent_beside_a_constant() -> Worked:
    lengths = [100, 200, 400]
    measured = solution("growth_exponent")(lengths, [(10 << 20) + (n << 10) for n in lengths])
    return str(round(measured))


@answers("memory_benchmark", 5, "results of operations", "every allocation", "plain\nattention")
def what_both_see() -> Worked:
    q = torch.zeros(1, 2, 64, 8)
    scores = q @ q.mT
    assert {scores.numel(), scores.softmax(-1).numel()} == {2 * 64 * 64}
    return "no, both see the matrices of T x T"


# --- kv_cache ----------------------------------------------------------------------------------


def cached_call() -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
    """2 texts, 4 heads, D = 32: 5 tokens, then 3 new ones."""
    module = solution("CachedSelfAttention")(32, 4)
    _, cache = module(torch.randn(2, 5, 32))
    output, grown = module(torch.randn(2, 3, 32), cache)
    return output, grown


@answers("kv_cache", 1, "2 texts, 4 heads, d_k = 8", "5 tokens", "3 new ones")
def shape_of_the_grown_cache() -> Worked:
    return cached_call()[1][0].shape


@answers("kv_cache", 2, "D = 32")
def shape_of_the_new_output() -> Worked:
    return cached_call()[0].shape


@answers("kv_cache", 3, "10 old tokens, 4 new ones", "4 x 14")
def blocked_pairs() -> Worked:
    return (~solution("causal_mask")(14)[..., 10:, :]).sum().item()


@answers("kv_cache", 4, "100 tokens is written one by one", "w_k")
def tokens_through_w_k() -> Worked:
    module, cache, seen = solution("CachedSelfAttention")(8, 2), None, []
    module.w_k.register_forward_hook(lambda layer, given, result: seen.append(given[0].shape[1]))
    for _ in range(100):
        _, cache = module(torch.randn(1, 1, 8), cache)
    assert sum(range(1, 101)) == 5050
    return sum(seen)


@answers("kv_cache", 5, "5 old tokens, 2 new ones", "row i sees columns 0 to i")
def upper_left_triangle() -> Worked:
    allowed = torch.ones(2, 7).tril()[0].nonzero().flatten().tolist()
    return {(0,): "the oldest token alone"}[tuple(allowed)]


# --- all of them -------------------------------------------------------------------------------


def every_question() -> list[tuple[str, int]]:
    return [(slug, n + 1) for slug in ASKED for n in range(len(predictions(slug).questions))]


def get(slug: str, number: int) -> Question:
    return predictions(slug).questions[number - 1]


def test_every_answer_is_worked_out() -> None:
    assert sorted(PROOFS) == sorted(every_question())


@pytest.mark.parametrize("slug, number", sorted(PROOFS))
def test_the_answer_is_right(slug: str, number: int) -> None:
    question, proof = get(slug, number), PROOFS[slug, number]
    for fact in proof.facts:
        assert fact in question.text
    worked = proof.work()
    if isinstance(worked, str):
        said = [letter for letter, text in question.choices.items() if text == worked]
        assert [(question.answer.kind, question.answer.value)] == [("choice", it) for it in said]
    elif isinstance(worked, tuple):
        assert (question.answer.kind, question.answer.value) == ("shape", tuple(worked))
    else:
        assert question.answer.kind == "number"
        assert question.answer.value == pytest.approx(worked, rel=1e-6)


@pytest.mark.parametrize("slug, number", every_question())
def test_the_answer_shown_would_be_taken(slug: str, number: int) -> None:
    question = get(slug, number)
    assert judge(question, question.answer.text) is True


def test_every_core_stage_asks_something() -> None:
    assert set(CORE) <= set(ASKED)


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
