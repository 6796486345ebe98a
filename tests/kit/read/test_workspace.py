"""Which course and which folder a command works on, from where it is typed."""

import json
import re
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from grader.read import workspace as module
from grader.read.workspace import (
    current_stage,
    has_spoilt_mark,
    is_workspace,
    locate_course,
    locate_workspace,
    mark_workspace,
    own_course,
)
from grader.types.course import Course
from grader.types.errors import CourseError, KitError
from grader.types.progress import Progress, StageProgress
from grader.types.report import Status
from grader.types.workspace import Workspace
from tests.kit.support.checkout import ROOT, TINY
from tests.kit.support.files import edit
from tests.kit.support.tiny import copy_tiny


@pytest.fixture
def mine(tmp_path: Path, course: Course, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A learner's folder for that course, which is also the working folder."""
    root = tmp_path / "mine"
    (root / "exercises").mkdir(parents=True)
    mark_workspace(root, course)
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of packages of an environment without any course."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    others = [entry for entry in sys.path if not Path(entry, "grader_courses").exists()]
    monkeypatch.setattr(sys, "path", [str(folder), *others])
    monkeypatch.setattr(module, "_CHECKOUT", tmp_path / "nowhere")
    return folder


def install(site: Path, name: str) -> Course:
    """As if the tiny course were installed under another name."""
    changes = {'name = "smoothing"': f'name = "{name}"'}
    return copy_tiny(site / "grader_courses" / name, changes)


@pytest.mark.parametrize("below", ["", "exercises"])
def test_in_a_workspace(
    mine: Path, course: Course, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    monkeypatch.chdir(mine / below)
    assert locate_workspace(None) == Workspace(mine, course)
    assert locate_course(None) == course
    assert not Workspace(mine, course).is_course


@pytest.mark.parametrize("below", ["", "tests/checks"])
def test_in_a_checkout(course: Course, monkeypatch: pytest.MonkeyPatch, below: str) -> None:
    monkeypatch.chdir(course.root / below)
    found = locate_workspace(None)
    assert found == Workspace(course.root, course)
    assert found.is_course


def test_the_nearest_one_counts(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = course.root / "inner"
    inner.mkdir()
    mark_workspace(inner, course)
    monkeypatch.chdir(inner)
    assert locate_workspace(None).root == inner


def test_anywhere_else_the_course_is_this_checkout_and_there_is_no_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate_course(None).root == ROOT
    assert locate_workspace(ROOT).root == ROOT
    with pytest.raises(KitError, match="this is not a workspace"):
        locate_workspace(None)


def test_anywhere_else_an_installed_course_has_no_workspace(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = install(site, "birds")
    monkeypatch.chdir(tmp_path)
    assert locate_course(None) == course
    for given in (None, Path("birds"), course.root):
        with pytest.raises(KitError, match=r"this is not a workspace: go to yours, or make one"):
            locate_workspace(given)


def test_another_place_of_the_course_for_the_same_workspace(mine: Path) -> None:
    for path in (TINY.root, TINY.root / "course.toml"):
        found = locate_workspace(path)
        assert (found.root, found.course.root) == (mine, TINY.root)


def test_no_other_course_for_a_workspace(
    mine: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = install(site, "birds")
    for given in (ROOT, other.root, Path("birds")):
        with pytest.raises(KitError, match="is a workspace of the course 'smoothing', not of '"):
            locate_workspace(given)
    monkeypatch.setenv("GRADE_COURSE", "birds")
    with pytest.raises(KitError, match="of the course 'smoothing', not of 'birds'"):
        locate_workspace(None)


def test_a_workspace_whose_course_became_another_one(mine: Path, course: Course) -> None:
    file = course.root / "course.toml"
    edit(file, '"smoothing"', '"birds"')
    with pytest.raises(KitError, match="is a workspace of the course 'smoothing', not of 'birds'"):
        locate_course(None)


@pytest.mark.parametrize("name", ["nowhere", "exercises", "exercises/smooth.py"])
def test_what_is_no_course(course: Course, name: str) -> None:
    path = course.root / name
    with pytest.raises(KitError, match=re.escape(f"{path}: is not a course")):
        locate_course(path)


def test_an_installed_course_is_not_bound_to_a_path(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another environment, or the next version, lies elsewhere."""
    mark_workspace(tmp_path, install(site, "birds"))
    mark = json.loads((tmp_path / ".grade" / "workspace.json").read_text(encoding="utf-8"))
    assert mark == {"schema": 1, "course": None, "name": "birds"}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(site.rename(tmp_path / "another")), *sys.path])
    assert locate_course(None).root.parent.parent.name == "another"


def test_each_workspace_has_its_own_of_several_courses(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("birds", "boats"):
        (tmp_path / name).mkdir()
        mark_workspace(tmp_path / name, install(site, name))
    for name in ("birds", "boats"):
        monkeypatch.chdir(tmp_path / name)
        assert locate_course(None).name == locate_workspace(None).course.name == name
    shutil.rmtree(site / "grader_courses" / "boats")
    with pytest.raises(KitError, match="is a workspace of the course 'boats', which is not insta"):
        locate_workspace(None)
    with pytest.raises(KitError, match=r"boats: is neither .* installed course \(installed: birds"):
        locate_course(Path("boats"))


def test_outside_a_workspace_one_of_several_courses_must_be_named(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KitError, match=r"no course\.toml here or above, and no course is"):
        own_course()
    first = install(site, "birds")
    assert own_course() == first
    second = install(site, "boats")
    with pytest.raises(KitError, match=r"2 courses are installed \(birds, boats\): name yours"):
        locate_course(None)
    assert locate_course(Path("boats")) == second
    monkeypatch.setenv("GRADE_COURSE", "birds")
    assert locate_course(None) == first
    (second.root / "course.toml").write_text("schema = 7", encoding="utf-8")
    assert own_course() == first, "a faulty one is not in the way"


DAMAGED = "is damaged: `grade init` in"


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        *((mark, DAMAGED) for mark in ("", "{", "[]", "{}", '{"schema": 1, "name": "a"}')),
        ('{"schema": 1, "course": 3, "name": "a"}', DAMAGED),
        ('{"schema": 1, "course": null}', DAMAGED),
        ('{"schema": 2, "course": null, "name": "a"}', "another version of the kit wrote it"),
        ('{"schema": 1, "course": "/nowhere", "name": "a"}', "/nowhere: is not a course"),
        ('{"schema": 1, "course": null, "name": "a"}', "the course 'a', which is not installed"),
    ],
)
def test_a_mark_that_does_not_help_says_why_and_is_spoilt_if_it_says_nothing(
    mine: Path, mark: str, said: str
) -> None:
    (mine / ".grade" / "workspace.json").write_text(mark, encoding="utf-8")
    assert is_workspace(mine)
    with pytest.raises(KitError, match=re.escape(said)) as caught:
        locate_workspace(None)
    assert "\n" not in str(caught.value)
    assert has_spoilt_mark(mine) is (said == DAMAGED)


def test_a_course_with_a_fault_is_told(mine: Path, course: Course) -> None:
    (course.root / "course.toml").write_text("schema = 7\n", encoding="utf-8")
    with pytest.raises(CourseError, match="'schema' must be 1"):
        locate_workspace(None)


def test_a_folder_that_cannot_be_marked(tmp_path: Path, course: Course) -> None:
    (tmp_path / ".grade").write_text("in the way", encoding="utf-8")
    with pytest.raises(KitError, match="cannot be written"):
        mark_workspace(tmp_path, course)
    assert not is_workspace(tmp_path)


def test_the_current_stage(mine: Path, course: Course) -> None:
    workspace = Workspace(mine, course)
    first, second, third = course.stages

    def slug(progress: Progress) -> str:
        return current_stage(workspace, progress).slug

    assert slug(Progress()) == first.slug  # its file is not there
    workspace.file(first).write_text("x = 1\n", encoding="utf-8")
    assert slug(Progress()) == second.slug
    assert slug(Progress(last_hint=first.slug)) == first.slug
    workspace.file(second).write_text("def f():\n    raise NotImplementedError\n", "utf-8")
    assert slug(Progress()) == second.slug
    passed, failed = StageProgress(status=Status.PASSED), StageProgress(status=Status.FAILED)
    assert slug(Progress({first.slug: failed})) == first.slug
    assert slug(Progress({second.slug: passed})) == third.slug
    assert slug(Progress({stage.slug: passed for stage in course.stages})) == third.slug


def test_a_bonus_stage_that_is_begun_comes_before_others(mine: Path, course: Course) -> None:
    begun, reset = (
        StageProgress(attempts=2, status=s) for s in (Status.FAILED, Status.NOT_STARTED)
    )
    first, second, third = (replace(stage, bonus=True) for stage in course.stages)
    workspace = Workspace(mine, replace(course, stages=(first, second, third)))
    for known, stage in [({third.slug: begun}, third), ({third.slug: reset}, first)]:
        assert current_stage(workspace, Progress(known)) == stage


def test_a_file_of_empty_lines_is_looked_through_at_once(mine: Path, course: Course) -> None:
    workspace = Workspace(mine, course)
    workspace.file(course.stages[0]).write_text("\n" * 200_000, encoding="utf-8")
    start = time.monotonic()
    assert current_stage(workspace, Progress()) is course.stages[1]
    assert time.monotonic() - start < 5


def test_a_changed_stage_is_left_behind_if_it_has_passed_once(mine: Path, course: Course) -> None:
    workspace, (first, second, _) = Workspace(mine, course), course.stages
    workspace.file(first).write_text("x = 1\n", encoding="utf-8")
    tried = StageProgress(attempts=1, judged="of another text")
    for known, stage in [(tried, first), (replace(tried, passed="2026-01-01"), second)]:
        assert current_stage(workspace, Progress({first.slug: known})) == stage
