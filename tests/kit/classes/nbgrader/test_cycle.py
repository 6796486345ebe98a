"""The whole cycle of an nbgrader course with its real commands, exchange and gradebook.

Ten students: full marks, partial, untouched, hostile, dying, looping, not JSON, full marks in a
file of another name with a cell twice and a lost schema_version, nothing but an empty file, a
locked cell changed. What each is due is what `grade --submission` gives, however it is graded.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Callable, Mapping
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from grader.channels.leaks import leaks, secret_lines
from grader.engine import Engine, Request, with_engine
from grader.read.course_file import read_course
from grader.read.submission import read_submission
from grader.types.errors import KitError
from tests.kit.classes.test_grading import scores
from tests.kit.support.checkout import COURSE, ROOT, run_python
from tests.kit.support.files import edit
from tests.kit.support.nbgrader import nbgrader

pytestmark = pytest.mark.slow

NAME = "attention"
Notebook = dict[str, Any]


def copied(kit: Path) -> Path:
    """A copy of the course, in which a cell that never ends is waited for less long."""
    for name in ("exercises", "hints", "solutions", "tests/checks"):
        shutil.copytree(ROOT / name, kit / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "course.toml", kit)
    edit(kit / "course.toml", "load_seconds = 10", "load_seconds = 5")
    return kit


class Class:
    """The folders of an instructor and of the students, with homes of their own."""

    def __init__(self, root: Path) -> None:
        self.course = root / "course"
        self.kit = copied(root / "kit")
        self.exchange = root / "exchange"
        self.exchange.mkdir()
        self.exchange.chmod(0o777)
        self.home = root / "home"
        self.home.mkdir()

    def nbgrader(self, *words: str, cwd: Path | None = None, fails: bool = False) -> str:
        return nbgrader(cwd or self.course, *words, fails=fails, HOME=str(self.home))

    def grade(self, *words: str) -> None:
        words = ("-m", "grader", *words, "--course", str(self.kit))
        done = run_python(*words, cwd=self.course, env={"HOME": str(self.home)})
        assert done.returncode == 0, done.stdout + done.stderr

    def elsewhere(self, folder: Path, *left_out: str) -> Class:
        """The same class with a copy of the instructor's folder."""
        there = copy.copy(self)
        there.course = folder / "course"
        shutil.copytree(self.course, there.course, ignore=shutil.ignore_patterns(*left_out))
        return there

    def release(self) -> None:
        self.course.mkdir()
        self.grade("release", "nbgrader")
        config = self.course / "nbgrader_config.py"
        with config.open("a", encoding="utf-8") as file:
            file.write(f"c.Exchange.root = {str(self.exchange)!r}\n")
            file.write("c.ExchangeCollect.check_owner = False\n")
        self.nbgrader("generate_assignment", NAME)
        self.nbgrader("release_assignment", NAME)

    def student(self, root: Path) -> Path:
        """A folder of a student's, with their configuration."""
        root.mkdir()
        (root / "nbgrader_config.py").write_text(
            f"c = get_config()\nc.Exchange.root = {str(self.exchange)!r}\n"
            "c.CourseDirectory.course_id = 'multi-head-attention'\n",
            encoding="utf-8",
        )
        return root


def cell(notebook: Notebook, grade_id: str) -> Notebook:
    (found,) = (
        c
        for c in notebook["cells"]
        if c["metadata"].get("nbgrader", {}).get("grade_id") == grade_id
    )
    return found


def answered(released: Notebook, solutions: Notebook) -> Notebook:
    whole = copy.deepcopy(released)
    for source in solutions["cells"]:
        if source["metadata"].get("nbgrader", {}).get("solution"):
            cell(whole, source["metadata"]["nbgrader"]["grade_id"])["source"] = source["source"]
    return whole


def body(notebook: Notebook, slug: str, code: str) -> Notebook:
    """The notebook with other code between the markers of a stage's only solution."""
    changed = copy.deepcopy(notebook)
    found = cell(changed, f"{slug}-code")
    pattern = r"### BEGIN SOLUTION.*### END SOLUTION"
    found["source"] = re.sub(pattern, code, "".join(found["source"]), flags=re.S)
    return changed


