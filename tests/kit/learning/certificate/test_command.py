"""`grade certificate`: who gets one, what it shows, and the file that it writes."""

from pathlib import Path

import pytest

from grader.learning.certificate.drawing import certificate_figure
from grader.learning.certificate.screen import Certificate, certificate_screen
from grader.learning.pictures.tracer import trace
from grader.learning.pictures.types import Stop, Trace
from grader.run.solutions import solution_files
from grader.run.workers import Interpreter
from grader.types.course import Stage
from grader.types.progress import NOTEBOOK, StageProgress, seal
from grader.types.report import Status
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE
from tests.kit.support.drawn import draw
from tests.kit.support.tiny import Say, solve

SHOWN = """
import numpy as np

from grader.tracing import Curves, Heatmap


def trace(submission):
    yield f"The mean of 1 and 3 is **{submission.smooth(np.array([1.0, 3.0]), 2)[0]:g}**."
    yield Curves("Jumps", [1, 2], {"yours": [4.0, 2.0]}, "times", "size")
    yield Heatmap("Shares", np.array([[[0.5, 0.5]]]), ["mean"], ["first"], ["a", "b"], "row", "day")
"""


@pytest.fixture(autouse=True)
def shown(tiny: Path) -> None:
    (tiny / "hints" / "certificates").mkdir()
    (tiny / "hints" / "certificates" / "smooth.py").write_text(SHOWN, "utf-8")


def test_a_finished_core_is_offered_one_and_gets_it(tiny: Path, say: Say) -> None:
    solve(tiny, "moving_average")
    assert "grade certificate" not in say("grade")[1]
    code, out, _ = say("certificate")
    assert code == 1 and "smooth: not started" in out and "moving_average" not in out

    solve(tiny, "smooth")
    assert "grade certificate" in say("grade")[1]
    code, out, _ = say("certificate", "--name", "Eve 明 <b>$\\frac")
    assert code == 0
    assert "All 2 stages pass: " in out and "The mean of 1 and 3 is 2." in out
    assert "Jumps" in out and "Shares" in out
    assert "moving_average  1 attempt, no hint, first passed on 2" in out
    written = (tiny / "certificate.svg").read_text("utf-8")
    assert "Eve 明 &lt;b&gt;$\\frac" in written and "<desc>" in written and "attempt" not in written

    (tiny / "exercises" / "smooth.py").write_text("def smooth(values, width, times=1):\n    pass\n")
    assert say("certificate")[0] == 1  # a verdict on an older text does not count


def test_where_every_stage_is_a_bonus_all_of_them_are_needed(tiny: Path, say: Say) -> None:
    table = (tiny / "course.toml").read_text("utf-8").replace("bonus = true\n", "")
    table = table.replace("[[stages]]\n", "[[stages]]\nbonus = true\n")
    (tiny / "course.toml").write_text(table, "utf-8")
    assert say("certificate")[0] == 1


def test_another_ending_of_the_file_is_refused_before_anything_runs(tiny: Path, say: Say) -> None:
    code, _, err = say("certificate", "--out", "mine.pdf")
    assert code == 2 and ".svg or .png" in err


def test_files_that_do_not_work_leave_a_notebooks_certificate_without_pictures() -> None:
    shown = Trace("s", "S", (), Stop("f", "s", not_written=True, message="f is not written yet"))
    stage = Stage("s", "S", 5, False, (), (), Path())
    said = {"not written": None, "on your notebook. There are no": seal(NOTEBOOK, Status.PASSED, 5)}
    for words, judged in said.items():
        passed = ((stage, StageProgress(2, Status.PASSED, 5, judged=judged)),)
        assert words in draw(certificate_screen(Certificate("B", "", "", passed, shown), []))


def test_the_way_is_on_the_page_only_if_asked() -> None:
    known = StageProgress(2, Status.PASSED, 5, attempts=3, passed="2026-01-02T10:00:00+00:00")
    stages = (Stage(f"s{n}", f"Stage {n}", 5, n > 2, (), (), Path()) for n in range(30))
    passed = tuple((stage, known) for stage in stages)
    certificate = Certificate("Birds", "", "2026-01-03", passed, Trace("s0", "S", ()))
    pages = [certificate_figure(certificate, with_way=way) for way in (False, True)]
    texts = [[text.get_text() for text in page.texts] for page in pages]
    assert not any("attempts" in text for text in texts[0])
    assert "3 attempts, up to hint 2, first passed on 2026-01-02" in texts[1]
    lowest = min(text.get_position()[1] for text in pages[1].texts if "Stage" in text.get_text())
    assert lowest > 0.2  # also with many stages


@pytest.mark.slow
def test_the_courses_own_solution_agrees_with_the_built_in_module() -> None:
    stage = COURSE.stage("multi_head_attention")
    solutions = Submission("solutions", solution_files(COURSE))
    with Interpreter(COURSE.preload, COURSE.limits, gpu=False) as interpreter:
        shown = trace(COURSE, stage, solutions, interpreter, stage.certificate_file)
    assert shown.stop is None and shown.printed == "" and shown.heatmap is not None
    said = next(part for part in shown.parts if isinstance(part, str))
    output, gradient = (float(word) for word in said.split("**")[1::2])
    assert 0 < output < 1e-5 and 0 < gradient < 1e-4
