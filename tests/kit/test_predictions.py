"""The questions of this course: every answer is worked out anew, in code, beside its question.

Each function below does what its question describes and returns the answer: a shape, a number, or
what the right choice says. `facts` are the words of the question that the code relies on, so that
neither can be changed without the other.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import nn

from grader.read.course_file import read_course
from grader.read.predictions import judge, read_predictions
from grader.run.solutions import local_solutions
from grader.show.predictions import asked, explained
from grader.types.predictions import Choice, Judgement, Number, Predictions, Question, Shape

ROOT = Path(__file__).parents[2]
COURSE = read_course(ROOT / "course.toml")
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
    assert scores.grad is not None
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


@answers("rope", 4, "position 3 scores 1.2", "position 5", "40 places on")
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


# --- all of them -------------------------------------------------------------------------------


def every_question() -> list[tuple[str, int]]:
    return [(slug, n + 1) for slug in ASKED for n in range(len(predictions(slug).questions))]


def get(slug: str, number: int) -> Question:
    return predictions(slug).questions[number - 1]


# Bonus stages whose answers nobody has worked out in code yet.
UNPROVEN = {
    *("fused_qkv", "need_weights", "flash", "valid_lens", "causal_self_attention"),
    *("memory_benchmark", "kv_cache"),
}


def test_every_answer_is_worked_out() -> None:
    assert sorted(PROOFS) == sorted(q for q in every_question() if q[0] not in UNPROVEN)
    assert set(ASKED) >= UNPROVEN


@pytest.mark.parametrize("slug, number", sorted(PROOFS))
def test_the_answer_is_right(slug: str, number: int) -> None:
    question, proof = get(slug, number), PROOFS[slug, number]
    for fact in proof.facts:
        assert fact in question.text
    worked = proof.work()
    if isinstance(worked, str):
        said = [letter for letter, text in question.choices.items() if text == worked]
        assert [question.answer] == [Choice(letter) for letter in said]
    elif isinstance(worked, tuple):
        assert question.answer == Shape(tuple(worked))
    else:
        assert isinstance(question.answer, Number)
        assert question.answer.value == pytest.approx(worked, rel=1e-6)


@pytest.mark.parametrize("slug, number", every_question())
def test_the_answer_shown_would_be_taken(slug: str, number: int) -> None:
    question = get(slug, number)
    assert judge(question, str(question.answer)) is Judgement.RIGHT


def test_every_core_stage_asks_something() -> None:
    assert set(CORE) <= set(ASKED)


@pytest.mark.parametrize("slug", ASKED)
def test_each_stage_has_a_few_questions_of_more_than_one_kind(slug: str) -> None:
    stage = COURSE.stage(slug)
    assert predictions(slug).title == stage.title
    questions = predictions(slug).questions
    assert 3 <= len(questions) <= 5
    assert len({type(question.answer) for question in questions}) >= 2


def test_there_is_no_file_without_a_stage() -> None:
    files = {stage.predictions_file for stage in COURSE.stages}
    assert set((ROOT / "hints" / "predictions").iterdir()) <= files


@pytest.mark.parametrize("slug, number", every_question())
def test_a_question_and_its_answer_fit_a_small_screen(slug: str, number: int) -> None:
    question = get(slug, number)
    assert 2 <= len(question.because.splitlines()) <= 4
    assert len(set(question.choices.values())) == len(question.choices)
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=False, _environ={})
    console.print(asked(question, number, 5), explained(question, False), end="")
    lines = file.getvalue().splitlines()
    assert len(lines) + 3 <= 24  # two answers, and "Not quite" between them
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("slug, number", every_question())
def test_a_shape_that_is_asked_for_is_not_one_that_the_stub_shows(slug: str, number: int) -> None:
    stub = COURSE.stage(slug).exercise_file.read_text(encoding="utf-8")
    answer = get(slug, number).answer
    if isinstance(answer, Shape):
        assert str(answer) not in stub
        assert f"[{str(answer)[1:-1]}]" not in stub
