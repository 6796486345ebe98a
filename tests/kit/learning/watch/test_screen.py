"""The screen of `grade watch` fills the terminal exactly, whatever it has to say.

REWRITE_GOLDENS=1 python -m pytest tests/kit/learning/watch/test_screen.py    redraws all.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.learning.hints.turn import Turn
from grader.learning.hints.types import SECTIONS, Hints, Part, Rung
from grader.learning.pictures.types import Axis, Block, Rows, Trace, TracedStep
from grader.learning.watch.screen import news, watch_screen
from grader.learning.watch.state import (
    DiffShown,
    Every,
    HintShown,
    KeysShown,
    NotesShown,
    Phase,
    Standing,
    Success,
    TraceShown,
    Watching,
)
from grader.types.course import Course, EntryPoint, Limits, Stage
from grader.types.progress import Progress, StageProgress
from grader.types.report import CheckResult, Diagnosis, Outcome, Report, StageResult, Status
from grader.types.workspace import Workspace
from tests.kit.support import drawn
from tests.kit.support.files import write_files

GOLDENS = Path(__file__).parent / "goldens"


def a_stage(slug: str, title: str, points: float, bonus: bool = False) -> Stage:
    return Stage(slug, title, points, bonus, (), (EntryPoint(slug, ("any",)),), Path("birds"))


FOLD, WINGS = a_stage("fold", "Fold a sheet", 40), a_stage("wings", "Two wings", 60)
KITE = a_stage("kite", "A kite", 5, bonus=True)
COURSE = Course("birds", "Paper birds", Path("birds"), (), Limits(), (FOLD, WINGS, KITE))
START = Watching(Workspace(Path("birds"), COURSE), Progress(), FOLD)
UNEVEN = Diagnosis("uneven", "You fold at a **third**. Both halves are equal: where is that?", 2)
MESSAGE = (
    "The result is wrong at B=0, T=1\n  call      fold([B=2, T=3])\n  look at   fold.py, line 9"
)
HINTS = Hints(
    "Fold a sheet",
    (
        Rung("Step 1?", "Fold it once, and count.", "Two halves."),
        *(Rung(f"Step {n}", f"Do step {n}, and look.\n\n" * n) for n in range(2, 9)),
    ),
)


@pytest.fixture(autouse=True)
def with_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first stage has a trace."""
    write_files(tmp_path, {str(FOLD.trace_file): ""})
    monkeypatch.chdir(tmp_path)


def report(status: Status, *outcomes: Outcome, caused_by: str | None = None) -> Report:
    checks = tuple(
        CheckResult(
            f"fold.{number}",
            f"Fold number {number} is even",
            outcome,
            10.0 if outcome is Outcome.PASSED else 0.0,
            10.0,
            MESSAGE if outcome is Outcome.FAILED else "",
            UNEVEN if outcome is Outcome.FAILED else None,
        )
        for number, outcome in enumerate(outcomes)
    )
    score = sum(check.score for check in checks)
    stage = StageResult("fold", FOLD.title, status, score, 40, False, checks, caused_by)
    return Report("birds", "exercises", "cpu", score, 40, 0, (stage,))


@pytest.mark.parametrize("before", [Status.NOT_STARTED, Status.FAILED])
def test_how_far_the_trials_are_stands_where_the_seconds_would(before: Status) -> None:
    state = replace(
        START, phase=Phase.JUDGING, seconds=9.0, trials=(15, 33), report=report(before, F)
    )
    shown = draw(state, 72, 24)
    assert "module 15 of 33" in shown
    assert "Nothing is written" not in shown
    assert "endless loop" not in shown
    assert "module" not in draw(state.at(WINGS), 80, 24)


def traced(rows: Rows) -> Trace:
    sheet = TracedStep("sheet", (Axis("T", 2),), (Block((), ((4, 8),)),))
    axes = (Axis("T", 2, ("left", "right")), Axis("D", 2))
    return Trace("fold", FOLD.title, (sheet, TracedStep("halves", axes, (Block((), rows),))))


