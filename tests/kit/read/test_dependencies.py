"""A verdict is on the present text as long as nothing that it depends on has changed."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from grader.read import dependencies as module
from grader.read.course_file import read_course
from grader.read.dependencies import course_digest, text_digests
from grader.read.progress import recall_present, remember_results
from grader.run.solutions import solution_files
from grader.types.report import StageResult, Status
from grader.types.submission import Submission
from grader.types.workspace import Workspace
from tests.kit.support.checkout import TINY
from tests.kit.support.files import write_files
from tests.kit.support.tiny import copy_tiny

STARTS = solution_files(TINY)
ALL = {"moving_average", "smooth", "roughness"}


def changed(before: dict[str, bytes], after: dict[str, bytes]) -> set[str]:
    """The stages whose digest is another."""
    old, new = (text_digests(TINY, Submission("x", files), "c") for files in (before, after))
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in (*old.values(), *new.values()))
    return {slug for slug in old if old[slug] != new[slug]}


@pytest.mark.parametrize(
    ("file", "stages"),
    [
        ("moving_average.py", {"moving_average", "smooth"}),
        ("smooth.py", {"smooth"}),
        ("roughness.py", {"roughness"}),
        ("helper.py", ALL),
        ("random.py", ALL),
        ("tools/deep/helper.py", ALL),
        ("smooth/__init__.py", ALL),
    ],
)
def test_a_stage_depends_on_its_file_those_it_requires_and_helpers(
    file: str, stages: set[str]
) -> None:
    assert changed(STARTS, {**STARTS, file: b"x = 1\n"}) == stages
    assert changed({**STARTS, file: b"x = 1\n"}, {**STARTS, file: b"x = 2\n"}) == stages


@pytest.mark.parametrize("name", STARTS)
def test_a_deleted_file_and_an_empty_one_are_two_things(name: str) -> None:
    without = {file: data for file, data in STARTS.items() if file != name}
    assert name.removesuffix(".py") in changed(STARTS, without)
    assert name.removesuffix(".py") in changed(without, {**without, name: b""})


def test_a_renamed_file_is_another_text() -> None:
    one, other = {**STARTS, "a.py": b"x = 1"}, {**STARTS, "b.py": b"x = 1"}
    assert changed(one, other) == ALL


@pytest.mark.parametrize(
    "line",
    [
        "from roughness import roughness",
        "import numpy, roughness as r",
        "x = 1; import roughness",
        "if True: from roughness import *",
        "from \\\n    roughness import roughness",
        "from \\\r\n    roughness import roughness",
        "x = 1\rimport roughness",
        "r = __import__('rough' + 'ness')",
        "from importlib import import_module as get; r = get('rough' + 'ness')",
        "import sys; r = sys.modules['rough' + 'ness']",
        "exec('imp' + 'ort rough' + 'ness')",
        "eval('__imp' + 'ort__')('rough' + 'ness')",
        "r = patch('roughness.roughness')",
        'r = resolve("roughness")',
        "import \uff52oughness",
        "# coding: rot13\nvzcbeg ebhtuarff",
        "# first\n# vim: set fileencoding=utf-7 :",
    ],
)
def test_what_a_file_may_import_counts(line: str) -> None:
    before = {**STARTS, "smooth.py": line.encode()}
    assert changed(before, {**before, "roughness.py": b"x = 2"}) == {"smooth", "roughness"}
    by_way = {**STARTS, "smooth.py": b"import helper", "helper.py": line.encode()}
    assert changed(by_way, {**by_way, "roughness.py": b"x = 2"}) == ALL


def test_words_in_prose_do_not_count() -> None:
    prose = b'"""The roughness of a curve; roughness is told by `roughness`."""\nmodel.eval()\n'
    before = {**STARTS, "smooth.py": prose}
    assert changed(before, {**before, "roughness.py": b"x = 2"}) == {"roughness"}


def test_stages_that_import_one_another_end() -> None:
    ring = {"smooth.py": b"import roughness", "roughness.py": b"import smooth"}
    assert changed(ring, {**ring, "smooth.py": b"import roughness #"}) == {"smooth", "roughness"}


@pytest.fixture
def mine(tmp_path: Path) -> Workspace:
    """A course of one's own, of which every stage has passed."""
    course = copy_tiny(tmp_path / "course")
    workspace = Workspace(course.root, course)
    submission = Submission("x", STARTS)
    write_files(workspace.exercises, STARTS)
    results = [
        StageResult(s.slug, s.title, Status.PASSED, s.points, s.points, s.bonus, ())
        for s in course.stages
    ]
    texts = text_digests(course, submission, course_digest(course))
    remember_results(workspace.root, results, submission, texts)
    return workspace


def known(workspace: Workspace) -> set[str]:
    """The stages of which there is a verdict on the present text."""
    stages = recall_present(workspace).progress.stages
    assert all(stage.score > 0 for stage in stages.values() if stage.status)
    assert all(stage.score == 0 and stage.best > 0 for stage in stages.values() if not stage.status)
    return {slug for slug, stage in stages.items() if stage.status is Status.PASSED}


def test_what_has_not_changed_is_known(mine: Workspace) -> None:
    assert known(mine) == ALL
    for file in mine.exercises.iterdir():
        file.touch()
    (mine.exercises / "notes.txt").write_text("not Python")
    (mine.exercises / "__pycache__").mkdir()
    (mine.root / "hints" / "smooth.md").write_text("# Another hint")
    assert known(mine) == ALL


def test_it_may_lie_in_another_folder(mine: Workspace) -> None:
    there = mine.root.with_name("elsewhere")
    mine.root.rename(there)
    course = read_course(there / "course.toml")
    assert known(Workspace(there, course)) == ALL


@pytest.mark.parametrize(
    "file",
    [
        "course.toml",
        "solutions/smooth.py",
        "tests/checks/test_smooth.py",
        "tests/checks/shared.py",
        "tests/checks/data/numbers.csv",
        "hints/misconceptions/smooth.py",
    ],
)
def test_after_a_change_of_the_course_nothing_is_known(mine: Workspace, file: str) -> None:
    place = mine.root / file
    place.parent.mkdir(exist_ok=True)
    with open(place, "ab") as changed_file:
        changed_file.write(b"\n# more\n")
    assert known(mine) == set()


def test_of_another_version_of_the_kit_nothing_is_known(
    mine: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "__version__", "999")
    module.kit_digest.cache_clear()
    try:
        assert known(mine) == set()
    finally:
        module.kit_digest.cache_clear()


def test_where_the_folder_cannot_be_read_nothing_is_known(mine: Workspace) -> None:
    shutil.rmtree(mine.exercises)
    assert known(mine) == set()
    assert recall_present(mine).note == ""


def test_another_course_has_other_digests() -> None:
    submission = Submission("x", STARTS)
    fewer = replace(TINY, stages=TINY.stages[:2])
    assert text_digests(fewer, submission, "c").keys() == {"moving_average", "smooth"}
    one, other = (text_digests(TINY, submission, of) for of in ("c", "d"))
    assert all(one[slug] != other[slug] for slug in one)
