"""hints/predictions/<slug>.md, what may be wrong with it, and what people type as an answer."""

import re
import warnings
from pathlib import Path

import pytest

from grader.learning.predict.questions import (
    judge,
    parse_answer,
    parse_predictions,
    read_predictions,
)
from grader.learning.predict.types import Answer, Question
from grader.types.course import Stage
from grader.types.errors import CourseError
from tests.kit.support.birds import course_of

RIGHT, WRONG, UNCLEAR = True, False, None
GOOD = """\
# Fold

## 1. How large?
A sheet of `4 x 6`
is folded.

    sheet = fold(sheet)

Answer: shape 4, 3
Because: it is folded once.

- a: this is a list, not a choice

## 2. What part?
How much is that?
Answer: number 1/2
Because:
Half of it.
## 3. Which side?
- not a choice
- a: the left
- b: the right,
  seen from above

Answer: choice B
Because: so.
"""


def parse(text: str) -> tuple[Question, ...]:
    return parse_predictions(text, "fold.md").questions


def test_reads_everything() -> None:
    found = parse_predictions(GOOD, "fold.md")
    assert found.title == "Fold"
    first, second, third = found.questions
    assert first.heading == "How large?"
    assert first.text == "A sheet of `4 x 6`\nis folded.\n\n    sheet = fold(sheet)"
    assert first.choices == {}
    assert first.answer == Answer("shape", (4, 3), "(4, 3)")
    assert first.because == "it is folded once.\n\n- a: this is a list, not a choice"
    assert (second.answer, second.because) == (Answer("number", 0.5, "1/2"), "Half of it.")
    assert third.text == "- not a choice"
    assert third.choices == {"a": "the left", "b": "the right, seen from above"}
    assert third.answer == Answer("choice", "b", "b)")


def test_the_answers_in_words() -> None:
    solutions = [question.solution for question in parse(GOOD)]
    assert solutions == ["(4, 3)", "1/2", "b) the right, seen from above"]


def test_three_to_five_questions() -> None:
    more = "## {}. More?\nMore.\nAnswer: number 1\nBecause: so.\n"
    assert len(parse(GOOD + more.format(4) + more.format(5))) == 5
    with pytest.raises(CourseError, match=r"fold\.md: has 6 questions, not 3 to 5"):
        parse(GOOD + more.format(4) + more.format(5) + more.format(6))
    with pytest.raises(CourseError, match=r"fold\.md: has 2 questions, not 3 to 5"):
        parse(GOOD.split("## 3.")[0])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# Fold", "Fold", "1: the first line must be '# ' and the stage's title"),
        ("# Fold\n", "# Fold\n\nHello.", "3: text before question 1"),
        ("## 1. How", "## 2. How", "3: '## 2. How large?' where '## 1. ...' should be"),
        ("## 2. What part?", "## What part?", "14: '## What part?' where '## 2. ...' should be"),
        ("## 3. Which side?", "## 3.", "19: '## 3.' where '## 3. ...' should be"),
        ("How much is that?\n", "", "14: 'What part?' has no text"),
        ("Answer: number 1/2\nB", "B", "16: 'Because:' belongs once after 'Answer:'"),
        ("Half of it.", "Because: yes.", "18: 'Because:' belongs once after 'Answer:'"),
        ("Half of it.", "", "14: question 'What part?' does not say why: add 'Because: ...'"),
        ("Because:\n", "", "17: 'Because:' should be here, after 'Answer:'"),
        ("Because:\nHalf of it.\n", "", "14: question 'What part?' does not say why"),
        ("Answer: number 1/2\nBecause:\nHalf of it.\n", "", "14: question 'What part?' has no"),
        ("Half of it.", "Answer: number 2", "18: question 'What part?' has an answer already"),
        ("number 1/2", "nummer 1/2", "16: start the answer with shape, number or choice"),
        ("number 1/2", "", "16: start the answer with shape, number or choice, not ''"),
        ("number 1/2", "number half", "16: 'half' is not a number: write it like 0.5"),
        ("shape 4, 3", "shape 4, x", "9: '4, x' is not a shape: write it like 2, 3, 4"),
        ("shape 4, 3", "choice a", "9: 'Answer: choice', but the question has no choices"),
        ("choice B", "number 2", "25: 'Answer: number', but the question has choices"),
        ("choice B", "choice c", "25: 'c' is not a choice: write it like a or b"),
        ("- b:", "- c:", "22: choice 'c' is out of order: write '- b:'"),
        ("- b: the right,", "- b:", "22: choice 'b' says nothing"),
        ("- b: the right,\n", "", "19: question 'Which side?' has only one choice"),
        ("  seen", "seen", "23: text after the choices: move it above them, or indent it"),
    ],
)
def test_says_what_is_wrong(old: str, new: str, message: str) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(CourseError, match=re.escape(message)) as caught:
        parse(GOOD.replace(old, new))
    assert str(caught.value).startswith(f"fold.md:{message[:2].rstrip(':')}")
    assert "\n" not in str(caught.value)


