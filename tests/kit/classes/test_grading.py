"""A class is graded in several processes: what one of them meets is its student's alone."""

import json
import multiprocessing
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from grader.classes.nbgrader.course import CONFIG
from grader.classes.nbgrader.grading import NbgraderClass
from grader.classes.nbgrader.submitted import Submitted
from grader.classes.nbgrader.types import Graded
from grader.command.main import main
from grader.engine import Engine, with_engine
from grader.read.progress import make_memory_folder
from grader.types.course import Course, LateRule
from grader.types.errors import KitError
from tests.kit.support.checkout import ROOT, TINY
from tests.kit.support.files import edit, write_files
from tests.kit.support.nbgrader import nbgrader
from tests.kit.support.tiny import Capture, Typed, copy_tiny

pytest.importorskip("nbgrader", reason="nbgrader is not installed")

NAME = TINY.name
POINTS = sum(stage.points for stage in TINY.assignments[0].stages)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An nbgrader course of the tiny course with its assignment generated."""
    from tests.kit.classes.nbgrader.test_gradebook import opened

    root = tmp_path_factory.mktemp("released") / "class"
    assert main(["release", "nbgrader", "--course", str(TINY.root), "--course-dir", str(root)]) == 0
    with opened(root):  # as nbgrader would make it, in a moment
        pass
    nbgrader(root, "generate_assignment", NAME)
    return root


@pytest.fixture
def root(released: Path, tmp_path: Path) -> Path:
    root = tmp_path / "class"
    shutil.copytree(released, root)
    return root


def hand_in(root: Path, *students: str) -> None:
    """The solutions, in the notebook of each of these."""
    source = (root / "source" / NAME / f"{NAME}.ipynb").read_bytes()
    files = {f"{NAME}.ipynb": source, "timestamp.txt": "2026-01-05 10:00:00 UTC"}
    for student in students:
        write_files(root / "submitted" / student / NAME, files)


def graded(
    root: Path, course: Course = TINY, lanes: int = 2, force: bool = False
) -> dict[str, Graded]:
    results: dict[str, Graded] = {}
    work = NbgraderClass(root, NAME, course)

    def body(engine: Engine) -> None:
        students = work.students(force=force)
        work.grade(engine, students, 1, lanes, lambda one: results.update({one.student: one}))

    with_engine(course, work.stages, "cpu", body)
    return results


def sql(root: Path, statement: str) -> list[Any]:
    """What a statement to the gradebook gives."""
    with closing(sqlite3.connect(root / "gradebook.db")) as database, database:
        return database.execute(statement).fetchall()


def scores(root: Path) -> dict[str, float | None]:
    rows = sql(
        root,
        "SELECT a.student_id, sum(g.auto_score), min(g.auto_score IS NOT NULL) FROM grade g "
        "JOIN submitted_notebook n ON g.notebook_id = n.id "
        "JOIN submitted_assignment a ON n.assignment_id = a.id GROUP BY 1",
    )
    return {student: total if known else None for student, total, known in rows}


STUDENTS = ("ann", "bob", "cas", "dan", "eve")


def test_who_is_graded_again_is_graded_with_the_same_seed(root: Path, capsys: Capture) -> None:
    hand_in(root, "ann", "bob")
    seeds = []
    for more in (
        [],
        ["--force"],
        ["--force", "--jobs", "1"],
        ["--seed", "7", "--force"],
        ["--force"],
    ):
        words = ["class", "--course", str(TINY.root), "--nbgrader", str(root), NAME, *more]
        assert main(words) == 0
        seeds += re.findall(r"seed (\d+)", capsys.readouterr().out)
    assert len(seeds) == 5 and len(set(seeds[:3])) == 1 and seeds[3:] == ["7", "7"]


@pytest.mark.parametrize("lanes", [1, 3])
def test_everybody_is_graded_once(root: Path, lanes: int) -> None:
    hand_in(root, *STUDENTS)
    results = graded(root, lanes=lanes)
    assert {student: one.points for student, one in results.items()} == dict.fromkeys(
        STUDENTS, POINTS
    )
    assert scores(root) == dict.fromkeys(STUDENTS, POINTS)
    for student in STUDENTS:
        folder = root / "autograded" / student / NAME
        files = {f"{NAME}.ipynb", "timestamp.txt", "submission_secret.txt"}
        assert {file.name for file in folder.iterdir()} == files
        assert not os.access(folder / f"{NAME}.ipynb", os.W_OK) or os.geteuid() == 0
    assert graded(root) == {}  # nothing is new
    hand_in(root, "fay")
    assert set(graded(root)) == {"fay"}
    sql(root, "UPDATE comment SET manual_comment = 'Well done'")
    assert set(graded(root, force=True)) == {*STUDENTS, "fay"}
    assert set(sql(root, "SELECT manual_comment FROM comment")) == {("Well done",)}


def test_who_links_to_a_neighbours_folder_gets_nothing_and_the_reason(root: Path) -> None:
    hand_in(root, "ann")
    (ann := root / "submitted" / "ann" / NAME).joinpath("submission_secret.txt").write_text("hers")
    (root / "submitted" / "bob").mkdir()
    (root / "submitted" / "bob" / NAME).symlink_to(ann)
    (root / "submitted" / "cas").symlink_to(ann.parent)
    (root / "submitted" / "dan" / NAME).mkdir(parents=True)
    (root / "submitted" / "dan" / NAME / f"{NAME}.ipynb").symlink_to(ann / f"{NAME}.ipynb")
    results = graded(root, lanes=1)
    assert {student: one.points for student, one in results.items()} == {
        "ann": POINTS,
        "bob": 0,
        "cas": 0,
        "dan": 0,
    }
    for student in ("bob", "cas", "dan"):
        assert "is a link" in results[student].notes[0]
        folder = root / "autograded" / student / NAME
        assert "hers" not in (folder / "submission_secret.txt").read_text()
        assert "is a link" in (folder / f"{NAME}.ipynb").read_text("utf-8")


def test_what_was_handed_in_again_is_graded_again_even_by_a_clock_set_back(root: Path) -> None:
    hand_in(root, "ann", "bob")
    graded(root)
    stamp = root / "submitted" / "bob" / NAME / "timestamp.txt"
    for day in (6, 4):
        stamp.write_text(f"2026-01-0{day} 10:00:00 UTC")
        assert set(graded(root)) == {"bob"}
    assert graded(root) == {}


def dies(times: int, counter: Path) -> Callable[..., tuple[Submitted, object]]:
    """`_read` that ends its process for cas, so many times."""
    original = NbgraderClass._read

    def read(self: NbgraderClass, student: str) -> tuple[Submitted, object]:
        if student == "cas" and len(counter.read_text()) < times:
            counter.write_text(counter.read_text() + "x")
            os.kill(os.getpid(), signal.SIGKILL)
        return original(self, student)

    return read


@pytest.mark.skipif(sys.platform != "linux", reason="no fork on this system")
@pytest.mark.parametrize("times", [1, 2])
def test_a_process_that_is_killed_costs_nobody_points(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    hand_in(root, *STUDENTS)
    counter = tmp_path / "deaths"
    counter.write_text("")
    monkeypatch.setattr(NbgraderClass, "_read", dies(times, counter))
    results = graded(root)
    due = {student: POINTS if student != "cas" or times == 1 else None for student in STUDENTS}
    assert {student: one.points for student, one in results.items()} == due
    assert scores(root) == due


def test_where_nothing_can_pass_nobody_is_graded(root: Path, tmp_path: Path) -> None:
    hand_in(root, "ann")
    course = copy_tiny(tmp_path / "course")
    solution = course.stage("moving_average").solution_file
    solution.write_text("def moving_average(values, width):\n    return values\n")
    said = (
        "grading stopped: the course's own solution of 'moving_average' earns only .* on this "
        r"machine: moving_average\.\w+: \w"
    )
    with pytest.raises(KitError, match=said):
        graded(root, course)
    assert scores(root) == {}
    assert not (root / "autograded").exists()


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_folder_that_cannot_be_written_is_named(root: Path, lanes: int) -> None:
    hand_in(root, "ann", "bob")
    (make_memory_folder(root) / "autograded").write_text("in the way")
    with pytest.raises(KitError, match=r"autograded.*: cannot be written: "):
        graded(root, lanes=lanes)


def test_interrupted_it_writes_what_there_is(root: Path) -> None:
    hand_in(root, *STUDENTS)
    work = NbgraderClass(root, NAME, TINY)
    seen: list[str] = []

    def stop(one: Graded) -> None:
        seen.append(one.student)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        with_engine(
            TINY,
            work.stages,
            "cpu",
            lambda engine: work.grade(engine, work.students(force=False), 1, 2, stop),
        )
    assert multiprocessing.active_children() == []
    assert scores(root) == dict.fromkeys(seen, POINTS)
    assert set(graded(root)) == set(STUDENTS) - set(seen)


def test_points_that_have_changed_are_refused(root: Path) -> None:
    hand_in(root, "ann")
    stages = tuple(replace(stage, points=stage.points + 1) for stage in TINY.stages)
    course = replace(TINY, stages=stages)
    with pytest.raises(KitError, match=r"was released with 6 points and has 7 in course\.toml"):
        graded(root, course)


def test_late_costs_what_the_configuration_says(root: Path) -> None:
    hand_in(root, "ann", "bob")
    (root / "submitted" / "bob" / NAME / "timestamp.txt").write_text("2026-01-04 10:00:00 UTC")
    sql(root, "UPDATE assignment SET duedate = '2026-01-05 00:00:00.000000'")
    with (root / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write("c.LateSubmissionPlugin.penalty_method = 'zero'\n")
    graded(root)
    assert penalties(root) == {"ann": POINTS, "bob": None}


@pytest.mark.parametrize("stamp", ["", "yesterday", "2026-01-05 10:00:00 UTC" + " " * 300])
def test_a_submission_that_does_not_tell_when_it_came_is_named(root: Path, stamp: str) -> None:
    """A student can write what nbgrader's exchange takes for the time."""
    hand_in(root, "ann", "bob")
    (root / "submitted" / "ann" / NAME / "timestamp.txt").write_text(stamp)
    assert [found.notes for found in graded(root).values()] == [(), ()]  # nothing is due
    sql(root, "UPDATE assignment SET duedate = '2026-01-05 00:00:00.000000'")
    (note,) = graded(root, force=True)["ann"].notes
    assert note == "No timestamp.txt says when it was submitted, so it does not count as late."


