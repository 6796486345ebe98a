"""A report as nbgrader takes it: the points of each cell, the reasons, the comments."""

import re
from dataclasses import replace
from typing import Any

import pytest
from nbconvert.filters import markdown2html
from nbformat import from_dict
from nbgrader.utils import determine_grade

from grader.classes.nbgrader.feedback import (
    comment,
    feedback_html,
    notebook_verdict,
    outputs,
    put_verdict,
    unreadable_verdict,
)
from grader.classes.nbgrader.screen import summary
from grader.classes.nbgrader.types import CellVerdict, Graded
from grader.types.report import CheckResult, Diagnosis, Outcome, Report, StageResult, Status
from tests.kit.support.drawn import draw

EVIL = "<script>alert(1)</script>\x1b[31m"


def check(outcome: Outcome, points: float = 2.0, **others: Any) -> CheckResult:
    score = points if outcome is Outcome.PASSED else 0.0
    return CheckResult("fold.x", "It folds", outcome, score, points, **others)


def stage(status: Status, *checks: CheckResult, **others: Any) -> StageResult:
    score = sum(check.score for check in checks)
    return StageResult("fold", "Fold a sheet", status, score, 4.0, False, checks, **others)


def report(*stages: StageResult) -> Report:
    score = sum(stage.score for stage in stages)
    return Report("Birds", "x", "cpu", score, 4.0, 0.0, stages, ("seed 7",))


WRONG = check(Outcome.FAILED, message=EVIL, diagnosis=Diagnosis("up", f"You turn it. {EVIL}", 3))
CALL = CheckResult(
    "fold.forbidden-call", "Written without cut", Outcome.FAILED, -4, 0, "Your code calls cut"
)
NOT_RUN = check(Outcome.SKIPPED, message="only with a GPU")
PASSED = check(Outcome.PASSED, 1.5)
FAILED = stage(Status.FAILED, PASSED, WRONG)


def cell(points: float = 4.0) -> Any:
    metadata = {
        "nbgrader": {"grade": True, "grade_id": "fold", "solution": False, "points": points}
    }
    return from_dict(
        {"cell_type": "code", "metadata": metadata, "source": "", "outputs": [], "id": "a"}
    )


def graded(points: float | None, most: float = 4.0) -> Any:
    """What nbgrader itself makes of a cell with such a verdict."""
    found = cell(most)
    verdict = CellVerdict("fold", "fold-code", points, most, "<p>why</p>", "why")
    found["outputs"] = [from_dict(output) for output in outputs(verdict)]
    return determine_grade(found)


def test_feedback_names_the_hint_to_ask_for_and_shows_none() -> None:
    text = feedback_html(report(FAILED), FAILED)
    assert "<strong>It folds</strong> (-2 points)" in text and "</strong> You turn it." in text
    assert "grade hint fold</code>, where hint 3 is about this failure" in text
    untouched = stage(Status.NOT_STARTED, check(Outcome.FAILED))
    assert "Nothing is written here yet." in feedback_html(report(untouched), untouched)


@pytest.mark.parametrize("points", [0, 0.0, 1, 1.5, 1 / 3, 4, 4.0, 1e-9])
def test_nbgrader_reads_the_very_points(points: float) -> None:
    assert graded(points) == (points, 4.0)


def test_a_rounding_above_the_most_there_is_loses_no_submission() -> None:
    assert graded(4.0000000001) == (4.0, 4.0)
    assert graded(-1e-12) == (0.0, 4.0)


def test_points_that_nobody_knows_are_not_full_points() -> None:
    assert graded(None) == (0, 4.0)  # by nbgrader's own; ours has them looked at


def test_the_reason_stands_beside_the_points() -> None:
    (output,) = outputs(CellVerdict("fold", "fold-code", 1.5, 4.0, "<p>why</p>", ""))
    assert output["data"] == {"text/plain": "1.5", "text/html": "<p>why</p>"}


def test_a_stage_becomes_a_cell() -> None:
    (found,) = notebook_verdict(
        report(FAILED), {"fold": ("fold", "fold-code")}, ["It was odd."]
    ).cells
    assert (found.grade_id, found.answer_id) == ("fold", "fold-code")
    assert (found.points, found.max_points) == (1.5, 4.0)
    for word in ("It folds", "-2 points", "You turn it.", "grade hint fold", "hint 3"):
        assert word in found.reason


def test_the_reason_why_a_stage_counts_as_not_started_is_in_the_comment_and_beside_it() -> None:
    one = stage(Status.NOT_STARTED, check(Outcome.FAILED))
    empty = report(replace(one, why_not_started="A b."))
    (found,) = notebook_verdict(empty, {"fold": ("fold", "fold-code")}).cells
    assert found.comment == "0 of 4 points. A b."
    assert "<p>A b.</p>" in found.reason and "Nothing is written" not in found.reason


def test_a_stage_that_the_grader_could_not_judge_has_no_points() -> None:
    broken = report(stage(Status.ERROR, check(Outcome.ERROR)))
    (found,) = notebook_verdict(broken, {"fold": ("fold", "fold-code")}).cells
    assert found.points is None
    assert "not your mistake" in found.comment


def test_nothing_that_a_student_wrote_is_markup() -> None:
    printed = stage(Status.FAILED, WRONG, printed=EVIL)
    verdict = notebook_verdict(report(printed), {"fold": ("fold", "fold-code")}, [EVIL])
    for text in (verdict.summary, verdict.cells[0].reason):
        assert "<script" not in text and "\x1b" not in text
    assert "\x1b" not in verdict.cells[0].comment


