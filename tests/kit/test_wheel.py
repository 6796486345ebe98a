"""The course as a learner installs it: a wheel in an environment far from a checkout."""

import importlib.metadata as metadata
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.support.checkout import COURSE, ROOT
from tests.kit.support.environment import environment, install, wheel_of
from tests.kit.support.environment import grade as type_in

NAME = "course-grader"
INSIDE = "grader_courses/multi_head_attention/"
Grade = Callable[..., str]

pytestmark = pytest.mark.slow
pytest.importorskip("hatchling", reason="the wheel is built with hatchling")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel_of(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site-packages of an environment with the wheel."""
    needs = [line for line in metadata.requires(NAME) or () if "extra ==" not in line]
    site = environment(tmp_path_factory.mktemp("environment"), needs)
    install(site, wheel)
    return site


@pytest.fixture
def grade(site: Path, tmp_path: Path) -> Grade:
    """Types in a new workspace."""
    assert f"cd {COURSE.name}" in type_in(site, tmp_path, "init")
    return lambda *words, code=0: type_in(site, tmp_path / COURSE.name, *words, code=code)


@pytest.fixture
def exercises(grade: Grade, tmp_path: Path) -> Path:
    return tmp_path / COURSE.name / "exercises"


def test_the_wheel_holds_the_engine_and_the_course_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"grader", "grader_courses"}
    inside = {name.removeprefix(INSIDE) for name in names if name.startswith(INSIDE)}
    assert {name.split("/")[0] for name in inside} == {
        *("course.toml", "exercises", "hints", "LICENSE", "solutions", "tests")
    }
    tests = {name.split("/")[1] for name in inside if name.startswith("tests/")}
    assert tests == {"checks", "accepted", "mutants"}
    for stage in COURSE.stages:
        files = (stage.solution_file, stage.exercise_file, stage.check_file, stage.hints_file)
        for file in (*files, stage.misconceptions_file):
            assert file.relative_to(ROOT).as_posix() in inside
    assert not [name for name in names if "__pycache__" in name]


def test_outside_a_workspace(site: Path, tmp_path: Path) -> None:
    assert "usage: grade" in type_in(site, tmp_path, "--help")
    assert COURSE.title in type_in(site, tmp_path, "list")
    assert "make one here with `grade init`" in type_in(site, tmp_path, code=2)
    assert list(tmp_path.iterdir()) == []


def test_from_the_first_look_to_the_last_point(site: Path, grade: Grade, exercises: Path) -> None:
    first = COURSE.stages[0]
    file = exercises / first.file_name
    stub = file.read_bytes()
    assert "Welcome!" in grade(code=1)
    assert "hint 1 of" in grade("hint")
    assert "is unchanged: it is still the stub" in grade("diff")
    assert "when the stage passes" in grade("solution", first.slug, code=2)
    for stage in COURSE.stages[:6]:
        solution = site / INSIDE / "solutions" / stage.file_name
        shutil.copyfile(solution, exercises / stage.file_name)
    assert "100 of 100" in " ".join(grade().split())
    assert "### BEGIN SOLUTION" in grade("diff", first.slug)
    assert "Why it is written this way" in grade("solution", first.slug)
    assert "Your version is in .grade/replaced/" in " ".join(grade("reset", first.slug).split())
    assert file.read_bytes() == stub
    assert f"All {len(COURSE.stages)} files are up to date." in grade("update")
    assert "nothing is missing" in grade("init").lower()
    assert "ok concat_heads" in " ".join(grade("verify", "concat_heads").split())


PROBE = """
import os

def reach(path):
    try:
        return open(path).readline().strip()
    except OSError as error:
        return type(error).__name__

def split_heads(x, num_heads):
    raise ValueError("; ".join(reach(path) for path in PATHS))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux locks the worker")
def test_a_worker_cannot_read_the_course(site: Path, grade: Grade, exercises: Path) -> None:
    course = site / INSIDE
    hidden = [course / "solutions" / "split_heads.py", course / "tests/checks/test_split_heads.py"]
    hidden += [course / "hints/misconceptions/split_heads.py", course / "course.toml"]
    paths = [str(path) for path in [*hidden, site / "typing_extensions.py"]]
    probe = f"PATHS = {paths}\n{PROBE}"
    (exercises / "split_heads.py").write_text(probe, encoding="utf-8")
    said = " ".join(grade("split_heads", code=1).split())
    assert "PermissionError; " * 4 + "import abc" in said  # the last may be read: the probe looks


def test_installed_in_place_the_checkout_is_used(tmp_path: Path) -> None:
    build = f"from hatchling.build import build_editable; build_editable({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True, capture_output=True)
    (file,) = tmp_path.iterdir()
    with zipfile.ZipFile(file) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        (pointer,) = (name for name in names if name.endswith(".pth"))
        assert archive.read(pointer).decode().split() == [str(ROOT)]
    assert names == {pointer, f"{INSIDE}course.toml", f"{INSIDE}LICENSE"}


def test_a_students_copy_can_be_made_without_a_checkout(site: Path, tmp_path: Path) -> None:
    visible = sum(len(stage.visible) for stage in COURSE.stages)
    said = type_in(site, tmp_path, "release", "student", "--out", "a.zip")
    assert f"{visible} visible checks" in " ".join(said.split())
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        project = archive.read(f"{COURSE.name}-student/pyproject.toml").decode()
    assert f'name = "{COURSE.name}"' in project and f'"{NAME}>=' in project
