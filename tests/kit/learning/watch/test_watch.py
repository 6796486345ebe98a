"""`grade watch` from save to verdict: real files, the real engine, a course that starts quickly."""

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from grader.learning.hints.turn import Turn
from grader.learning.hints.types import Part
from grader.learning.pictures.types import Trace, TracedStep
from grader.learning.watch.state import (
    DiffShown,
    Every,
    HintShown,
    KeysShown,
    NotesShown,
    Phase,
    Standing,
    TraceShown,
    Watching,
)
from grader.read.progress import memory_folder, read_progress
from grader.types.report import Status
from grader.types.workspace import Workspace
from tests.kit.support.checkout import COURSE, TINY
from tests.kit.support.learner import LONGEST, Learner
from tests.kit.support.processes import until

FIRST, SECOND, BONUS = TINY.stages
pytestmark = pytest.mark.usefixtures("two_pytests_at_once")

LOOP = "def moving_average(values, width):\n    while True:\n        pass\n"
ONE_LINE = "import numpy as np\ndef moving_average(values, width):\n    "
WRONG = ONE_LINE + "return np.asarray(values) * 0.0\n"
SMOOTH = "def smooth(values, width, times=1):\n    return values[2:] * 0.0\n"
BROKEN = ONE_LINE + "return (\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(TINY.exercises, tmp_path / "exercises")
    return tmp_path


@pytest.fixture
def learner(root: Path) -> Iterator[Learner]:
    with Learner(Workspace(root, TINY)) as someone:
        someone.judged(FIRST.slug, Status.NOT_STARTED)
        yield someone


def test_a_save_is_judged_and_a_pass_opens_the_next_stage(learner: Learner) -> None:
    learner.writes(FIRST.slug, WRONG)
    failed = learner.judged(FIRST.slug, Status.FAILED)
    assert 0 < failed.seconds < LONGEST
    learner.solves(FIRST.slug)
    following = learner.judged(SECOND.slug, Status.NOT_STARTED)
    assert following.success is not None and following.success.stage == FIRST
    learner.solves(SECOND.slug)
    bonus = learner.judged(BONUS.slug, Status.NOT_STARTED)
    assert bonus.success is not None and bonus.success.stage == SECOND
    learner.presses("w")
    learner.sees(lambda state: isinstance(state.panel, NotesShown))
    learner.solves(BONUS.slug)
    assert learner.judged(BONUS.slug, Status.PASSED).stage == BONUS
    known = read_progress(learner.root).progress
    assert known.stage(FIRST.slug).best == 6
    assert known.stage(FIRST.slug).attempts == 2
    assert known.stage(SECOND.slug).status is Status.PASSED
    kept = json.loads((memory_folder(learner.root) / "kept.json").read_bytes())
    assert {FIRST.slug, SECOND.slug} <= set(kept)  # `grade` need not run them again
    shown = [state for state in learner.states if state.report is not None]
    passing = [s for s in shown if s.report and s.report.stages[0].status is Status.PASSED]
    assert passing and all(s.success and s.success.stage == s.stage for s in passing)


def test_the_place_of_a_mistake_is_added_to_the_verdict(learner: Learner) -> None:
    right = TINY.stage(FIRST.slug).solution_file.read_text(encoding="utf-8")
    learner.writes(FIRST.slug, right.replace("window.mean()", "abs(window.mean())"))
    learner.judged(FIRST.slug, Status.FAILED)

    def is_placed(state: Watching) -> bool:
        checks = state.report.stages[0].checks if state.report else ()
        return any(check.diagnosis and "abs(" in check.diagnosis.place for check in checks)

    assert learner.sees(is_placed).phase is Phase.WAITING
    assert read_progress(learner.root).progress.stage(FIRST.slug).attempts == 1


def test_the_example_runs_again_at_each_save_and_keeps_what_was_before(learner: Learner) -> None:
    def shows(number: float, before: float | None) -> Callable[[Watching], bool]:
        def there(state: Watching) -> bool:
            panel = state.panel
            if not isinstance(panel, TraceShown) or panel.trace is None or panel.right is None:
                return False
            assert _largest(panel.right) == 3.75
            older = panel.before and _largest(panel.before)
            return (_largest(panel.trace), older) == (number, before)

        return there

    learner.presses("t")
    assert learner.sees(lambda state: bool(state.notice)).notice == "moving_average has no example"
    learner.solves(FIRST.slug)
    learner.judged(SECOND.slug, Status.NOT_STARTED)
    learner.writes(SECOND.slug, SMOOTH)
    learner.judged(SECOND.slug, Status.FAILED)
    learner.presses("t")
    learner.sees(shows(0, None))
    learner.writes(SECOND.slug, SMOOTH.replace("0.0", "2.0"))
    learner.sees(shows(12, 0))
    learner.presses("t")
    learner.sees(lambda state: state.panel is None)
    learner.presses("t")
    learner.sees(shows(12, 0))


def _largest(trace: Trace) -> float:
    """The number of the example's last step."""
    steps = [part for part in trace.parts if isinstance(part, TracedStep)]
    return steps[-1].blocks[0].rows[0][0]