def test_no_letter_is_left_for_a_seventh_choice() -> None:
    seven = "".join(f"- {letter}: {letter}\n" for letter in "abcdefg")
    with pytest.raises(CourseError, match="choice 'g' is out of order: 6 are the most"):
        parse(GOOD.replace("- a: the left\n", seven))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return course_of(tmp_path, "fold").stages[0]


def test_a_stage_need_not_have_any(stage: Stage) -> None:
    assert read_predictions(stage) is None


def test_reads_the_file_of_the_stage(stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "hints" / "predictions" / "fold.md"
    assert stage.predictions_file == file
    file.parent.mkdir(parents=True)
    file.write_text(f"\ufeff{GOOD}", encoding="utf-8", newline="\r\n")
    found = read_predictions(stage)
    assert found is not None and found.questions == parse(GOOD)
    file.write_bytes(b"# F\xff")
    with pytest.raises(CourseError, match=r"^hints/predictions/fold\.md: is not UTF-8: save"):
        read_predictions(stage)
    file.unlink()
    file.mkdir()
    with pytest.raises(CourseError, match=r"^hints/predictions/fold\.md: cannot be read: "):
        read_predictions(stage)


# --- what people type --------------------------------------------------------------------------


CHOICES = {"a": "this", "b": "that", "c": "q"}


def question(kind: str, written: str) -> Question:
    answer = parse_answer(kind, written, CHOICES)
    assert answer is not None
    return Question("What?", "What is it?", CHOICES, answer, "So.")


SHAPES = {
    RIGHT: (
        *("(2, 3, 5, 4)", "[2,3,5,4]", "2 3 5 4", "2x3x5x4", "torch.Size([2, 3, 5, 4])"),
        *("2, 3, 5, 4", " 2,3 ,5,4 ", "2 x 3 x 5 x 4", "2X3X5X4", "2×3×5×4", "2*3*5*4", "2;3;5;4"),
        *("(2, 3, 5, 4,)", "2 3 5 4.", "Size([2,3,5,4])", "[B=2, H=3, T=5, d_k=4]"),
        *("B = 2, H = 3, T = 5, d_k = 4", "shape = (2, 3, 5, 4)"),
    ),
    WRONG: ("2 3 4 5", "(2, 3, 5)", "2 3 5 4 1", "2354", "120"),
    UNCLEAR: (
        *("?", "B, H, T, d_k", "2, 3, five, 4", "2.5 3", "-1 3", "()", "2,,3", "x", "a", "1" * 90),
    ),
}


@pytest.mark.parametrize(
    "judged, typed", [(k, typed) for k, all in SHAPES.items() for typed in all]
)
def test_a_shape_in_many_spellings(judged: bool | None, typed: str) -> None:
    assert judge(question("shape", "2 3 5 4"), typed) is judged


def test_a_shape_of_one_axis() -> None:
    for typed in ("5", "(5,)", "[5]", "torch.Size([5])"):
        assert parse_answer("shape", typed, {}) == Answer("shape", (5,), "(5,)")


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        *(("0.5", 0.5), (".5", 0.5), ("1/2", 0.5), ("50%", 0.5), ("50 %", 0.5), (" 5e-1 ", 0.5)),
        *(("= 0.5", 0.5), ("~0.5", 0.5), ("≈ 0.5", 0.5), ("0.5.", 0.5), ("5.", 5.0), ("+5", 5.0)),
        *(("-3", -3.0), ("−3", -3.0), ("- 3", -3.0), ("(3)", 3.0)),
        *(("1,050,624", 1050624.0), ("1_050_624", 1050624.0), ("1 050 624", 1050624.0)),
        *(("1050624", 1050624.0), ("1,050 + 1", 1051.0)),
        *(("4*10*10 + 4*10", 440.0), ("4 × 10 × 11", 440.0), ("4x110", 440.0), ("4 · 110", 440.0)),
        *(("4 * 10**2 + 40", 440.0), ("4 * 10^2 + 40", 440.0), ("(3 - 5) * 2", -4.0)),
        *(("sqrt(2)/2", 0.5**0.5), ("√2 / 2", 0.5**0.5), ("1/math.sqrt(2)", 0.5**0.5)),
        *(("sqrt 16", 4.0), ("SQRT(16)", 4.0), ("2 * sqrt(4)", 4.0)),
        *(("inf", float("inf")), ("-inf", float("-inf")), ("-∞", float("-inf"))),
        *(("Infinity", float("inf")), ("-math.inf", float("-inf")), ("- Inf", float("-inf"))),
    ],
)
def test_one_number_in_many_spellings(typed: str, value: float) -> None:
    found = parse_answer("number", typed, {})
    assert found is not None and found.value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    "typed",
    [
        *("half", "?", "0,5", "0,125", "1,05", "2 3 5 4", "1.2.3", "1/0", "0**-1", "(-1)**0.5"),
        *("sqrt(-1)", "sqrt", "inf(4)", "sqrt(4, 2)", "2(3)", "7//2", "7 % 2", "1inf", "10and"),
        *("__import__('os')", "1j", "True", "'a'", "lambda: 1", "1e", "9**9**9**9", "²", "٣", "()"),
        *("(" * 79, "-" * 80, "1" * 81, "", "sqrt(*2)", "1\n2", "0x10 + ", "\x00"),
    ],
)
def test_what_is_no_number_is_not_wrong(typed: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert judge(question("number", "0.5"), typed) is UNCLEAR


@pytest.mark.parametrize(
    ("wanted", "right", "wrong"),
    [
        ("1/3", ("0.333", "0.33", "33%", "2/6", "33.3 %"), ("0.3", "0", "1", "0.34", "3")),
        ("sqrt(2)/2", ("0.7071", "0.71", "0.7", "1/sqrt(2)"), ("0.72", "1", "0.5", "0.6")),
        ("0.25", ("0.25", "1/4", ".2501", "25%"), ("0.3", "0.2", "0", "-0.25", "0.26")),
        ("0.75", ("0.75", "3/4", "75%"), ("1", "0.8", "0.7")),
        ("11.3", ("11.3", "11"), ("12", "10", "11.6")),
        ("1,050,624", ("1050624", "4 * 512**2 + 4 * 512"), ("1,048,576", "1,050,623", "1050000")),
        ("8", ("8.0", "sqrt(64)", "16/2"), ("8.05", "7", "64")),
        ("0", ("0", "0.0", "0%", "-0"), ("0.001", "1", "nan", "1e-12")),
        ("-inf", ("-inf", "-INF"), ("inf", "-1000000", "0", "nan")),
        ("nan", ("nan", "NaN"), ("0", "inf")),
    ],
)
def test_how_near_a_number_must_be(
    wanted: str, right: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    asked = question("number", wanted)
    assert asked.answer.text == wanted
    for typed in right:
        assert judge(asked, typed) is RIGHT, typed
    for typed in wrong:
        assert judge(asked, typed) is WRONG, typed


@pytest.mark.parametrize("typed", ["b", "B", "b)", "(b)", " B ) ", "b.", "b:", "[b]"])
def test_a_choice_is_its_letter(typed: str) -> None:
    assert judge(question("choice", "b"), typed) is RIGHT
    assert judge(question("choice", "c"), typed) is WRONG


@pytest.mark.parametrize("typed", ["d", "q", "2", "ab", "b or c", "that", "?", "-"])
def test_what_is_no_choice_is_not_wrong(typed: str) -> None:
    assert judge(question("choice", "b"), typed) is UNCLEAR
