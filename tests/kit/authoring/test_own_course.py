"""A course of one's own, from an empty folder and the kit's wheel to a graded class.

Nothing of it leads to this repository or names what its own course is about: the author writes what
courses/tiny holds, file by file, into what `grade new` has begun.
"""

import shutil
from pathlib import Path

import pytest

from grader.channels.project import kit_project
from grader.classes.folder.course_files import read_engine_files
from tests.kit.classes.test_grading import scores
from tests.kit.support.checkout import TINY
from tests.kit.support.environment import KITS_NEEDS, environment, grade, install, run, wheel_of
from tests.kit.support.files import write_files

pytest.importorskip("hatchling", reason="packages are built with hatchling")
pytest.importorskip("nbgrader", reason="nbgrader is not installed")

NAME = "curves"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kit's wheel, without any course."""
    folder = tmp_path_factory.mktemp("kit")
    write_files(folder, kit_project(dict(read_engine_files())))
    return wheel_of(folder / "kit", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The author's environment, which is also the instructor's."""
    needs = [*KITS_NEEDS, "hatchling", "nbgrader"]
    site = environment(tmp_path_factory.mktemp("environment"), needs)
    install(site, wheel)
    return site


def written_by_hand(root: Path) -> None:
    """What the author writes into the files that `grade new` has begun."""
    for folder in ("solutions", "hints", "tests"):
        shutil.rmtree(root / folder)
        left_out = shutil.ignore_patterns("__pycache__", ".grade", "traces", "explore")
        shutil.copytree(TINY.root / folder, root / folder, ignore=left_out)
    file, tables = root / "course.toml", (TINY.root / "course.toml").read_text(encoding="utf-8")
    head = file.read_text(encoding="utf-8").partition("[[stages]]")[0]
    head = head.replace("authors = []", 'authors = ["Ada"]')
    file.write_text(head + tables[tables.index("[[stages]]") :], encoding="utf-8")


@pytest.fixture(scope="module")
def course(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The author's folder: three stages, begun by commands and proven."""
    here = tmp_path_factory.mktemp("empty")
    new = ["new", "--course", NAME, "--title", "Smooth a curve", "--library", "numpy"]
    grade(site, here, *new, "--first", "moving_average")
    root = here / NAME
    grade(site, root, "new", "smooth", "--title", "Average again")
    grade(site, root, "new", "roughness", "--title", "Measure the jumps", "--bonus")
    assert "TODO" in grade(site, root, "verify", code=1)
    written_by_hand(root)
    grade(site, root, "stubs", "--force")
    assert "The course is proven." in grade(site, root, "verify")
    return root


def words(text: str) -> str:
    return " ".join(text.split())


def names_attention(folder: Path) -> list[Path]:
    """The files below a folder that name what this repository's own course is about."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file for file in files if b"attention" in file.read_bytes().lower()]


@pytest.mark.slow
def test_what_the_author_and_the_channels_get(site: Path, course: Path, tmp_path: Path) -> None:
    assert names_attention(course) == []
    assert "10 / 10" in words(grade(site, course, "--submission", "solutions"))
    assert "average_sum" in grade(site, course, "preview", "moving_average")
    for typed in (
        ["notebook", str(tmp_path / "curves.ipynb")],
        ["release", "student", "--out", str(tmp_path / "student.zip")],
        ["release", "gradescope", "--out", str(tmp_path / "gradescope.zip")],
        ["release", "nbgrader", "--course-dir", str(tmp_path / "nb")],
    ):
        grade(site, course, *typed)
    assert names_attention(tmp_path) == []


@pytest.mark.slow
def test_a_class_of_ten_is_graded_with_it(site: Path, course: Path, tmp_path: Path) -> None:
    root = tmp_path / "class"
    grade(site, course, "release", "nbgrader", "--course-dir", str(root))
    run(site, root, "nbgrader", "generate_assignment", NAME)
    solved = (root / "source" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8")
    stubs = (root / "release" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8")
    adds_up = solved.replace("window.mean()", "window.sum()")
    broken = solved.replace("def moving_average(", "def moving_average")
    assert len({solved, stubs, adds_up, broken}) == 4
    expected = {"ann": 10, "bob": 10, "cas": 10, "dan": 10, "eve": 10}
    students = dict.fromkeys(expected, solved)
    students |= {"fay": adds_up, "gus": adds_up, "hal": stubs, "ivy": stubs, "joe": broken}
    for student, notebook in students.items():
        write_files(root / "submitted" / student / NAME, {f"{NAME}.ipynb": notebook})
    said = grade(site, root, "class", "--course", str(course), "--nbgrader", ".", NAME)
    assert "curves: 10 submissions graded" in said
    expected |= {"fay": 3, "gus": 3, "hal": 0, "ivy": 0, "joe": 0}
    assert scores(root) == expected
    assert names_attention(root) == []
