"""hints/<slug>.md: the ladder and what follows it, and what may be wrong with the file."""

import re
from pathlib import Path

import pytest

from grader.learning.hints.ladder import parse_hints, read_hints
from grader.learning.hints.types import SECTIONS, Part, Rung
from grader.types.errors import CourseError
from tests.kit.support.birds import course_of
from tests.kit.support.checkout import COURSE

SLUGS = [stage.slug for stage in COURSE.stages]
RUNGS = "".join(f"## {n}. Question {n}?\nAnswer {n}.\n\n" for n in range(1, 5))
AFTER = "## Learnt\nHalves.\n\n## Why it is written this way\nSo.\n\n## Read next\nA book.\n"
GOOD = f"# Fold\n\n{RUNGS}{AFTER}"


def test_reads_everything() -> None:
    hints = parse_hints(GOOD, "fold.md")
    assert hints.title == "Fold"
    assert hints.rungs[1] == Rung("Question 2?", "Answer 2.")
    assert len(hints.rungs) == 4
    assert dict(zip(SECTIONS, ("Halves.", "So.", "A book."), strict=True)) == hints.sections
    assert hints.learnt == "Halves."


def test_the_sections_may_be_missing() -> None:
    hints = parse_hints(f"# Fold\n{RUNGS}", "fold.md")
    assert (len(hints.rungs), hints.learnt, hints.sections) == (4, "", {})


def test_a_line_divides_a_hint_into_a_question_and_its_answer() -> None:
    asks = "Try it.\n\n    a = 1\n\n---\n\n    b = 2\n\nSo.\n"
    hints = parse_hints(GOOD.replace("Answer 2.", asks), "fold.md")
    assert hints.rungs[1] == Rung("Question 2?", "Try it.\n\n    a = 1", "    b = 2\n\nSo.")
    assert hints.rungs[0].answer == hints.rungs[2].answer == ""


def test_a_part_of_a_hint_has_its_heading() -> None:
    divided, whole = Rung("How?", "Try it.", "So."), Rung("How?", "Try it: so.")
    shown = [divided.shown(part) for part in (Part.QUESTION, Part.ANSWER, Part.WHOLE)]
    assert shown == ["How?\n\nTry it.", "How?\n\nSo.", "How?\n\nTry it.\n\n**The answer**\n\nSo."]
    assert whole.shown(Part.WHOLE) == "How?\n\nTry it: so."


@pytest.mark.parametrize("text", ["```\na\n---\nb\n```", "    ---", "-- -", "| --- |"])
def test_other_lines_divide_nothing(text: str) -> None:
    assert parse_hints(GOOD.replace("Answer 2.", text), "fold.md").rungs[1].text == text


def test_a_line_in_a_section_stays() -> None:
    learnt = parse_hints(GOOD.replace("Halves.", "Halves.\n---\nAll."), "fold.md").learnt
    assert learnt == "Halves.\n\n---\n\nAll."


def test_code_is_kept_as_it_is() -> None:
    code = "    first = 1\n\n    ## 9. not a hint\n\n```python\n## 8. nor is this\n```"
    hints = parse_hints(f"# Fold\n{RUNGS}## 5. Nearly all of it\n\n{code}\n\n\n", "fold.md")
    assert hints.rungs[4] == Rung("Nearly all of it", code)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "fold.md:1: the first line must be '# ' and the stage's title"),
        (GOOD[2:], "fold.md:1: the first line must be"),
        (f"## 1. No title\n{RUNGS}", "fold.md:1: the first line must be"),
        (GOOD.replace("# Fold\n", "# Fold\nHello."), "fold.md: there is text before hint 1"),
        (GOOD.replace("## 1.", "## 2."), "fold.md:3: hint 2 where hint 1 should be"),
        (GOOD.replace("## 3.", "## 4."), "fold.md:9: hint 4 where hint 3 should be"),
        (GOOD.replace("## 4.", "## 3."), "fold.md:12: hint 3 where hint 4 should be"),
        (GOOD.replace("Answer 2.", ""), "fold.md:6: '2. Question 2?' has no text"),
        (
            GOOD.replace("Answer 2.", "a\n---\nb\n---\nc"),
            "fold.md:6: hint 2 has 2 lines '---': keep one, above the answer",
        ),
        (
            GOOD.replace("Answer 2.", "\n---\nAnswer 2."),
            "fold.md:6: hint 2 has no text above '---': ask the question there",
        ),
        (
            GOOD.replace("Answer 2.", "Answer 2.\n\n---"),
            "fold.md:6: hint 2 has no text below '---': write the answer there",
        ),
        (GOOD.replace("Answer 2.", "---"), "fold.md:6: '2. Question 2?' has no text"),
        (f"# Fold\n---\n{RUNGS}Hi\n---", "hint 4 has no text below '---'"),
        (GOOD.replace("Halves.", " "), "'Learnt' has no text"),
        (GOOD.replace("## Learnt", "## Lernt"), "fold.md:15: 'Lernt' is neither a hint"),
        (GOOD.replace("## 4. Question 4?", "## 4."), "fold.md:12: '4.' is neither a hint"),
        (GOOD.replace("Read next", "Learnt"), "'Learnt' appears twice"),
        (
            f"# Fold\n{RUNGS}## Read next\nA book.\n## Learnt\nHalves.",
            "'Learnt' belongs before 'Read next'",
        ),
        (f"{GOOD}## 5. Late\nToo late.", "hint 5 comes after the sections"),
        (GOOD.replace("## 4. Question 4?\n", ""), "fold.md: has 3 hints: write at least 4"),
        (GOOD.replace("Answer 3.", "```\nx"), "md:10: the code block that starts here has no end"),
    ],
)
def test_says_what_is_wrong(text: str, match: str) -> None:
    with pytest.raises(CourseError, match=re.escape(match)) as caught:
        parse_hints(text, "fold.md")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=r"^hints/fold\.md: cannot be read: No such file"):
        read_hints(course_of(tmp_path, "fold").stages[0])


@pytest.mark.parametrize("slug", SLUGS)
def test_the_hints_of_this_course(slug: str) -> None:
    stage = COURSE.stage(slug)
    hints = read_hints(stage)
    assert hints.title == stage.title
    questions = [rung.text for rung in hints.rungs if rung.answer]
    assert len(questions) >= 3
    assert hints.rungs[-1].answer == "" or slug == "flash"
    assert tuple(hints.sections) == SECTIONS
