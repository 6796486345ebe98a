"""Prints how fast a class is graded: stock nbgrader, nbgrader with our grader, `grade class`.

    python tests/benchmark_class.py [SUBMISSIONS [STOCK]]

The submissions are notebooks of one assignment, each another mixture of the answers in
tests/kit/answers: of ten answers seven are right, in many styles, two are wrong and one is not
written. Each way grades the very same notebooks, one way after the other, in a course of its own;
stock nbgrader, which takes long, only the first STOCK of them. What is told is the time of each
submission beyond the first, so that starting the command counts in none of them, and the ratio to
stock. The points must be the same in all.

Stock is `nbgrader autograde` with no setting but the name of the course: it runs each notebook in a
kernel, where a cell a stage grades with the whole engine and gives nbgrader the points.
"""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grader.read.course_file import read_course
from grader.read.notebook import cell_code, solution_id
from grader.read.stubs import read_stub

ROOT = Path(__file__).parents[1]
ANSWERS = ROOT / "tests" / "kit" / "answers"
COURSE = read_course(ROOT / "course.toml")
NAME = COURSE.assignments[0].name
BIN = Path(sys.executable).parent
STOCK, OURS, CLASS = "nbgrader autograde", "with our preprocessors", "grade class"
GOALS = {OURS: 8, CLASS: 50}


def main(submissions: int, stock: int) -> None:
    """Time everything and print it."""
    with tempfile.TemporaryDirectory() as folder:
        print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}")
        course = Path(folder) / "course"
        released_course(course)
        notebooks = handed_in(course, submissions)
        seconds: dict[str, float] = {}
        points: dict[str, dict[str, float]] = {}
        for way, count in ((STOCK, stock), (OURS, submissions), (CLASS, submissions)):
            there = Path(folder) / way.replace(" ", "-")
            first = graded(there, course, way, notebooks[:1])[0]
            every, points[way] = graded(there, course, way, notebooks[:count])
            seconds[way] = (every - first) / (count - 1)
            ratio = seconds[STOCK] / seconds[way]
            goal = f", at least {GOALS[way]}" if way in GOALS else ""
            print(
                f"{way:<24}{count:5} submissions {every:7.1f} s, one more {seconds[way]:7.3f} s, "
                f"{ratio:6.1f} x stock{goal}",
                flush=True,
            )
        for student, score in points[STOCK].items():
            if not score == points[OURS][student] == points[CLASS][student]:
                raise SystemExit(f"{student}: {[way[student] for way in points.values()]}")
        if points[OURS] != points[CLASS]:
            raise SystemExit("the points are not the same")
        print(f"the same points in all, on average {sum(points[CLASS].values()) / submissions:.0f}")


def released_course(course: Path) -> None:
    """An nbgrader course whose assignment was generated."""
    grade("release", "nbgrader", "--course-dir", str(course))
    run([str(BIN / "nbgrader"), "generate_assignment", NAME], course)


def handed_in(course: Path, count: int) -> list[bytes]:
    """Notebooks in which each stage's answer is drawn."""
    released = json.loads((course / "release" / NAME / f"{NAME}.ipynb").read_text("utf-8"))
    draw = random.Random(1)
    return [json.dumps(answered(released, draw)).encode() for _ in range(count)]


def answered(released: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """The released notebook with an answer to each stage."""
    notebook = copy.deepcopy(released)
    cells = {
        cell["metadata"].get("nbgrader", {}).get("grade_id"): cell for cell in notebook["cells"]
    }
    for stage in COURSE.stages:
        luck = draw.random()
        if luck < 0.1:
            source = read_stub(stage)
        else:
            kind = "wrong" if luck < 0.3 else "right"
            files = sorted((ANSWERS / kind / stage.slug).glob("*.py"))
            file = draw.choice([*files, stage.solution_file] if kind == "right" else files)
            source = file.read_text("utf-8")
        cells[solution_id(stage)]["source"] = cell_code(source, COURSE)
    return notebook


def graded(
    there: Path, course: Path, way: str, notebooks: Sequence[bytes]
) -> tuple[float, dict[str, float]]:
    """The seconds that grading takes, and the points of each student."""
    shutil.rmtree(there, ignore_errors=True)
    shutil.copytree(course, there)
    if way == STOCK:
        (there / "nbgrader_config.py").write_text(
            f"c = get_config()\nc.CourseDirectory.course_id = {COURSE.name!r}\n", encoding="utf-8"
        )
    for number, notebook in enumerate(notebooks):
        folder = there / "submitted" / f"student{number:05}" / NAME
        folder.mkdir(parents=True)
        (folder / f"{NAME}.ipynb").write_bytes(notebook)
    start = time.perf_counter()
    if way == CLASS:
        grade("class", "--nbgrader", str(there), NAME)
    else:
        run([str(BIN / "nbgrader"), "autograde", NAME], there)
    seconds = time.perf_counter() - start
    run([str(BIN / "nbgrader"), "export"], there)
    names, *rows = (
        line.split(",") for line in (there / "grades.csv").read_text("utf-8").splitlines()
    )
    student, score = names.index("student_id"), names.index("score")
    return seconds, {row[student]: float(row[score]) for row in rows}


def grade(*words: str) -> None:
    """Run our command on the course of this repository."""
    run([sys.executable, "-m", "grader", *words, "--course", str(ROOT)], ROOT)


def run(words: Sequence[str], folder: Path) -> None:
    """Run a command that must succeed."""
    path = os.pathsep.join([str(BIN), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "GRADE_COURSE": str(ROOT)}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stdout.decode()}{done.stderr.decode()}")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:] or ("100", "6")))
