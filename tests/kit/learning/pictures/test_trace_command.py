"""`grade trace`: which stage it shows, and the exit code."""

from pathlib import Path

import pytest

from tests.kit.support.checkout import imported_by
from tests.kit.support.tiny import Say

STEPS = """
import numpy as np

from grader.tracing import Step


def trace(submission):
    yield Step("values", np.array([1.0, 2.0]), "days", labels={"days": ["Mon", "Tue"]})
    yield Step("between", submission.roughness(np.array([1.0, 2.0])))
    yield Step("last", np.arange(8.0).reshape(2, 2, 2), "H=2 T=2 D=2")
"""


def test_to_the_end(tiny: Path, say: Say) -> None:
    code, shown, errors = say("trace", "smooth", "--submission", "solutions")
    assert (code, errors) == (0, "")
    assert "trace of smooth" in shown
    assert "That was all." in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_of_stubs_it_ends_at_the_first_function(tiny: Path, say: Say) -> None:
    code, shown, errors = say("trace")
    assert (code, errors) == (1, "")
    assert "values   days=5" in shown
    assert "The trace ends here: moving_average is not written yet." in shown
    assert "grade hint moving_average" in shown


def test_plain(tiny: Path, say: Say) -> None:
    code, shown, _ = say("trace", "smooth", "--submission", "solutions", "--plain")
    assert code == 0
    assert "values, Wed: 6\n" in shown


def test_without_a_stage_it_is_the_last_that_is_written(tiny: Path, say: Say) -> None:
    (tiny / "hints" / "traces" / "moving_average.py").write_text(
        "import numpy as np\nfrom grader.tracing import Step\n\n\n"
        "def trace(submission):\n"
        "    yield Step('means', submission.moving_average(np.arange(4.0), 2), 'pairs')\n",
        encoding="utf-8",
    )
    (tiny / "exercises" / "moving_average.py").write_text("def (", encoding="utf-8")
    assert "trace of moving_average" in say("trace")[1], "the stub of smooth only imports it"
    right = (tiny / "solutions" / "moving_average.py").read_bytes()
    (tiny / "exercises" / "moving_average.py").write_bytes(right)
    code, shown, _ = say("trace")
    assert code == 0
    assert "trace of moving_average" in shown
    (tiny / "exercises" / "smooth.py").write_bytes((tiny / "solutions" / "smooth.py").read_bytes())
    code, shown, _ = say("trace")
    assert code == 0
    assert "trace of smooth" in shown


CURVES = """
from grader.tracing import Curves


def trace(submission):
    yield Curves("Growth", [1, 2, 4], {"own": [1, 4, 16]}, "days", "bytes", {"days": [1, 2, 4]})
"""


def test_its_picture_is_written(tiny: Path, say: Say) -> None:
    (tiny / "hints" / "traces" / "roughness.py").write_text(CURVES, encoding="utf-8")
    for file in ("own.png", "own.svg", "again.svg"):
        code, shown, errors = say("trace", "roughness", "--out", file)
        assert (code, errors) == (0, "")
        assert shown.endswith(f"  written: {file}\n")
    assert (tiny / "own.png").read_bytes().startswith(b"\x89PNG")
    svg = (tiny / "own.svg").read_bytes()
    assert svg == (tiny / "again.svg").read_bytes()
    assert b"<desc>own, days 1: 1 bytes. own, days 2: 4 bytes." in svg
    say("trace", "smooth", "--submission", "solutions", "--out", "map.svg")
    assert b"How often a day counts" in (tiny / "map.svg").read_bytes()


def test_without_a_picture_of_its_own_the_first_and_last_step_are_drawn(
    tiny: Path, say: Say
) -> None:
    (tiny / "hints" / "traces" / "roughness.py").write_text(STEPS, encoding="utf-8")
    assert say("trace", "roughness", "--submission", "solutions", "--out", "steps.svg")[0] == 0
    svg = (tiny / "steps.svg").read_text("utf-8")
    assert "Tables of numbers: values, then last." in svg
    assert ">Mon<" in svg and "last H=1" in svg and "between" not in svg


def test_a_picture_that_cannot_be_written(tiny: Path, say: Say) -> None:
    trace = tiny / "hints" / "traces" / "roughness.py"
    trace.write_text(CURVES, encoding="utf-8")
    assert say("trace", "roughness", "--out", "no/such.png")[2].startswith(
        "grade: no/such.png: cannot be"
    )
    assert say("trace", "roughness", "--out", "own.pdf") == (
        *(2, ""),
        "grade: --out own.pdf: end the picture's name with .png or .svg\n",
    )
    trace.write_text("def trace(submission):\n    yield 'Nothing.'\n", encoding="utf-8")
    assert say("trace", "roughness", "--out", "own.png")[2] == (
        "grade: the trace of roughness drew no picture, so none was written\n"
    )


@pytest.mark.parametrize(
    "words, said",
    [
        (["roughness"], "roughness has no trace; stages with a trace: smooth"),
        (["--submission", "nowhere"], "nowhere: cannot be read: No such file or directory"),
    ],
)
def test_refused(tiny: Path, say: Say, words: list[str], said: str) -> None:
    assert say("trace", *words) == (2, "", f"grade: {said}\n")


def test_a_course_without_traces(birds: Path, say: Say) -> None:
    assert say("trace") == (2, "", "grade: no stage of this course has a trace\n")


@pytest.mark.parametrize("command", ["trace", "heatmap"])
def test_help_is_there_at_once(command: str) -> None:
    slow = {"torch", "pytest", "numpy", "matplotlib", "subprocess"}
    assert not imported_by(command, "--help", shows="--submission PATH") & slow
