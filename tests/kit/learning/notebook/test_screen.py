"""What is said of a written notebook, and the text of a verdict in it."""

from dataclasses import replace

from grader.learning.hints.types import Hints
from grader.learning.notebook.screen import verdict, written
from grader.show.screen import Screen
from grader.types.report import CheckResult, Outcome, Report, StageResult, Status
from tests.kit.support.drawn import draw


def drawn(screen: Screen, width: int = 80) -> str:
    text = draw(screen, width, color_system=None)
    assert max(len(line) for line in text.split("\n")) <= width
    return " ".join(text.split())


def report(status: Status) -> Report:
    passed = status is Status.PASSED
    outcome = Outcome.PASSED if passed else Outcome.FAILED
    check = CheckResult("fold.x", "It folds", outcome, 4.0 * passed, 4.0, "wrong at 3")
    stage = StageResult("fold", "Fold", status, 4.0 * passed, 4.0, False, (check,))
    return Report("Birds", "this notebook", "cpu", stage.score, 4.0, 0.0, (stage,), ("seed 7",))


HINTS = {"fold": Hints("Folding", (), {"Learnt": "Sheets have two sides."})}


def test_a_verdict_tells_the_failure_and_nothing_that_was_learnt() -> None:
    text = drawn(verdict(report(Status.FAILED), HINTS))
    assert "0 / 4 failed" in text and "wrong at 3" in text and "seed 7" in text
    assert "Sheets" not in text


def test_a_verdict_tells_what_was_learnt() -> None:
    text = drawn(verdict(report(Status.PASSED), HINTS))
    assert "4 / 4 passed" in text and "Learnt in fold Sheets have two sides." in text


def test_an_untouched_stub_is_told_to_run_the_cell_and_not_to_save_a_file() -> None:
    text = drawn(verdict(report(Status.NOT_STARTED), {}))
    assert "Put your code in place of raise NotImplementedError and rerun the cell" in text
    assert "file" not in text


def test_a_stub_below_the_answer_is_the_reason() -> None:
    empty = report(Status.NOT_STARTED)
    (stage,) = empty.stages
    below = replace(empty, stages=(replace(stage, why_not_started="A cell below is a stub."),))
    text = drawn(verdict(below, {}))
    assert "A cell below is a stub." in text and "Put your code" not in text


def test_a_written_notebook_says_how_to_open_it_what_was_kept_and_what_it_lacks() -> None:
    text = drawn(written("birds.ipynb", 3, "jupyter lab birds.ipynb", "birds.ipynb-1", ["fold"]))
    assert "Written: birds.ipynb, 3 stages." in text and "jupyter lab birds.ipynb" in text
    assert "A copy of the old notebook is birds.ipynb-1" in text
    assert "Your files have code for fold" in text and "--force --with-answers" in text
    plain = drawn(written("birds.ipynb", 1, "jupyter lab birds.ipynb"))
    assert "kept" not in plain and "--with-answers" not in plain


def test_a_verdict_on_visible_checks_says_that_more_run() -> None:
    whole = report(Status.PASSED)
    partial = replace(whole, stages=tuple(replace(s, is_partial=True) for s in whole.stages))
    text = drawn(verdict(partial, {}))
    assert "4 / 4 visible ok" in text and "passed" not in text
    assert "your visible checks pass; more checks run on submission" in text
