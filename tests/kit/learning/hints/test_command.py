"""`grade hint`: one more each time, remembered, for the stage that the learner is at."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from grader.command.main import main
from grader.read.progress import memory_folder, read_progress, update_progress
from grader.types.report import CheckResult, Diagnosis, Outcome, StageResult, Status
from tests.kit.support.checkout import imported_by
from tests.kit.support.tiny import Capture, Typed


@pytest.fixture
def ask(birds: Path, grade: Typed) -> Typed:
    """Type `grade hint ...`; what is shown."""
    return partial(grade, "hint")


def write(folder: Path, slug: str) -> None:
    """The learner writes the stage; whether it is right nobody knows yet."""
    (folder / "exercises" / f"{slug}.py").write_text("x = 1\n", encoding="utf-8")


UNEVEN = Diagnosis("uneven", "You fold at a **third**.", 4)


def graded(folder: Path, slug: str, status: Status, *, named: bool = False) -> None:
    diagnosis = UNEVEN if status is Status.FAILED and named else None
    outcome = Outcome.PASSED if status is Status.PASSED else Outcome.FAILED
    check = CheckResult(f"{slug}.even", "Even", outcome, 0, 1, diagnosis=diagnosis)
    result = StageResult(slug, slug, status, 0, 1, False, (check,))
    update_progress(folder, lambda now: now.with_result(result, "digest", "today"))


def test_after_the_last_hint_comes_the_repair_of_the_learners_own_code(
    ask: Typed, birds: Path
) -> None:
    repair = "fold.py, line 3:\n    return sheet / 2"
    found = Diagnosis("place:", "", place="fold.py", repair=repair)
    check = CheckResult("fold.even", "Even", Outcome.FAILED, 0, 1, diagnosis=found)
    result = StageResult("fold", "Fold", Status.FAILED, 0, 1, False, (check,))
    update_progress(birds, lambda now: now.with_result(result, "digest", "today"))
    for number in (1, 2, 3, 4, 5):
        assert ("return sheet / 2" in ask("fold")) == (number == 5)
    other = replace(result, checks=())
    update_progress(birds, lambda now: now.with_result(other, "another", "today"))
    assert "return sheet / 2" not in ask("fold")


@pytest.fixture
def asking(birds: Path) -> Path:
    """Each hint of fold asks first."""
    file = birds / "hints" / "fold.md"
    text = re.sub(r"(Do step (\d).*)", r"Why step \2?\n\n---\n\n\1", file.read_text("utf-8"))
    file.write_text(text, encoding="utf-8")
    return birds


def parts(shown: str) -> tuple[bool, bool]:
    """Whether it has a question, and whether it has an answer."""
    return "Why step" in shown, "Do step" in shown


def test_a_hint_asks_first_and_answers_the_next_time(asking: Path, ask: Typed) -> None:
    for number in range(1, 6):
        shown = ask("fold")
        assert f"hint {number} of 5\n\n  {number}. Step {number}\n" in shown
        assert parts(shown) == (True, False)
        assert "The answer:  grade hint fold" in shown and "The next one" not in shown
        shown = ask("fold")
        assert f"hint {number} of 5, the answer\n\n  {number}. Step {number}\n" in shown
        assert parts(shown) == (False, True)
        assert ("The next one:  grade hint fold" in shown) == (number < 5)
        assert read_progress(asking).progress.stage("fold").rungs == number
    shown = ask("fold")
    assert parts(shown) == (True, True) and "This was the last one." in shown
    assert parts(ask("fold", "2")) == (True, True)


def test_the_hint_about_the_mistake_asks_too(asking: Path, ask: Typed) -> None:
    graded(asking, "fold", Status.FAILED, named=True)
    shown = ask()
    assert "hint 4 of 5" in shown and "The last run found: You fold at a third." in shown
    assert parts(shown) == (True, False)
    graded(asking, "fold", Status.FAILED, named=True)
    shown = ask()
    assert "hint 4 of 5, the answer" in shown and "The last run found" not in shown
    assert "hint 5 of 5" in ask()


def test_a_hint_that_is_refused_leaves_the_answer_due(
    asking: Path, ask: Typed, refused: Typed
) -> None:
    ask("fold")
    error = refused("hint", "fold", "4")
    assert "hint 4 comes after hint 2: `grade hint fold` shows it" in error
    assert "hint 1 of 5, the answer" in ask("fold")


def test_an_earlier_one_and_the_last_one_again(ask: Typed) -> None:
    assert "hint 1 of 5" in ask("fold", "--again")
    ask("fold")
    ask("fold")
    assert "hint 1 of 5" in ask("fold", "1")
    assert "hint 3 of 5" in ask("fold", "--again")
    assert "hint 4 of 5" in ask("fold", "4")
    assert "hint 5 of 5" in ask("fold")
    assert "hint 2 of 5" in ask("2", "fold")


@pytest.mark.parametrize("words", [("fold", "wings"), ("1", "2")])
def test_two_stages_or_two_numbers(birds: Path, refused: Typed, words: tuple[str, str]) -> None:
    error = refused("hint", *words)
    assert error == "grade: name one stage and one number, as in `grade hint fold 2`\n"


@pytest.mark.parametrize("number", ["0", "6"])
def test_a_hint_that_there_is_not(birds: Path, refused: Typed, number: str) -> None:
    assert f"fold has hints 1 to 5, and no hint {number}" in refused("hint", "fold", number)


def test_an_unknown_stage(birds: Path, refused: Typed) -> None:
    assert refused("hint", "wing") == "grade: there is no stage 'wing'; did you mean 'wings'?\n"
    assert not memory_folder(birds).exists()


def test_the_stage_of_the_last_hint_is_kept_until_it_is_graded(birds: Path, ask: Typed) -> None:
    assert "Fold a sheet   hint 1" in ask("1")
    write(birds, "fold")
    assert "Fold a sheet   hint 2" in ask()
    graded(birds, "fold", Status.FAILED)
    assert "Fold a sheet   hint 3" in ask()
    graded(birds, "fold", Status.PASSED)
    assert "Two wings   hint 1" in ask()


def test_all_of_them_at_once_when_the_stage_has_passed(
    birds: Path, ask: Typed, refused: Typed
) -> None:
    assert "--all works after you pass" in refused("hint", "fold", "--all")
    graded(birds, "fold", Status.PASSED)
    graded(birds, "fold", Status.FAILED)  # stays readable whatever comes later
    shown = ask("fold", "--all")
    assert all(f"Do step {number} of fold." in shown for number in range(1, 6))
    assert "Sheets have two sides." in shown
    assert "hint 3 of 5" in ask("fold", "3")


def test_shown_whole_where_nothing_can_be_remembered(asking: Path, capsys: Capture) -> None:
    memory_folder(asking).write_text("a file stands in the way", encoding="utf-8")
    for words, number in (((), 1), ((), 1), (("fold", "3"), 3)):
        assert main(["hint", *words]) == 0
        shown = capsys.readouterr()
        assert f"Fold a sheet   hint {number} of 5" in shown.out
        assert parts(shown.out) == (True, True)
        assert "so your progress is not saved" in shown.err
        assert shown.err.count("\n") == 1


def test_a_damaged_progress_file_is_reported_and_started_again(
    birds: Path, capsys: Capture
) -> None:
    memory_folder(birds).mkdir()
    (memory_folder(birds) / "progress.json").write_text("{", encoding="utf-8")
    assert main(["hint", "fold"]) == 0
    shown = capsys.readouterr()
    assert "hint 1 of 5" in shown.out
    assert "it is kept as progress.json.corrupt-1" in shown.err
    assert main(["hint", "fold"]) == 0
    shown = capsys.readouterr()
    assert "hint 2 of 5" in shown.out
    assert shown.err == ""


def test_a_fault_in_the_hints_is_the_course_s(birds: Path, refused: Typed) -> None:
    (birds / "hints" / "fold.md").write_text("# Fold\n", encoding="utf-8")
    assert "hints/fold.md: has 0 hints: write at least 4" in refused("hint", "fold")
    assert not memory_folder(birds).exists()


@pytest.mark.parametrize("words", [["hint", "fold"], ["list"], ["--help"], ["stubs", "--check"]])
def test_imports_nothing_that_is_slow(birds: Path, words: list[str]) -> None:
    slow = {"torch", "pytest", "numpy", "subprocess", "asyncio", "zipfile"}
    slow |= {"rich.markdown", "rich.syntax", "rich.table", "pygments", "markdown_it"}
    others = {"grader.classes.command", "grader.learning.workspace.init_command"}
    assert not imported_by(*words) & (slow | others)