def penalties(root: Path) -> dict[str, float | None]:
    return dict(
        sql(
            root,
            "SELECT a.student_id, n.late_submission_penalty FROM submitted_notebook n "
            "JOIN submitted_assignment a ON n.assignment_id = a.id",
        )
    )


DUE = datetime(2026, 1, 3, 10, 0, tzinfo=timezone.utc)
TERMS = replace(
    TINY.assignments[0],
    due=DUE,
    extensions={"cas": DUE + timedelta(days=9)},
    late=LateRule(per_day=0.25, cap=0.75),
)


def test_the_late_rule_of_the_course_counts_with_its_deadline_or_the_gradebooks(root: Path) -> None:
    hand_in(root, "ann", "bob", "cas")
    (root / "submitted" / "bob" / NAME / "timestamp.txt").write_text("2026-01-04 10:00:01 UTC")
    course = replace(TINY, assignments=(TERMS,))
    found = graded(root, course)
    assert penalties(root) == {"ann": POINTS * 0.5, "bob": POINTS * 0.5, "cas": None}
    assert found["bob"].notes == ("It came late by 1 day 1 second, which costs 50% of its points.",)
    assert found["cas"].notes == ()
    # What formgrader shows to people:
    sql(root, "UPDATE assignment SET duedate = '2026-01-05 00:00:00.000000'")
    graded(root, course, force=True)
    assert penalties(root) == {"ann": POINTS * 0.25, "bob": None, "cas": None}