TRACES = [traced(rows) for rows in (((2, 4), (1, 5)), ((2, 4), (2, 4)), ((2, 3), (1, 5)))]
P, F, S, T = Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED, Outcome.TIMEOUT
FAILING = replace(
    START, phase=Phase.WAITING, report=report(Status.FAILED, P, F, F, S), seconds=0.123
)
PASSED = Progress({"fold": StageProgress(2, Status.PASSED, score=40.0, best=40.0, attempts=3)})
CHANGED = Progress(
    {
        "fold": StageProgress(2, Status.FAILED, score=10.0, best=40.0, attempts=3),
        "wings": StageProgress(judged="of another text", best=60.0, attempts=1),
        "kite": StageProgress(judged="of another text", best=5.0, attempts=1),
    }
)
SITUATIONS = {
    "starting": START,
    "not_started": replace(
        START, phase=Phase.WAITING, report=report(Status.NOT_STARTED, F, F), seconds=0.05
    ),
    "failing": FAILING,
    "judging_again": replace(FAILING, phase=Phase.JUDGING),
    "waits_for_another": replace(
        FAILING, report=report(Status.FAILED, F, caused_by="wings"), notice="Nothing is kept."
    ),
    "timeout": replace(FAILING, report=report(Status.FAILED, P, T)),
    "hint": FAILING.showing(HintShown(HINTS, Turn(2, speaks_to="You fold at a third."))),
    "hint_question": FAILING.showing(HintShown(HINTS, Turn(1, Part.QUESTION))),
    "hint_answer": FAILING.showing(HintShown(HINTS, Turn(1, Part.ANSWER))),
    "hint_too_long": FAILING.showing(HintShown(HINTS, Turn(8))),
    "hint_scrolled": replace(FAILING.showing(HintShown(HINTS, Turn(8))), scroll=99),
    "all": FAILING.showing(Every()),
    "all_not_started": replace(FAILING, report=report(Status.NOT_STARTED, F)).showing(Every()),
    "list": replace(FAILING, progress=PASSED).showing(Standing()),
    "changed": replace(FAILING, progress=CHANGED),
    "changed_list": replace(FAILING, progress=CHANGED).showing(Standing()),
    "keys": FAILING.showing(KeysShown()),
    "why": FAILING.showing(
        NotesShown(replace(HINTS, sections={SECTIONS[0]: "Halves.", SECTIONS[1]: "It is short."}))
    ),
    "trace": FAILING.showing(TraceShown("this text", *TRACES)),
    "trace_is_run": FAILING.showing(TraceShown()),
    "diff": FAILING.showing(DiffShown("fold.py", "a\nb\n", "a\nc\n")),
    "passed_and_next": replace(
        START.at(WINGS),
        phase=Phase.WAITING,
        progress=PASSED,
        success=Success(FOLD, 40, "A fold halves.\nTwice is a quarter."),
        report=replace(report(Status.NOT_STARTED, F)),
    ),
    "all_done": replace(
        FAILING,
        report=report(Status.PASSED, P, P),
        progress=Progress(
            {s.slug: StageProgress(0, Status.PASSED, score=s.points) for s in COURSE.stages}
        ),
    ),
}


def draw(state: Watching, width: int = 80, height: int = 24, **options: Any) -> str:
    return drawn.draw(watch_screen(state, height), width, **options)


def test_why_work_in_another_place_is_not_graded_is_told() -> None:
    why = "fold is written in fold (1).py; move it to fold.py."
    stub = report(Status.NOT_STARTED, F)
    told = replace(stub, stages=(replace(stub.stages[0], why_not_started=why),))
    shown = draw(replace(START, phase=Phase.WAITING, report=told))
    assert why in shown and "Nothing is written" not in shown