@pytest.mark.parametrize("name", [EVIL, "[x](javascript:f())", "x\n\n[r]: javascript:f()\n\n[r]"])
def test_no_name_of_a_students_file_is_markup_in_a_comment(name: str) -> None:
    (found,) = unreadable_verdict([("fold", "fold-code", 4.0)], [f"{name}.ipynb is empty."]).cells
    html = markdown2html(found.comment)
    assert re.findall(r"<(?!/?p>)", html) == []  # nbgrader shows comments as markdown


def test_a_comment_is_a_list_in_markdown_too() -> None:
    html = markdown2html(comment(FAILED))
    assert "<li>It folds (-2)</li>" in html and "<p>Likely: You turn it." in html


def test_the_summary_is_one_block_of_html_with_all_that_was_odd() -> None:
    odd = ["A cell was missing."]
    shown = replace(report(FAILED), notes=("seed 7", "A cell never ends."))
    verdict = notebook_verdict(shown, {"fold": ("fold", "fold-code")}, odd)
    assert verdict.notes == ("A cell never ends.",)
    summary = verdict.summary
    assert "\n\n" not in summary  # markdown would begin there
    assert (
        "<li>A cell was missing.</li>" in summary
        and "<small>seed 7<br>A cell never ends.</small>" in summary
    )


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (stage(Status.PASSED, check(Outcome.PASSED, 4.0)), "4 of 4 points. All checks pass."),
        (stage(Status.NOT_STARTED), "0 of 4 points. Nothing is written here yet."),
        (stage(Status.FAILED, WRONG, caused_by="cut"), "because it uses cut"),
        (
            FAILED,
            "1.5 of 4 points. 1 of 2 checks failed:\n\n- It folds (-2)\n\nLikely: You turn it.",
        ),
        (
            stage(Status.FAILED, CALL, check(Outcome.PASSED, 4.0), check(Outcome.SKIPPED, 0.0)),
            "0 of 4 points. 1 of 2 checks failed:\n\n- Written without cut (-4)",
        ),
        (
            stage(Status.FAILED, replace(CALL, score=0), WRONG),
            "0 of 4 points. 2 of 2 checks failed:\n\n- Written without cut\n- It folds (-2)",
        ),
        (
            stage(Status.FAILED, *[check(Outcome.FAILED, message="No <b>fold</b>\n  here")] * 2),
            "0 of 4 points. All 2 checks failed for one reason: No &lt;b>fold&lt;/b>; here",
        ),
        (
            stage(Status.FAILED, *[check(Outcome.FAILED, message="No file\n x(\n ^")] * 2, NOT_RUN),
            "0 of 4 points. All 2 checks failed for one reason: No file; x(",
        ),
        (
            stage(
                Status.FAILED,
                check(Outcome.TIMEOUT, message="No end\n  in words  it loops"),
                PASSED,
                NOT_RUN,
            ),
            "(-2)\n- It folds (-2, skipped: no points while others fail)\n\nNo end (it loops)",
        ),
    ],
)
def test_the_comment_says_it_in_words(result: StageResult, words: str) -> None:
    assert words in comment(result)


def test_a_file_that_is_no_notebook_has_no_points_and_a_reason() -> None:
    verdict = unreadable_verdict([("fold", "fold-code", 4.0)], ["It is <empty>."])
    (found,) = verdict.cells
    assert (found.points, found.comment) == (0, "It is &lt;empty>.")
    for text in (verdict.summary, found.reason):
        assert "There is nothing to grade here.</strong> It is &lt;empty&gt;." in text


def test_the_verdict_is_put_where_it_belongs() -> None:
    other = {"cell_type": "code", "metadata": {}, "source": "", "outputs": [], "id": "b"}
    cells: list[Any] = [dict(cell()), other]
    put_verdict(cells, notebook_verdict(report(FAILED), {"fold": ("fold", "fold-code")}))
    assert [c["cell_type"] for c in cells] == ["markdown", "code", "code"]
    assert "Total: 1.5 of 4 points" in cells[0]["source"]
    assert cells[1]["outputs"][0]["data"]["text/plain"] == "1.5"
    assert cells[2]["outputs"] == []


@pytest.mark.parametrize("kind, mark", [("code", "\n\n# ... "), ("markdown", "\n\n... ")])
def test_a_cell_that_would_take_hours_to_make_a_page_of_is_cut_at_the_end_of_a_line(
    kind: str, mark: str
) -> None:
    line = "\\begin{a}" * 100 + "\n"
    cells = [{"cell_type": kind, "metadata": {}, "source": line * 1000}] * 30
    cells = [dict(each) for each in cells] + [dict(cell())]
    put_verdict(cells, notebook_verdict(report(FAILED), {"fold": ("fold", "fold-code")}))
    texts = [each["source"].partition(mark)[0] for each in cells[1:]]
    assert texts[:20] == [(line * 22).removesuffix("\n")] * 20 and not any(texts[21:])
    assert cells[-1]["outputs"] and cells[2]["source"].endswith("All of it was graded.")


def test_a_summary_names_students_in_order_whoever_was_graded_first() -> None:
    results = [Graded(name, 1, 4, ("It was odd.",)) for name in ("cyd", "ann", "bob")]
    shown = draw(summary("folds", results, 7))
    assert re.findall("ann|bob|cyd", shown) == ["ann", "bob", "cyd"]
    assert "penalties" not in shown
    late = [*results, Graded("dan", 1, 4, (), is_late=True)]
    assert "Of 4 points, before late penalties: median 1" in draw(summary("folds", late, 7))
