"""Two versions are equal where nothing that a verdict depends on has changed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from grader.classes.folder.versions import content_of, read_version
from grader.read.course_file import read_course
from grader.types.submission import Submission
from tests.kit.support.files import edit
from tests.kit.support.tiny import copy_tiny


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return copy_tiny(tmp_path / "course").root


def changed(root: Path, change: Callable[[Path], object]) -> set[str]:
    """The stages whose version a change makes another."""
    before = read_version(read_course(root / "course.toml"))
    change(root)
    after = read_version(read_course(root / "course.toml"))
    assert before.engine == after.engine
    return {slug for slug in before.stages if before.stages[slug] != after.stages[slug]}


def append(name: str) -> Callable[[Path], object]:
    def change(root: Path) -> None:
        with open(root / name, "a", encoding="utf-8") as file:
            file.write("\n# more\n")

    return change


def put(old: str, new: str) -> Callable[[Path], object]:
    return lambda root: edit(root / "course.toml", old, new)


EVERY = {"moving_average", "smooth", "roughness"}


@pytest.mark.parametrize(
    ("change", "stages"),
    [
        (append("tests/checks/test_smooth.py"), {"smooth"}),
        (append("tests/checks/test_moving_average.py"), {"moving_average", "smooth"}),
        (append("hints/misconceptions/roughness.py"), {"roughness"}),
        (append("solutions/moving_average.py"), {"moving_average", "smooth"}),
        (append("tests/checks/helpers.py"), EVERY),
        (append("hints/misconceptions/_shared.py"), EVERY),
        (put("points = 2", "points = 3"), {"roughness"}),
        (put("call_seconds = 2", "call_seconds = 3"), EVERY),
        (put("preload =", "follow_through = true\npreload ="), EVERY),
        (put('"Measure the jumps"', '"Jumps"'), set()),
        (append("hints/smooth.md"), set()),
        (append("exercises/smooth.py"), set()),
    ],
)
def test_a_change_counts_for_the_stages_whose_verdict_it_may_change(
    root: Path, change: Callable[[Path], object], stages: set[str]
) -> None:
    assert changed(root, change) == stages


def test_answers_are_the_same_whatever_their_name_is() -> None:
    files = {"a.py": b"1", "b.py": b"2"}
    one, other = Submission("ann", files), Submission("bob", dict(reversed(files.items())))
    assert content_of(one) == content_of(other)


def test_a_digest_is_whole(root: Path) -> None:
    """Of 64 bits two answers with one digest were found in minutes."""
    version = read_version(read_course(root / "course.toml"))
    digests = [content_of(Submission("a", {"a.py": b"x = 1"})), version.engine]
    assert {len(digest) for digest in (*digests, *version.stages.values())} == {64}


def test_different_answers_differ() -> None:
    every = [
        Submission("x", {}),
        Submission("x", {"a.py": b"1"}),
        Submission("x", {"a.py": b"1"}, script="a.py"),
        Submission("x", {"a.py": b"1", "b.py": b""}),
        Submission("x", {"a.pyb.py": b"1"}),
        Submission("x", {}, cells=()),
        Submission("x", {}, cells=("1",)),
        Submission("x", {}, cells=("1", "")),
        Submission("x", {}, cells=("\ud800",)),
    ]
    assert len({content_of(one) for one in every}) == len(every)