# What these show that another screen does not; all others are compared exactly.
ALIKE = {
    "changed": "2 stages to grade again\n",
    "judging_again": " grading\n",
    "hint_answer": "hint 1 of 8, the answer\n\n  1. Step 1?\n\n  Two halves.\n\n  Press h again",
    "hint_scrolled": "  This was the last one.\n  … the end: arrows, Page Up and Down scroll\n",
    "trace_is_run": "\n\n  Running the example on your code.\n\n",
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_screen(name: str) -> None:
    shown = draw(SITUATIONS[name])
    counted = re.sub(r"\n{3,}", lambda run: f"\n({len(run[0]) - 1} empty lines)\n", shown)
    if name in ALIKE:
        assert ALIKE[name] in shown
    else:
        drawn.compare_with(GOLDENS, name, counted)
    assert len(shown.rstrip("\n").split("\n")) == 24


def test_no_golden_is_left_over() -> None:
    assert {path.stem for path in GOLDENS.iterdir()} == SITUATIONS.keys() - ALIKE


@pytest.mark.parametrize("name", SITUATIONS)
@pytest.mark.parametrize("width, height", [(200, 60), (80, 10), (40, 14), (20, 12)])
def test_no_screen_is_larger_than_the_terminal(name: str, width: int, height: int) -> None:
    lines = draw(SITUATIONS[name], width, height).rstrip("\n").split("\n")
    assert len(lines) <= height and max(map(len, lines)) <= width


ALL_KEYS = (
    *("h hint", "a all", "e edit", "t trace", "l list", "d diff", "r rerun", "w why", "q quit"),
    "? keys",
)


@pytest.mark.parametrize(
    "width, keys",
    [
        (80, f"{'  '.join(ALL_KEYS)}"),
        (40, "h hint  a all  e edit  q quit  ? keys"),
        (20, "q quit   ? keys"),
    ],
)
def test_the_keys_have_their_words_where_there_is_room(width: int, keys: str) -> None:
    assert draw(FAILING, width).rstrip().endswith(f"\n  {keys}")
    without_trace = draw(FAILING.at(WINGS), width)
    assert "q quit" in without_trace and "t trace" not in without_trace


def test_in_40_columns_no_word_is_cut() -> None:
    known = {
        "fold": replace(PASSED.stage("fold"), best=41.0),
        "kite": StageProgress(status=Status.PASSED, score=5.0),
    }
    long = replace(FOLD, slug="fold_a_very_large_sheet", title="Fold a sheet, then once more")
    course = replace(COURSE, stages=(long, FOLD, KITE))
    state = replace(
        SITUATIONS["passed_and_next"], workspace=Workspace(Path("birds"), course), stage=long
    )
    shown = draw(replace(state, progress=Progress(known)).showing(Standing()), 40, 40)
    words = " ".join(shown.split())
    assert "1 of 2 stages, 40 of 80 points, +5 bonus" in words
    assert "fold_a_very_large_sheet 0 / 40" in words
    assert re.search(r"✓  fold +40 / 40", shown)
    stage = " ".join(draw(replace(state, progress=Progress(known)), 40, 40).split())
    assert "Fold a sheet, then once more fold_a_very_large_sheet" in stage
    assert "A fold halves. Twice is a quarter." in stage
    failing = replace(state, report=report(Status.FAILED, *(P, F) * 9))
    shown = draw(failing, 40, 40)
    assert "…" not in shown
    assert "9 of 18 checks pass" in shown


def test_the_sum_has_the_old_points_while_they_are_shown() -> None:
    assert "0 of 2 stages, 10 of 100 points" in draw(SITUATIONS["judging_again"])


def test_the_title_gives_way_to_what_is_reached() -> None:
    course = replace(COURSE, title="Paper birds, from the fold to the wing")
    state = replace(SITUATIONS["all_done"], workspace=Workspace(Path("birds"), course))
    assert "Paper birds, from" in draw(state, 100)
    shown = draw(state, 80)
    assert "Paper birds" not in shown
    assert "2 of 2 stages, 100 of 100 points, +5 bonus" in shown


def test_when_the_core_is_done_the_last_stage_says_what_comes_next() -> None:
    core = {s.slug: StageProgress(0, Status.PASSED, score=s.points) for s in (FOLD, WINGS)}
    state = replace(
        SITUATIONS["passed_and_next"], progress=Progress(core), success=Success(WINGS, 60, "Two.")
    ).at(KITE)
    assert "grade certificate" in draw(state)
    assert "grade certificate" not in draw(SITUATIONS["passed_and_next"])
    assert "grade certificate" not in draw(state.showing(KeysShown()))


def test_bonus_stages_that_are_left_are_counted() -> None:
    core = {s.slug: StageProgress(0, Status.PASSED, score=s.points) for s in (FOLD, WINGS)}
    shown = draw(replace(SITUATIONS["all_done"], progress=Progress(core)))
    assert "All 2 stages pass. Well done!\n" in shown
    assert "bonus points" not in draw(SITUATIONS["all_done"])


@pytest.mark.parametrize("height", range(16, 30))
def test_what_is_likely_is_not_cut_for_a_long_message(height: int) -> None:
    failing = FAILING.report
    long = replace(failing.stages[0].checks[1], message=MESSAGE + "\n  and so on" * 30)
    stage = replace(failing.stages[0], checks=(long,))
    shown = draw(replace(FAILING, report=replace(failing, stages=(stage,))), height=height)
    assert "Likely:" in shown and "where is" in shown


def test_line_by_line_only_what_is_new_is_told() -> None:
    def told(before: Watching | None, state: Watching) -> str:
        screen = news(before, state)
        return "" if screen is None else drawn.draw(screen)

    assert "Watching birds" in told(None, START) or "Watching exercises" in told(None, START)
    assert told(START, replace(START, phase=Phase.JUDGING)) == ""
    failing = told(START, FAILING)
    assert "fold: failed, 10 of 40 points." in failing
    assert failing.endswith("  For a hint, in another terminal:  grade hint fold\n")
    assert "grade hint" not in told(START, replace(FAILING, notice="fold.py is missing"))
    (stage,) = FAILING.report.stages
    waiting = replace(FAILING.report, stages=(replace(stage, caused_by="wings"),))
    assert "grade hint" not in told(START, replace(FAILING, report=waiting))
    slower = replace(stage, checks=tuple(replace(c, seconds=9) for c in stage.checks))
    assert told(FAILING, replace(FAILING, report=replace(FAILING.report, stages=(slower,)))) == ""
    assert told(FAILING, replace(FAILING, scroll=3)) == ""
    failed = {"wings": StageProgress(status=Status.FAILED, score=20.0, judged="this text")}
    assert told(FAILING, replace(FAILING, progress=CHANGED)) == ""
    others = told(FAILING, replace(FAILING, progress=Progress(failed)))
    assert others == "  wings: failed, 20 of 60 points.\n"
    waits = replace(FAILING, progress=Progress({"wings": replace(failed["wings"], waits=True)}))
    assert told(FAILING, waits) == "  wings: waiting, 20 of 60 points.\n"
    assert told(replace(FAILING, progress=PASSED), replace(FAILING, progress=CHANGED)) == ""
    passed = told(FAILING, SITUATIONS["passed_and_next"])
    assert "fold passes: 40 points." in passed and "wings: not started" in passed


def partial(state: Watching, **changes: Any) -> str:
    """What the screen says of a student's copy."""
    course = replace(COURSE, is_partial=True)
    shown = replace(state, workspace=Workspace(Path("birds"), course), **changes)
    return " ".join(draw(shown, color_system=None).split())


def test_of_a_students_copy_it_says_what_is_left() -> None:
    whole = report(Status.PASSED, P, P)
    seen = replace(whole, stages=tuple(replace(s, is_partial=True) for s in whole.stages))
    known = {s.slug: StageProgress(status=Status.PASSED, score=20.0) for s in (FOLD, WINGS)}
    state = replace(START, phase=Phase.WAITING, report=seen, progress=Progress(known))
    everything = partial(state, success=Success(FOLD, 20.0, "Learnt."))
    assert "visible checks: 2 of 2 stages" in everything
    assert "fold: your visible checks pass; more checks run on submission. Learnt." in everything
    assert "In every stage your visible checks pass; more checks run on submission" in everything
    assert "20 / 40 visible ok" in partial(state, panel=Standing())
    unseen = partial(state, success=Success(FOLD, 0.0, ""))
    assert "fold: its checks run on submission; none is visible" in unseen
    for said in (everything, unseen, partial(state, panel=Standing())):
        assert "passed" not in said and "Well done" not in said and "grade solution" not in said


def test_an_earlier_stage_may_be_the_cause() -> None:
    whole = report(Status.FAILED, P, F)
    seen = tuple(replace(s, is_partial=True, perhaps="wings") for s in whole.stages)
    said = partial(replace(FAILING, report=replace(whole, stages=seen)))
    assert "It uses wings, which does not pass yet: that may be why, so begin there." in said
    assert "wrong at B=0" in said