HOSTILE = """import os, sys, sqlite3, pathlib
for up in pathlib.Path.cwd().parents:
    for name in ("gradebook.db", "course.toml"):
        try:
            (up / name).write_bytes(b"")
        except OSError:
            pass
print('{"score": 100}')
raise NotImplementedError
"""


def handed_in(released: Notebook, solutions: Notebook) -> dict[str, tuple[str, bytes]]:
    """What each student hands in: the name of the file and its bytes."""
    whole = answered(released, solutions)
    partial = body(whole, "scaled_scores", "return q @ k.transpose(-2, -1)")
    hostile = copy.deepcopy(whole)
    cell(hostile, "masking-code")["source"] = HOSTILE
    dying = copy.deepcopy(whole)
    cell(dying, "softmax-code")["source"] = "import os\nos._exit(0)\n"
    looping = copy.deepcopy(whole)
    cell(looping, "softmax-code")["source"] = (
        "import time\nwhile True:\n    try:\n        time.sleep(1)\n"
        "    except BaseException:\n        pass\n"
    )
    odd = copy.deepcopy(whole)
    odd["cells"].insert(9, copy.deepcopy(cell(odd, "split_heads-code")))
    del cell(odd, "masking")["metadata"]["nbgrader"]["schema_version"]
    edited = copy.deepcopy(released)
    edited["cells"] = [c for c in edited["cells"] if c is not cell(edited, "concat_heads")]
    cell(edited, "softmax")["source"] = "14.0"

    def file(notebook: Notebook, name: str = f"{NAME}.ipynb") -> tuple[str, bytes]:
        return name, json.dumps(notebook).encode()

    return {
        "ann_full": file(whole),
        "bob_partial": file(partial),
        "cas_untouched": file(released),
        "dan_hostile": file(hostile),
        "eve_dying": file(dying),
        "fay_looping": file(looping),
        "hal_no_json": (f"{NAME}.ipynb", b'{"cells": ['),
        "jon_odd": file(odd, "My copy (1).ipynb"),
        "kim_empty": (f"{NAME}.ipynb", b""),
        "liz_edited": file(edited),
    }


def due(made: Class, students: Mapping[str, tuple[str, bytes]], tmp: Path) -> dict[str, float]:
    """The points that the engine of `grade --submission` gives, which is started once for all."""
    course = read_course(made.kit / "course.toml")
    core = tuple(stage for stage in course.stages if not stage.bonus)

    def body(engine: Engine) -> dict[str, float]:
        points = {}
        for student, (_, data) in students.items():
            file = tmp / f"{student}.ipynb"
            file.write_bytes(data)
            if student in ("hal_no_json", "kim_empty"):
                with pytest.raises(KitError, match=r"is empty|is not a complete notebook"):
                    read_submission(file)
                points[student] = 0.0
            else:
                request = Request(read_submission(file), core, seed=6)
                points[student] = engine.grade(request).score
        return points

    return with_engine(course, core, "cpu", body)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Class:
    """A released course in which everybody has handed in through the exchange."""
    root = tmp_path_factory.mktemp("class")
    made = Class(root)
    made.release()
    first = made.student(root / "student")
    assert NAME in made.nbgrader("list", cwd=first)
    made.nbgrader("fetch_assignment", NAME, cwd=first)
    released = json.loads((first / NAME / f"{NAME}.ipynb").read_text("utf-8"))
    source = made.course / "source" / NAME / f"{NAME}.ipynb"
    students = handed_in(released, json.loads(source.read_text("utf-8")))
    for student, (name, data) in students.items():
        own = made.student(root / student)
        (own / NAME).mkdir()
        (own / NAME / name).write_bytes(data)
        made.nbgrader("submit", NAME, f"--student={student}", cwd=own)
    made.nbgrader("collect", NAME)
    shutil.copy(made.course / "gradebook.db", root)
    for file in (made.course / "submitted" / "bob_partial" / NAME).iterdir():
        if file.suffix != ".ipynb":  # as an instructor may put it there by hand: alone
            file.unlink()
    stamp = made.course / "submitted" / "liz_edited" / NAME / "timestamp.txt"
    stamp.write_text("soon", encoding="utf-8")
    made.due = due(made, students, root)
    return made


