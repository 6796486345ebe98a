"""`grade finale` on a course of numpy functions: the screens, the files, and what can go wrong."""

import shutil
from pathlib import Path

import pytest

from grader.learning.finale.programs import all_programs
from grader.learning.finale.screen import result
from grader.learning.finale.training import Moment, Run, studio, train
from grader.read.course_file import read_course
from grader.read.submission import read_submission
from tests.kit.support.checkout import TINY
from tests.kit.support.drawn import draw
from tests.kit.support.files import write_files
from tests.kit.support.tiny import Say, solve

PROGRAM = """
import numpy as np
from smooth import smooth

PROGRAMS = {
    "rocks": {
        "class": "Rocks",
        "title": "Smooth the rocks",
        "about": "They become `round`.",
        "steps": 100,
        "without": {"water": "Water makes them round."},
    }
}
TEXT = ""


class Rocks:
    def __init__(self, seed, without, device):
        self.rough, self.keeps = np.array([9.0 + seed, 1.0]), without == "water"

    def steps(self, number):
        if not self.keeps:
            self.rough = self.rough.mean() + (self.rough - self.rough.mean()) * 0.9
        return [float(np.ptp(self.rough))] * number

    def sample(self):
        return f"{TEXT}{np.ptp(self.rough):.1f}"

    def heatmap(self):
        return {
            "title": "Rocks", "tensor": self.rough.reshape(2, 1, 1), "panels": ["left", "right"],
            "rows": ["r"], "columns": ["c"], "row_axis": "row", "column_axis": "column",
            "fit": [0.1, 0.9],
        }

    def scores(self):
        return {"roughness": float(np.ptp(self.rough)), "mean": float(smooth(self.rough, 2)[0])}

    def guides(self):
        return {"sand": 5.0}
"""


@pytest.fixture(autouse=True)
def solved(tiny: Path) -> None:
    solve(tiny)
    write(PROGRAM)


def write(program: str, text: str = "so \x1b[2J rough: ") -> None:
    write_files(Path("hints/finale"), {"smooth.py": program, "smooth.txt": text})


def test_a_training_and_the_same_with_a_mistake(tiny: Path, say: Say) -> None:
    code, shown, errors = say("finale", "rocks", "--without", "water", "--out", "there")
    assert (code, errors) == (0, "")
    assert "smooth has not passed yet" in shown  # nothing is graded in this folder
    assert "What it writes after 0 steps:\n    │ so \\x1b[2J rough: 9.0\n" in shown
    assert "step 20 of 100: loss 8.1\n" in shown
    assert "What it writes after 100 steps:\n    │ so \\x1b[2J rough: 5.3\n" in shown
    right, wrong = shown.split("Smooth the rocks   without water   rocks\n")
    assert "● yours   across: steps" in right
    assert "● yours   ▲ without water   across: steps" in wrong
    assert "right, before" in right and "right, after" in right and "left" not in right
    assert "  roughness: 5.31\n  mean: 5.5\n  sand, the dotted line: 5\n" in right
    assert "  roughness: 5.31, without water 9\n" in wrong
    assert "train without it" not in shown
    assert wrong.index("  Water makes them round.\n") < wrong.index("written: there")
    names = {file.name for file in (tiny / "there").iterdir()}
    kinds = ("loss.svg", "heatmap.svg", "without-water-loss.svg", "without-water-heatmap.svg")
    assert names == {f"rocks-{kind}" for kind in kinds}


def test_a_training_that_is_stopped_keeps_what_was_learnt(tiny: Path) -> None:
    course = read_course(tiny / "course.toml")
    [program] = all_programs(course)
    moments: list[Moment] = []
    with (
        studio(course, "cpu") as room,
        room.trainee(program, read_submission(tiny / "exercises"), 1, "") as trainee,
    ):
        run = train(trainee, program, "", moments.append, lambda: len(moments) > 2)
    assert len(run.losses) == 40 and not run.is_whole
    assert moments[-1].sample == "so \x1b[2J rough: 7.3"
    assert run.scores["roughness"] == pytest.approx(9 * 0.9**2)


def test_code_that_is_not_written_yet(tiny: Path, say: Say) -> None:
    write(PROGRAM.replace("self.rough, self", "smooth(np.ones(3), 2)\n        self.rough, self"))
    code, shown, errors = say("finale", "--submission", str(TINY.root / "exercises"))
    assert (code, errors) == (1, "")
    assert shown.strip().startswith("The finale needs your smooth, which is not written yet.")
    assert "To check it" not in shown, "for `grade smooth` would grade other files"
    assert not (tiny / "finale").exists()
    shutil.copy(TINY.root / "exercises" / "smooth.py", tiny / "exercises")
    code, shown, errors = say("finale")
    assert shown.count("To check it") == 1 and "has not passed yet" not in shown


def test_it_says_which_parts_can_be_left_out(tiny: Path) -> None:
    [program] = all_programs(read_course(tiny / "course.toml"))
    run = Run(program, "", (1.0,), {}, {}, None, 1.0)
    shown = draw(result([run]), 40)
    assert "Stopped at step 1 of 100." in shown
    assert "\n    grade finale rocks --without water\n" in shown


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[float(np.ptp(self.rough))]", '[float("nan")]', "The loss became 0, huge or no number"),
        ("[float(np.ptp(self.rough))]", "[1e308]", "The loss became 0, huge or no number"),
        ("* number", "* (number - 1)", "steps(20) returned"),
        ('"rows": ["r"]', '"rows": []', "The heatmap cannot be drawn"),
    ],
)
def test_an_answer_that_makes_no_sense(tiny: Path, say: Say, old: str, new: str, told: str) -> None:
    assert old in PROGRAM
    write(PROGRAM.replace(old, new))
    code, shown, errors = say("finale")
    assert (code, errors) == (1, "")
    assert told in shown


def test_numbers_that_cannot_be_shown_are_left_out(tiny: Path, say: Say) -> None:
    numbers = '{"mean": float("nan"), "most": 10**307, "least": float("-inf"), "all": 1.5}'
    write(PROGRAM.replace('{"roughness"', f'{numbers} or {{"roughness"'))
    code, shown, errors = say("finale")
    assert (code, errors) == (0, "")
    assert "all: 1.5" in shown
    assert "mean" not in shown and "most" not in shown and "least" not in shown


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["rock"], "no 'rock' in the finale (did you mean 'rocks'?); it has rocks"),
        (["--without", "air"], "--without air: choose one of water"),
    ],
)
def test_a_name_that_there_is_not(tiny: Path, say: Say, words: list[str], told: str) -> None:
    assert say("finale", *words) == (2, "", f"grade: {told}\n")


def test_a_course_without_a_finale(tiny: Path, say: Say) -> None:
    shutil.rmtree("hints/finale")
    assert say("finale") == (2, "", "grade: this course has no finale\n")


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("PROGRAMS = {", "PROGRAMS cannot be read: '{' was never closed"),
        ("PROGRAMS = {1: print()}", "PROGRAMS cannot be read: malformed"),
        ("PROGRAM = {}", "has no table PROGRAMS"),
        (PROGRAM.replace("100", "'many'"), "PROGRAMS['rocks']: 'steps' must be int"),
        (PROGRAM.replace('"title"', '"titel"'), "PROGRAMS['rocks']: 'title' must be str"),
    ],
)
def test_a_faulty_table_of_programs(tiny: Path, say: Say, program: str, told: str) -> None:
    write(program)
    code, _, errors = say("finale")
    assert code == 2
    assert f"hints/finale/smooth.py: {told}" in errors
