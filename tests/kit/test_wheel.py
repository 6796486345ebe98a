"""The course as a learner installs it: a wheel in an environment far from a checkout."""

from __future__ import annotations

import importlib.metadata as metadata
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from grader.read.course_file import read_course

ROOT = Path(__file__).parents[2]
COURSE = read_course(ROOT / "course.toml")
NAME = "attention-course-kit"
Grade = Callable[..., str]

pytestmark = pytest.mark.slow
pytest.importorskip("hatchling", reason="the wheel is built with hatchling")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (file,) = folder.iterdir()
    return file


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site-packages of an environment with the wheel and the libraries of this one.

    They are linked file by file: a worker may read its own environment's site-packages alone.
    """
    root = tmp_path_factory.mktemp("environment")
    venv.create(root, symlinks=os.name != "nt")
    (site,) = root.rglob("site-packages")
    for name in needed(NAME):
        for file in metadata.distribution(name).files or ():
            source, target = Path(str(file.locate())), site / file
            if file.parts[0] != ".." and source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                link(source, target)
    install = ["-m", "pip", "--python", str(python(site)), "install", "--quiet", "--no-deps"]
    command = [sys.executable, *install, "--no-index", "--no-compile", str(wheel)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PIP_USER": "0"})
    return site


def needed(name: str) -> Iterator[str]:
    """The distributions that one needs to run, directly or not, without itself."""
    found, waiting = {name}, [name]
    while waiting:
        for line in metadata.requires(waiting.pop()) or ():
            needs = Requirement(line)
            if needs.name in found or (needs.marker and not needs.marker.evaluate({"extra": ""})):
                continue
            found.add(needs.name)
            waiting.append(needs.name)
            yield needs.name


def link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileExistsError:  # two distributions may list one file
        pass
    except OSError:  # another disk
        shutil.copy2(source, target)


def python(site: Path) -> Path:
    found = (site.parents[1] / "Scripts/python.exe", site.parents[2] / "bin/python")
    return next(file for file in found if file.exists())


def type_(site: Path, folder: Path, *words: str, code: int = 0) -> str:
    """Type `grade ...` in `folder` with nothing around that leads to the checkout."""
    unwanted = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONSTARTUP")
    environment = {key: value for key, value in os.environ.items() if key not in unwanted}
    command = python(site).with_name("grade.exe" if os.name == "nt" else "grade")
    run = subprocess.run(
        [command, *words],
        cwd=folder,
        env={**environment, "COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert run.returncode == code, run.stdout + run.stderr
    assert "Traceback" not in run.stderr
    assert str(ROOT) not in run.stdout + run.stderr
    return run.stdout if code != 2 else run.stderr


@pytest.fixture
def grade(site: Path, tmp_path: Path) -> Grade:
    """Types in a new workspace."""
    assert f"cd {COURSE.name}" in type_(site, tmp_path, "init")
    return lambda *words, code=0: type_(site, tmp_path / COURSE.name, *words, code=code)


@pytest.fixture
def exercises(grade: Grade, tmp_path: Path) -> Path:
    return tmp_path / COURSE.name / "exercises"


def test_the_wheel_holds_the_engine_and_the_course_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"grader", "grader_course"}
    inside = {name.removeprefix("grader_course/") for name in names if "_course/" in name}
    assert {name.split("/")[0] for name in inside} == {
        *("course.toml", "exercises", "hints", "kit", "solutions", "tests"),
    }
    tests = {name.split("/")[1] for name in inside if name.startswith("tests/")}
    assert tests == {"checks", "accepted", "mutants"}
    for stage in COURSE.stages:
        files = (stage.solution_file, stage.exercise_file, stage.check_file, stage.hints_file)
        for file in (*files, stage.misconceptions_file):
            assert file.relative_to(ROOT).as_posix() in inside
    assert not [name for name in names if "__pycache__" in name]


def test_outside_a_workspace(site: Path, tmp_path: Path) -> None:
    assert "usage: grade" in type_(site, tmp_path, "--help")
    assert COURSE.title in type_(site, tmp_path, "list")
    assert "make one here with `grade init`" in type_(site, tmp_path, code=2)
    assert list(tmp_path.iterdir()) == []


def test_from_the_first_look_to_the_last_point(
    site: Path, grade: Grade, exercises: Path, tmp_path: Path
) -> None:
    first = COURSE.stages[0]
    file = exercises / first.file_name
    stub = file.read_bytes()
    assert "Welcome!" in grade(code=1)
    assert "hint 1 of" in grade("hint")
    assert "is unchanged: it is still the stub" in grade("diff")
    assert "opens when you pass" in grade("solution", first.slug, code=2)
    for stage in COURSE.stages:
        solution = site / "grader_course" / "solutions" / stage.file_name
        shutil.copyfile(solution, exercises / stage.file_name)
    assert "100 of 100" in " ".join(grade().split())
    assert "### BEGIN SOLUTION" in grade("diff", first.slug)
    assert "Why it is written so" in grade("solution", first.slug)
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
    course = site / "grader_course"
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
    kit = {f"grader_course/kit/{name}" for name in ("LICENSE", "constraints.txt", "pyproject.toml")}
    assert names == {pointer, "grader_course/course.toml", *kit}


def test_a_students_copy_can_be_made_without_a_checkout(site: Path, tmp_path: Path) -> None:
    visible = sum(len(stage.visible) for stage in COURSE.stages)
    said = type_(site, tmp_path, "release", "student", "--out", "a.zip")
    assert f"{visible} visible checks" in " ".join(said.split())
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        project = archive.read(f"{COURSE.name}-student/pyproject.toml").decode()
    assert f'name = "{NAME}"' in project and "[tool.ruff]" not in project