def by_nbgrader(made: Class) -> None:
    made.nbgrader("autograde", NAME, "--force")


def by_class(made: Class) -> None:
    made.grade("class", "--nbgrader", ".", NAME, "--force")


@pytest.mark.parametrize("graded", [by_nbgrader, by_class])
def test_everybody_gets_the_points_that_are_due_and_a_page(
    made: Class, graded: Callable[[Class], None]
) -> None:
    """Pages take long: only some students get one."""
    shutil.copy(made.course.parent / "gradebook.db", made.course)  # without grades
    shutil.rmtree(made.course / "autograded", ignore_errors=True)
    due: dict[str, float] = made.due
    graded(made)
    assert scores(made.course) == due
    assert due["ann_full"] == due["jon_odd"] == 100
    assert due["cas_untouched"] == due["hal_no_json"] == due["kim_empty"] == 0
    assert 0 < due["bob_partial"] < 100
    assert due["eve_dying"] == due["fay_looping"] == 56  # only what the cell kills is lost

    students = [student for student in due if student[0] in "bchjl"]
    made.nbgrader("generate_feedback", NAME, "--force", "--student=[bchjl]*")
    assert made.nbgrader("release_feedback", NAME).count("Releasing feedback") == len(students)
    for student in students:
        made.nbgrader("fetch_feedback", NAME, cwd=made.course.parent / student)
    pages = {}
    for student in students:
        own = made.course.parent / student
        page = made.course / "feedback" / student / NAME / f"{NAME}.html"
        pages[student] = page.read_text("utf-8")
        assert list((own / NAME / "feedback").rglob("*.html"))
    assert "scale" in pages["bob_partial"] and "hint 2" in pages["bob_partial"]
    assert "is not a complete notebook" in pages["hal_no_json"]
    assert "so My copy (1).ipynb was graded" in pages["jon_odd"]
    assert "restored" in pages["liz_edited"]
    assert secrets(made, pages) == []


def secrets(made: Class, pages: Mapping[str, str]) -> list[str]:
    """The lines of solutions, hidden checks and misconceptions in what was released or told."""
    released = json.loads((made.course / "release" / NAME / f"{NAME}.ipynb").read_text("utf-8"))
    handed_out = "\n".join("".join(cell["source"]) for cell in released["cells"])
    page = unescape(re.sub(r"<[^>]+>", "", pages["cas_untouched"]))  # the others hold answers
    files = {"release": handed_out.encode(), "page": page.encode()}
    return [str(leak) for leak in leaks(files, secret_lines(COURSE, COURSE.stages))]


def test_without_our_package_nothing_is_graded_in_silence(made: Class, tmp_path: Path) -> None:
    there = made.elsewhere(tmp_path, "autograded")
    edit(there.course / "nbgrader_config.py", "grader.nbgrader", "gone.nbgrader")
    said = there.nbgrader("autograde", NAME, "--student=ann_full", fails=True)
    assert "gone" in said
    assert not list(there.course.glob("autograded/*/*/*.ipynb"))


def test_plain_nbgrader_gives_partial_credit_too(made: Class, tmp_path: Path) -> None:
    due: dict[str, float] = made.due
    graded = ("ann_full", "bob_partial", "cas_untouched")
    there = made.elsewhere(tmp_path, "autograded", "feedback", *(due.keys() - graded))
    there.grade("release", "nbgrader", "--kernel")
    there.nbgrader("autograde", NAME, "--force")
    assert scores(there.course).items() >= {student: due[student] for student in graded}.items()
    assert not (there.course / ".grade" / "progress.json").exists()


def test_released_again_the_gradebook_stays(made: Class) -> None:
    before = scores(made.course)
    made.grade("release", "nbgrader")
    made.nbgrader("generate_assignment", NAME, "--force")
    assert scores(made.course) == before