@pytest.mark.slow
def test_nbgraders_own_commands_take_the_same_late_rule(tmp_path: Path) -> None:
    course, root = tmp_path / "course", tmp_path / "class"
    copy_tiny(course)
    stages = [stage.slug for stage in TINY.assignments[0].stages]
    toml = course / "course.toml"
    terms = f"""[[assignments]]
name = "{NAME}"
stages = {json.dumps(stages)}
due = 2026-01-03T10:00:00Z
late = {{ per_day = 0.25, cap = 0.75 }}
extensions = {{ cas = 2026-01-12T10:00:00Z }}
"""
    edit(toml, "[limits]", terms + "[limits]")
    for more in ([], ["--kernel"]):
        words = ["release", "nbgrader", "--course", str(course), "--course-dir", str(root)]
        assert main([*words, *more]) == 0
        if not more:
            nbgrader(root, "generate_assignment", NAME)
            hand_in(root, "bob", "cas")
            late = root / "submitted" / "bob" / NAME / "timestamp.txt"
            late.write_text("2026-01-04 10:00:01 UTC")
        nbgrader(root, "autograde", NAME, "--force")
        assert scores(root) == dict.fromkeys(("bob", "cas"), POINTS)
        assert penalties(root) == {"bob": POINTS * 0.5, "cas": None}


