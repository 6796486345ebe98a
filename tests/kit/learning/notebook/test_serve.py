"""`grade serve`, as a notebook's kernel talks to it: requests in, answers out, and its end."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.read.progress import read_progress
from grader.read.stubs import read_solution
from grader.read.workspace import mark_workspace, own_course
from tests.kit.support.checkout import TINY, start_grade
from tests.kit.support.tiny import copy_tiny

AVERAGE = f"%%grade moving_average\n{read_solution(TINY.stage('moving_average'))}"
SMOOTH = read_solution(TINY.stage("smooth")).replace(
    "from moving_average import moving_average\n", ""
)


def with_imports_of(seconds: int, folder: Path) -> Path:
    """The tiny course, which lets an import take so long."""
    longer = {"load_seconds = 5": f"load_seconds = {seconds}"}
    return copy_tiny(folder / "course", longer).root


class Serving:
    """A process of `grade serve`, talked to from here."""

    def __init__(self, course: Path, folder: Path) -> None:
        words = ("serve", "--course", course, "--folder", folder)
        self.process = start_grade(*words, stdin=subprocess.PIPE)

    def send(self, **message: Any) -> None:
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        answer: dict[str, Any] = json.loads(line)
        return answer

    def grade(self, number: int, *cells: str, stages: list[str], graded: int | None = None) -> Any:
        self.send(id=number, stages=stages, cells=list(enumerate(cells, 1)), graded=graded)
        answer = self.receive()
        assert answer["id"] == number
        return answer

    def show(self, kind: str, of: str, *cells: str) -> Any:
        self.send(id=1, show=kind, of=of, cells=list(enumerate(cells, 1)))
        return self.receive()

    def end(self) -> int:
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is no workspace, with files that are called like libraries."""
    tmp_path = tmp_path_factory.mktemp("elsewhere")
    for name in ("numpy", "random", "grader", "pytest"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')\n")
    return tmp_path


@pytest.fixture(scope="module")
def serving(elsewhere: Path) -> Iterator[Serving]:
    """One process for one request after the other, as a kernel has it."""
    serving = Serving(TINY.root, elsewhere)
    assert serving.receive() == {"ready": True}
    yield serving
    assert serving.end() == 0


def test_it_answers_with_data_html_and_text(serving: Serving) -> None:
    answer = serving.grade(1, AVERAGE, stages=["moving_average"], graded=1)
    (stage,) = answer["report"]["stages"]
    assert (stage["slug"], stage["status"], stage["score"]) == ("moving_average", "passed", 6)
    assert answer["runs"] is True
    assert "passed, 6 / 6 points" in answer["html"] and "passed" in answer["text"]


def test_without_stages_all_that_is_defined_is_graded(serving: Serving) -> None:
    answer = serving.grade(1, AVERAGE, "def roughness(values):\n    return 0", stages=[])
    slugs = [stage["slug"] for stage in answer["report"]["stages"]]
    assert slugs == ["moving_average", "roughness"]


def test_the_example_and_a_failing_check_are_shown_for_what_the_cells_define(
    serving: Serving,
) -> None:
    cells = AVERAGE, "def smooth(values, width, times=1):\n    return values[2:] * 0.0"
    trace = serving.show("trace", "smooth", *cells)
    assert "The first wrong step: twice." in trace["text"]
    assert "2.75" in trace["html"] and trace["html"].startswith("<pre ")
    heatmap = serving.show("heatmap", "smooth", *cells)
    assert "<table" in heatmap["html"] and "How often a day counts" in heatmap["text"]
    assert "values = numpy.array([" in serving.show("repro", "smooth", *cells)["text"]
    assert "passes" in serving.show("repro", "moving_average", *cells)["error"]
    assert serving.show("trace", "roughness", *cells)["error"] == "roughness has no example"
    assert "no stage" in serving.show("heatmap", "smoth", *cells)["error"]


def test_what_cannot_be_graded_is_one_line_and_the_next_request_is_answered(
    serving: Serving,
) -> None:
    wrong = serving.grade(1, AVERAGE, stages=["moving_averag"])
    assert "did you mean 'moving_average'?" in wrong["error"]
    nothing = serving.grade(2, "x = 1", stages=[])
    assert nothing["error"].startswith("nothing is defined yet: write moving_average in a cell")
    assert "report" in serving.grade(3, AVERAGE, stages=["moving_average"])


def test_after_a_restart_the_cells_to_run_first_are_named(serving: Serving) -> None:
    advice = "moving_average has not run in this kernel: run its cell first"
    answer = serving.grade(1, SMOOTH, stages=["smooth"], graded=1)
    assert answer["report"]["stages"][0]["caused_by"] == "moving_average"
    assert advice in answer["html"] and advice in " ".join(answer["text"].split())
    wrong = AVERAGE.replace("return", "return 2 *")
    assert advice not in serving.grade(2, wrong, SMOOTH, stages=["smooth"])["html"]


def test_so_they_are_if_only_visible_checks_run(
    elsewhere: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = tmp_path_factory.mktemp("partial") / "course"
    partial = copy_tiny(copy, {"schema = 1": "schema = 1\npartial = true"}).root
    serving = Serving(partial, elsewhere)
    serving.receive()
    answer = serving.grade(1, SMOOTH, "grade_here('smooth')", stages=["smooth"])
    assert "moving_average has not run in this kernel: run its cell first" in answer["html"]
    assert serving.end() == 0


def test_of_two_cells_with_the_same_name_the_one_that_counts_is_named(serving: Serving) -> None:
    trial = "def moving_average(values, width):\n    return values * 0"
    ran = [[1, AVERAGE, "a", 0.0], [2, trial, "b", 0.0], [3, SMOOTH, "c", 0.0]]
    again = [*ran, [4, AVERAGE, "a", 0.0]]  # passes, and the trial still counts below it
    told = "cells [4] and [2] define moving_average, and [2] counts"
    for cells, stage, graded, is_told in (
        (again, "moving_average", 4, False),
        ([*again, [5, SMOOTH, "c", 0.0]], "smooth", 5, True),
        ([*again, [5, "", "d", 0.0]], "moving_average", None, True),
        ([*ran, [4, AVERAGE, "b", 0.0]], "smooth", None, False),
    ):
        serving.send(id=1, stages=[stage], cells=cells, graded=graded)
        answer = serving.receive()
        assert (told in answer["html"]) is is_told, answer["text"]


def test_a_stage_whose_own_cell_has_not_run_is_not_failed(serving: Serving) -> None:
    answer = serving.grade(1, "grade_here('smooth')", stages=["smooth"])
    assert answer["error"] == "smooth has not run in this kernel: run its cell first"
    for older in ([], ["from no_such_module import *"] * 30):
        answer = serving.grade(2, *older, "def smooth(", stages=["smooth"])
        assert "a cell of the notebook fails. SyntaxError" in answer["text"]
    shown = serving.show("trace", "smooth", "%trace smooth")
    assert shown["error"] == "smooth has not run in this kernel: run its cell first"


def test_a_cell_is_called_by_its_number_and_the_graded_one_this_cell(serving: Serving) -> None:
    helper = "def middle(values):\n    return values[len(values)]"
    needy = "%%grade roughness\ndef roughness(values):\n    return middle(values)"
    serving.send(id=1, stages=["roughness"], cells=[[7, helper], [9, needy]], graded=9)
    answer = serving.receive()
    message = answer["report"]["stages"][0]["checks"][0]["message"]
    assert "cell [7], line 2, in middle" in message
    assert "this cell, line 3, in roughness" in message
    assert "cell [7], line 2, in middle" in answer["html"]


@pytest.mark.parametrize(
    "source", ["import time\nwhile True: time.sleep(1)", "import os\nos._exit(0)"]
)
def test_a_cell_that_does_not_get_to_its_end_is_not_to_be_run(
    elsewhere: Path, tmp_path_factory: pytest.TempPathFactory, source: str
) -> None:
    serving = Serving(with_imports_of(2, tmp_path_factory.mktemp("quick")), elsewhere)
    serving.receive()
    answer = serving.grade(1, f"%%grade roughness\n{source}", stages=["roughness"], graded=1)
    assert serving.end() == 0
    assert answer["runs"] is False
    assert "graded but not run here" in answer["html"]
    assert " ".join(answer["text"].split()).count("or ends its process") == 1


def test_a_function_that_loops_and_a_cell_that_raises_may_run(serving: Serving) -> None:
    loops = "%%grade roughness\ndef roughness(values):\n    while True: __import__('time').sleep(1)"
    assert serving.grade(1, loops, stages=["roughness"], graded=1)["runs"] is True
    raises = "%%grade roughness\n1 / 0"
    answer = serving.grade(2, raises, stages=["roughness"], graded=1)
    assert answer["runs"] is True
    assert "ZeroDivisionError" in answer["html"]


def test_a_cancelled_request_is_answered_soon_the_next_one_as_usual_and_none_holds_up_the_end(
    elsewhere: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    serving = Serving(with_imports_of(90, tmp_path_factory.mktemp("patient")), elsewhere)
    serving.receive()
    slow = "%%grade roughness\nimport time\ntime.sleep(60)"
    serving.send(id=1, stages=["roughness"], cells=[[1, slow]], graded=1)
    time.sleep(0.3)
    start = time.monotonic()
    serving.send(cancel=1)
    assert serving.receive() == {"id": 1, "cancelled": True}
    assert time.monotonic() - start < 30  # of the 60
    serving.send(cancel=1)  # a late one harms nobody
    assert "report" in serving.grade(2, AVERAGE, stages=["moving_average"])

    # And it ends with its input even while it grades.
    serving.send(id=3, stages=["roughness"], cells=[[1, slow]], graded=1)
    time.sleep(0.3)
    start = time.monotonic()
    assert serving.end() == 0
    assert time.monotonic() - start < 30  # of the 60


def test_a_course_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    serving = Serving(tmp_path, tmp_path)
    assert "is not a course" in serving.receive()["fatal"]
    assert serving.end() == 2


def test_in_a_workspace_results_are_remembered_and_only_a_change_is_an_attempt(
    tmp_path: Path,
) -> None:
    (tmp_path / "notes").mkdir()
    mark_workspace(tmp_path, TINY)
    serving = Serving(TINY.root, tmp_path / "notes")
    serving.receive()
    serving.grade(1, AVERAGE, stages=["moving_average"], graded=1)
    serving.grade(2, AVERAGE, "def roughness(values):\n    return 0", stages=[])
    serving.grade(3, AVERAGE, "x = 1", "def roughness(values):\n    return 1", stages=[])
    assert serving.end() == 0
    progress = read_progress(tmp_path).progress
    known = progress.stage("moving_average")
    assert (known.best, known.attempts) == (6, 1) and known.is_open
    assert progress.stage("roughness").attempts == 2


def test_elsewhere_nothing_is_remembered(elsewhere: Path) -> None:
    own = own_course().root
    before = read_progress(own).progress
    serving = Serving(TINY.root, elsewhere)
    serving.receive()
    serving.grade(1, AVERAGE, stages=["moving_average"], graded=1)
    assert serving.end() == 0
    assert read_progress(own).progress == before
    assert not (TINY.root / ".grade").exists() and not (elsewhere / ".grade").exists()


def test_what_cannot_be_remembered_is_told_beside_the_verdict(tmp_path: Path) -> None:
    mark_workspace(tmp_path, TINY)
    (tmp_path / ".grade" / "progress.json").write_text("{broken", encoding="utf-8")
    serving = Serving(TINY.root, tmp_path)
    serving.receive()
    answer = serving.grade(1, AVERAGE, stages=["moving_average"], graded=1)
    assert "is damaged; it is kept as" in answer["html"]
    assert serving.end() == 0