@pytest.mark.slow
def test_tests_of_the_learner_tell_how_many_modules_they_have_judged(tmp_path: Path) -> None:
    stage = COURSE.stage("write_the_tests")
    shutil.copytree(COURSE.root / "solutions", tmp_path / "exercises")
    with Learner(Workspace(tmp_path, COURSE), stage) as someone:
        someone.judged(stage.slug, Status.PASSED)
    told = [state.trials for state in someone.states if state.trials is not None]
    done, total = zip(*told, strict=True)
    assert len(told) > 2 and list(done) == sorted(done) and len(set(total)) == 1


def test_a_save_while_the_old_code_runs_ends_that_at_once(root: Path) -> None:
    patient = replace(TINY, limits=replace(TINY.limits, call_seconds=3 * LONGEST))
    with Learner(Workspace(root, patient)) as learner:
        learner.judged(FIRST.slug, Status.NOT_STARTED)
        learner.writes(FIRST.slug, LOOP)
        learner.sees(lambda state: state.phase is Phase.JUDGING)
        time.sleep(0.4)  # well inside the loop
        learner.writes(FIRST.slug, WRONG)
        learner.judged(FIRST.slug, Status.FAILED)  # long before the loop's time is up


def test_a_save_of_another_stage_turns_to_it(learner: Learner) -> None:
    learner.solves(SECOND.slug)
    waits = learner.judged(SECOND.slug, Status.FAILED)
    assert waits.report is not None and waits.report.stages[0].caused_by == FIRST.slug
    learner.solves(FIRST.slug)
    learner.judged(BONUS.slug, Status.NOT_STARTED)  # by way of the second, which now passes


def test_a_save_beside_exercises_is_noticed(learner: Learner) -> None:
    learner.judged(FIRST.slug, Status.NOT_STARTED)
    shutil.copy(FIRST.solution_file, learner.root)
    told = learner.sees(
        lambda state: state.report is not None and bool(state.report.stages[0].why_not_started)
    )
    assert told.report is not None and told.report.stages[0].why_not_started == (
        "moving_average is written in moving_average.py, outside exercises; "
        "move it to exercises/moving_average.py."
    )


def test_a_file_that_is_not_python_or_half_written_or_empty_or_gone_is_told_calmly(
    learner: Learner,
) -> None:
    def says(text: str) -> Callable[[Watching], bool]:
        return lambda state: (
            state.phase is Phase.WAITING
            and state.report is not None
            and text in state.report.stages[0].checks[0].message
        )

    learner.writes(FIRST.slug, BROKEN)
    learner.sees(says("cannot be imported"))
    learner.writes(FIRST.slug, "")
    learner.sees(says("does not define moving_average"))
    (learner.root / "exercises" / FIRST.file_name).unlink()
    learner.sees(says("no file moving_average.py"))
    shutil.rmtree(learner.root / "exercises")
    learner.sees(lambda state: "exercises" in state.notice)
    (learner.root / "exercises").mkdir()
    learner.solves(FIRST.slug)
    learner.sees(lambda state: state.success is not None)


def test_the_keys(learner: Learner) -> None:
    learner.writes(FIRST.slug, WRONG)
    learner.judged(FIRST.slug, Status.FAILED)
    learner.presses("h")
    shown = learner.sees(lambda state: isinstance(state.panel, HintShown))
    assert isinstance(shown.panel, HintShown)
    assert shown.panel.turn == Turn(1, Part.QUESTION)
    for turn in (Turn(1, Part.ANSWER), Turn(2)):
        assert read_progress(learner.root).progress.stage(FIRST.slug).rungs == 1
        learner.presses("h")
        learner.sees(lambda s, turn=turn: isinstance(s.panel, HintShown) and s.panel.turn == turn)
    learner.presses("a")
    learner.sees(lambda state: isinstance(state.panel, Every))
    learner.presses("j")
    learner.sees(lambda state: state.scroll == 1)
    learner.presses("l")
    learner.sees(lambda state: isinstance(state.panel, Standing) and state.scroll == 0)
    learner.presses("?")
    learner.sees(lambda state: isinstance(state.panel, KeysShown))
    learner.presses("w")
    learner.sees(lambda state: "open when it passes" in state.notice)
    learner.presses("d")
    compared = learner.sees(lambda state: isinstance(state.panel, DiffShown))
    assert isinstance(compared.panel, DiffShown) and compared.panel.now == WRONG
    learner.presses("escape")
    learner.sees(lambda state: state.panel is None)
    learner.presses("e")
    learner.sees(lambda state: state.notice == "no editor here")
    assert learner.edited == [(learner.root / "exercises" / FIRST.file_name, 1)]
    learner.presses("r")
    learner.sees(lambda state: state.phase is Phase.JUDGING)
    learner.judged(FIRST.slug, Status.FAILED)


def test_without_a_place_to_remember_it_goes_on_and_says_so(root: Path) -> None:
    memory_folder(root).write_text("not a folder", encoding="utf-8")
    with Learner(Workspace(root, TINY)) as someone:
        someone.sees(lambda state: ".grade" in state.notice)
        someone.solves(FIRST.slug)
        someone.judged(SECOND.slug, Status.NOT_STARTED)


def test_quitting_at_once_leaves_nothing_behind(root: Path) -> None:
    before = set(threading.enumerate())
    someone = Learner(Workspace(root, TINY))
    someone.presses("q")
    someone.watch.run()
    assert until(lambda: not set(threading.enumerate()) - before, LONGEST)