def test_who_came_near_the_limit_is_told(root: Path) -> None:
    hand_in(root, "ann", "bob")
    file = root / "submitted" / "bob" / NAME / f"{NAME}.ipynb"
    notebook = json.loads(file.read_text("utf-8"))
    for cell in notebook["cells"]:
        slow = "### BEGIN SOLUTION\n    __import__('time').sleep(1.8)"
        cell["source"] = "".join(cell["source"]).replace("### BEGIN SOLUTION", slow)
    file.write_text(json.dumps(notebook), encoding="utf-8")
    course = replace(TINY, limits=replace(TINY.limits, submission_seconds=4.0))
    found = graded(root, course)
    assert found["ann"].notes == ()
    *_, used, more = found["bob"].notes
    assert "of the 4 seconds that one" in used and "Some checks may not have run." in more


def test_the_command_says_what_was_odd(root: Path, grade: Typed) -> None:
    hand_in(root, "ann", "bob")
    folder = root / "submitted" / "bob" / NAME
    (folder / f"{NAME}.ipynb").rename(folder / "mine.ipynb")
    words = ["class", "--course", str(TINY.root), "--nbgrader", str(root), NAME, "--seed", "3"]
    said = grade(*words)
    next_command = f"nbgrader generate_feedback {NAME}"
    for word in ("2 submissions graded, seed 3", "bob", "mine.ipynb was graded", next_command):
        assert word in said
    assert "Nothing new to grade" in grade(*words)


def test_the_command_uses_the_course_that_the_class_was_made_from(
    root: Path, grade: Typed, capsys: Capture
) -> None:
    hand_in(root, "ann")
    words = ["class", "--nbgrader", str(root), NAME]
    assert "1 submission graded" in grade(*words)
    assert main(["class", str(root / "submitted"), "--out", str(root / "out")]) == 0
    said = capsys.readouterr()
    assert "1 submission graded" in said.out and "is used and not the one in this" in said.err
    (root / CONFIG).unlink()
    assert main(words) == 2  # the course of this folder has no such stages


@pytest.mark.skipif(sys.platform != "linux", reason="names are text")
def test_what_is_not_where_nbgrader_looks_keeps_nobody_from_being_graded(
    root: Path, capsys: Capture
) -> None:
    hand_in(root, "ann", os.fsdecode(b"b\xffb"), "c\nd", ".eve")
    for name in ("dan.ipynb", "dan/mine.ipynb", "notes/a.txt", ".DS_Store"):
        (root / "submitted" / name).parent.mkdir(exist_ok=True)
        (root / "submitted" / name).touch()
    for count in ("1 submission graded", "Nothing new to grade"):
        assert main(["class", "--course", str(TINY.root), "--nbgrader", str(root), NAME]) == 1
        said = capsys.readouterr().out
        assert r"submitted/b\xffb was skipped" in said and count in said
        assert r"submitted/c\nd was skipped" in said
        assert "submitted/.eve was skipped: nbgrader ignores a name that begins with a dot" in said
        for name in ("dan", "dan.ipynb"):
            assert f"submitted/{name} was skipped: move the notebook to" in said
        assert said.count("was skipped") == 5
    assert scores(root) == {"ann": POINTS}


def test_nothing_is_graded_where_the_lock_is_incomplete(
    root: Path, monkeypatch: pytest.MonkeyPatch, refused: Typed
) -> None:
    monkeypatch.setattr("grader.run.workers.Interpreter.missing_layers", ("landlock",))
    hand_in(root, "ann")
    words = ["class", "--course", str(TINY.root), "--nbgrader", str(root), NAME]
    assert "missing: landlock;" in refused(*words)
    assert scores(root) == {}
    assert main([*words, "--unlocked"]) == 0
    assert scores(root) == {"ann": POINTS}
    page = (root / "autograded" / "ann" / NAME / f"{NAME}.ipynb").read_text("utf-8")
    assert "graded without a complete lock" in page


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a layer to be taken away")
def test_nbgrader_itself_grades_nothing_where_the_lock_is_incomplete(root: Path) -> None:
    hand_in(root, "ann")
    without = [sys.executable, str(ROOT / "tests/kit/support/without.py"), "landlock"]
    command = [*without, str(Path(sys.executable).parent / "nbgrader"), "autograde", NAME]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}

    def autograde(*options: str) -> subprocess.CompletedProcess[str]:
        words = [*command, *options]
        return subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True)

    refused = autograde()
    assert refused.returncode != 0
    assert "add --AnyNotebook.unlocked=True" in refused.stderr
    assert POINTS not in scores(root).values()
    done = autograde("--AnyNotebook.unlocked=True")
    assert done.returncode == 0, done.stderr
    assert scores(root) == {"ann": POINTS}
