"""Courses as packages: the examples, proven where pip has installed them, one beside the other."""

import importlib.metadata as metadata
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.channels.project import package_folder
from grader.channels.student_copy import student_files
from grader.read.course_file import read_course
from grader.types.course import Course
from tests.kit.classes.folder_class import results_of
from tests.kit.support.checkout import COURSE, ROOT, TINY, run_python
from tests.kit.support.environment import KITS_NEEDS, environment, grade, install, python, wheel_of
from tests.kit.support.files import edit, write_files

pytest.importorskip("hatchling", reason="packages are built with hatchling")

TOKENS = read_course(ROOT / "examples" / "byte_pair_encoding" / "course.toml")
BLOCK = read_course(ROOT / "examples" / "transformer_block" / "course.toml")


def files_of(course: Course, dist: Path, kind: str) -> list[Path]:
    return [file for file in dist.glob(f"{package_folder(course)}-*") if file.name.endswith(kind)]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of both examples, as their author makes them, and the kit's."""
    folder = tmp_path_factory.mktemp("dist")
    for course in (TOKENS, BLOCK):
        words = ("-m", "grader", "package", "--course", course.root, "--out", folder)
        done = run_python(*words)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def plain(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the course of plain Python, and no library but what the kit needs."""
    site = environment(tmp_path_factory.mktemp("plain"), KITS_NEEDS)
    install(site, *dist.glob("course_grader-*.whl"), *files_of(TOKENS, dist, ".whl"))
    return site


@pytest.fixture(scope="module")
def several(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with this kit's own course and both examples, one of them from its sdist."""
    needs = [line for line in metadata.requires("course-grader") or () if "extra ==" not in line]
    site = environment(tmp_path_factory.mktemp("several"), [*needs, "hatchling"])
    own = wheel_of(ROOT, tmp_path_factory.mktemp("wheel"))
    install(site, own, *files_of(BLOCK, dist, ".whl"), *files_of(TOKENS, dist, ".tar.gz"))
    return site


def workspace(site: Path, folder: Path, course: Course) -> Path:
    """A new workspace of an installed course."""
    assert f"cd {course.name}" in grade(site, folder, "init", "--course", course.name)
    return folder / course.name


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.slow
def test_a_course_of_plain_python_is_learnt_and_proven_where_there_is_no_torch(
    plain: Path, tmp_path: Path
) -> None:
    assert not [name for name in ("torch", "matplotlib") if (plain / name).exists()]
    assert "cd byte-pair-encoding" in grade(plain, tmp_path, "init")  # the only course there
    mine = tmp_path / TOKENS.name
    assert "Welcome!" in grade(plain, mine, code=1)
    assert "hint 1 of" in grade(plain, mine, "hint")
    for stage in TOKENS.stages:
        assert (mine / "exercises" / stage.file_name).read_text("utf-8") == (
            stage.exercise_file.read_text("utf-8")
        )
        shutil.copy(stage.solution_file, mine / "exercises")
    assert "100 / 100" in words(grade(plain, mine))
    assert "The course is proven." in grade(plain, tmp_path, "verify")
    assert not [*plain.glob("grader_courses/*/.grade")]


@pytest.mark.slow
def test_an_installed_course_is_released_and_a_class_graded_with_it(
    plain: Path, tmp_path: Path
) -> None:
    for channel in ("nbgrader", "student", "gradescope", "github"):
        assert "not proven" not in grade(plain, tmp_path, "release", channel)
    workflow = (tmp_path / "byte-pair-encoding-github" / ".github" / "workflows").glob("*.yml")
    assert "torch" not in next(workflow).read_text(encoding="utf-8")
    for student in ("ada", "bob"):
        shutil.copytree(TOKENS.root / "solutions", tmp_path / "class" / student)
    wrong = tmp_path / "class" / "bob" / "decode.py"
    edit(wrong, "left] + ", "right] + ")
    said = words(grade(plain, tmp_path, "class", "class", "--out", "results"))
    assert "2 submissions graded" in said
    found = results_of(tmp_path / "results")
    assert found["ada"]["report"]["score"] == 100
    assert 80 <= found["bob"]["report"]["score"] < 100


@pytest.mark.slow
def test_the_course_that_builds_on_attention_is_proven(several: Path, tmp_path: Path) -> None:
    said = grade(several, tmp_path, "verify", "--course", BLOCK.name)
    assert "The course is proven." in said


@pytest.mark.slow
def test_each_folder_has_its_own_course_and_no_command_acts_for_another(
    several: Path, tmp_path: Path
) -> None:
    names = ", ".join(sorted(course.name for course in (COURSE, TOKENS, BLOCK)))
    for typed in (["list"], ["init"], ["notebook"]):
        said = grade(several, tmp_path, *typed, code=2)
        assert f"3 courses are installed ({names}): name yours" in said
    for course in (COURSE, TOKENS, BLOCK):
        folder = workspace(several, tmp_path, course)
        files = sorted(path.name for path in (folder / "exercises").iterdir())
        assert files == sorted(stage.file_name for stage in course.stages)
        assert course.title in grade(several, folder, "list")
        assert f"All {len(files)} files are up to date." in grade(several, folder, "update")
        assert "Nothing is missing" in grade(several, folder, "init")
    mine, other = tmp_path / TOKENS.name, ("--course", COURSE.name)
    before = sorted(mine.rglob("*"))
    for typed in (["update"], ["init"], ["hint"], [], ["init", str(mine)]):
        said = grade(several, mine, *typed, *other, code=2)
        assert f"is a workspace of the course '{TOKENS.name}', not of '{COURSE.name}'" in said
    assert sorted(mine.rglob("*")) == before


@pytest.mark.slow
def test_a_course_that_is_gone_is_named_and_the_others_stay(several: Path, tmp_path: Path) -> None:
    tokens, block = (workspace(several, tmp_path, course) for course in (TOKENS, BLOCK))
    kept = several / "grader_courses" / package_folder(TOKENS)
    kept.rename(tmp_path / "elsewhere")
    try:
        said = grade(several, tokens, "list", code=2)
        assert f"of the course '{TOKENS.name}', which is not installed: activate" in said
        assert BLOCK.title in grade(several, block, "list")
    finally:
        (tmp_path / "elsewhere").rename(kept)


@pytest.mark.slow
def test_the_students_copies_of_two_courses_are_installed_side_by_side(tmp_path: Path) -> None:
    site = environment(tmp_path / "environment", [*KITS_NEEDS, "hatchling"])
    for course in (TOKENS, TINY):
        write_files(tmp_path / f"unzipped {course.name}", student_files(course))
        install(site, *(tmp_path / f"unzipped {course.name}" / name for name in ("kit", ".")))
    for course in (TOKENS, TINY):
        shutil.rmtree(tmp_path / f"unzipped {course.name}")
        mine = workspace(site, tmp_path, course)
        assert course.title in grade(site, mine, "list")
        assert f"All {len(course.stages)} files are up to date." in grade(site, mine, "update")
        assert "has no solutions" in grade(site, mine, "solution", course.stages[0].slug, code=2)
        said = grade(site, mine, "verify", code=2)
        assert "a student's copy of the course has no `grade verify`" in said


PROBE = """
def count_pairs(ids):
    said = []
    for path in {paths}:
        try:
            said.append(open(path).readline())
        except OSError as error:
            said.append(type(error).__name__)
    raise ValueError("; ".join(said))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux locks the worker")
def test_a_worker_reads_no_file_of_any_course(several: Path, tmp_path: Path) -> None:
    mine = workspace(several, tmp_path, TOKENS)
    paths = [
        str(several / "grader_courses" / package_folder(course) / "solutions" / stage.file_name)
        for course in (COURSE, TOKENS, BLOCK)
        for stage in course.stages[:1]
    ]
    paths += map(str, several.glob("byte_pair_encoding-*.dist-info/RECORD"))
    assert len(paths) == 4 and all(Path(path).is_file() for path in paths)
    file = mine / "exercises" / "count_pairs.py"
    file.write_text(PROBE.format(paths=paths), encoding="utf-8")
    said = words(grade(several, mine, "count_pairs", code=1))
    assert "PermissionError; " * 3 + "PermissionError" in said


JOINED = """
import torch
from multi_head_attention import MultiHeadAttention
from transformer_block import TransformerBlock

block = TransformerBlock(MultiHeadAttention(8, 2), d_model=8, d_ff=32)
x = torch.randn(2, 5, 8)
seen = block(x, torch.ones(5, 5).tril().bool())
last = x.clone()
last[:, -1] = 0
assert torch.equal(block(last, torch.ones(5, 5).tril().bool())[:, :-1], seen[:, :-1])
assert not torch.equal(block(x), seen)
"""


@pytest.mark.slow
def test_the_block_takes_the_attention_of_this_kits_course(several: Path) -> None:
    folders = [str(course.root / "solutions") for course in (COURSE, BLOCK)]
    program = f"import sys; sys.path[:0] = {folders}\n{JOINED}"
    done = subprocess.run([python(several), "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
