"""A student's copy as students meet it: unzipped or installed, graded, with words that fit."""

import io
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.channels.student_copy import student_files, zipped
from grader.command.main import main
from grader.engine import Engine, Request, with_engine
from grader.read.course_file import read_course
from grader.read.stubs import read_stub
from grader.read.workspace import locate_workspace
from grader.run.solutions import solution_files
from grader.types.course import Course
from grader.types.report import Report, Status, to_json
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE, ROOT, run_python
from tests.kit.support.files import edit, write_files
from tests.kit.support.tiny import Capture, copy_tiny, forget_checks

pytestmark = pytest.mark.usefixtures("checks_apart")

# The bonus stage has no visible check.
VISIBLE = {"moving_average": '["length", "refusal"]', "smooth": '["once_is_the_default"]'}
# What nobody may say who has seen the visible checks alone.
TOO_MUCH = re.compile(r"\bpassed\b|\bpasses\b|[Aa]ll \d|\bdone\b|Well|[Ee]very stage passes")
MORE = "more checks run on submission"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The tiny course with some checks visible."""
    changes = {
        f'slug = "{slug}"\n': f'slug = "{slug}"\nvisible = {names}\n'
        for slug, names in VISIBLE.items()
    }
    return copy_tiny(tmp_path_factory.mktemp("whole") / "tiny", changes)


@pytest.fixture(scope="module")
def archive(whole: Course) -> bytes:
    return zipped(student_files(whole), "copy")


@pytest.fixture
def copy(archive: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an unzipped copy; it is also the working folder."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    zipfile.ZipFile(io.BytesIO(archive)).extractall(tmp_path)
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


def answers(whole: Course, **others: str) -> dict[str, bytes]:
    return solution_files(whole) | {f"{slug}.py": text.encode() for slug, text in others.items()}


# --- the engine --------------------------------------------------------------------------------

ADDS_UP = """
import numpy as np

def moving_average(values, width):
    if not 1 <= width <= len(values):
        raise ValueError("does not fit")
    return np.array([sum(values[i:i + width]) for i in range(len(values) - width + 1)])
"""


@pytest.fixture(scope="module")
def reports(
    whole: Course, archive: bytes, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Report]:
    folder = tmp_path_factory.mktemp("copy")
    zipfile.ZipFile(io.BytesIO(archive)).extractall(folder)
    course = read_course(folder / "copy" / "course.toml")
    stubs = {stage.file_name: read_stub(stage).encode() for stage in course.stages}
    handed_in = {
        "right": answers(whole),
        "stubs": stubs,
        "begun": {**stubs, "moving_average.py": answers(whole)["moving_average.py"]},
        "adds up": answers(whole, moving_average=ADDS_UP),
        "no refusal": answers(whole, moving_average=ADDS_UP.replace("raise", "0 #")),
        "first unwritten": {**answers(whole), "moving_average.py": stubs["moving_average.py"]},
        "syntax": answers(whole, roughness="def roughness(values:\n    raise NotImplementedError"),
    }

    forget_checks()

    def body(engine: Engine) -> dict[str, Report]:
        return {
            name: engine.grade(Request(Submission(name, files), course.stages, 3))
            for name, files in handed_in.items()
        }

    return with_engine(course, course.stages, "cpu", body)


def standings(report: Report) -> list[str]:
    return [stage.status.value for stage in report.stages]


def test_the_points_are_those_of_the_visible_checks(reports: dict[str, Report]) -> None:
    report = reports["right"]
    assert [(s.score, s.max_score) for s in report.stages] == [(2, 2), (1, 1), (0, 0)]
    assert (report.score, report.max_score, report.is_partial) == (3, 3, True)
    assert standings(report) == ["passed"] * 3
    assert to_json(report)["max_score"] == 3


def test_untouched_stubs_are_not_started_even_where_nothing_checks_them(
    reports: dict[str, Report],
) -> None:
    assert standings(reports["stubs"]) == ["not_started"] * 3
    assert standings(reports["begun"]) == ["passed", "not_started", "not_started"]


def test_without_misconceptions_nothing_is_named(reports: dict[str, Report]) -> None:
    checks = [check for stage in reports["no refusal"].stages for check in stage.checks]
    assert {check.id: check.outcome.value for check in checks} == {
        "moving_average.length": "passed",
        "moving_average.refusal": "failed",
        "smooth.once_is_the_default": "failed",
    }
    assert not [check for check in checks if check.diagnosis]


def test_an_earlier_stage_is_suspected_but_not_accused(reports: dict[str, Report]) -> None:
    for name in ("no refusal", "first unwritten"):
        second = reports[name].stages[1]
        assert (second.caused_by, second.perhaps) == (None, "moving_average")
    second = reports["adds up"].stages[1]  # what is visible of the first finds nothing wrong
    assert (second.status, second.perhaps) == (Status.FAILED, None)


# --- the commands ------------------------------------------------------------------------------


def type_(capsys: Capture, *words: str, code: int = 0) -> str:
    assert main(list(words)) == code
    shown = capsys.readouterr()
    said = shown.err if code == 2 else shown.out
    if code == 2:
        assert said.count("\n") == 1
    return " ".join(said.split())


def hand_in(whole: Course, copy: Path, **others: str) -> None:
    write_files(copy / "exercises", answers(whole, **others))


def test_no_word_is_too_much(whole: Course, copy: Path, capsys: Capture) -> None:
    hand_in(whole, copy)
    for words in ([], ["--plain"], ["smooth"], ["list"]):
        said = type_(capsys, *words)
        assert TOO_MUCH.search(said.replace("first passed", "")) is None, said
        if words != ["list"]:
            assert f"our visible checks pass; {MORE}" in said
    assert "roughness has no visible checks: it is graded on submission" in type_(capsys)
    assert "graded on submission" in type_(capsys, "roughness")
    assert "12 points" not in type_(capsys, "list")
    assert "so far visible checks pass" in type_(capsys, "list")


def test_watch_goes_on_and_says_what_is_left(
    whole: Course, copy: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from grader.learning.watch import loop as watch

    hand_in(whole, copy, smooth=read_stub(whole.stages[1]))
    ends = iter([False] * 40 + [True] * 10_000)

    def ended(self: watch.Watch) -> bool:
        at_second = self._state.stage.slug == "smooth" and self._state.report is not None
        return original(self) and not (at_second or next(ends))

    original = watch.Watch._step
    monkeypatch.setattr(watch.Watch, "_step", ended)
    said = type_(capsys, "watch", "moving_average", code=1)
    assert f"moving_average: your visible checks pass; {MORE}" in said
    assert "The visible checks of 1 of 2 stages pass. More checks run on submission." in said
    assert TOO_MUCH.search(said) is None, said


def test_nothing_is_learnt_from_solutions_that_a_copy_has_not(whole: Course, copy: Path) -> None:
    hand_in(whole, copy)
    course = read_course(copy / "course.toml")
    assert not (copy / "solutions").exists()
    with_engine(course, course.stages, "cpu", lambda engine: engine.rehearse(course.stages, 0))


def test_a_mistake_that_no_small_edit_fixes_is_explained_without_a_solution(
    whole: Course, copy: Path, capsys: Capture
) -> None:
    hand_in(whole, copy, moving_average="def moving_average(values, width):\n    return None\n")
    said = type_(capsys, "moving_average", code=1)
    assert "moving_average(...) returned None" in said and "moving_average([" in said, said


@pytest.mark.parametrize(
    "words, why",
    [
        (["solution", "smooth"], "a student's copy has no solutions"),
        (["solution", "smooth", "--give-up"], "a student's copy has no solutions"),
        (["verify"], "this is a student's copy"),
        (["new", "nest", "--title", "Nest"], "this is a student's copy"),
        (["stubs"], "a student's copy has no solutions"),
        (["stubs", "--force"], "a student's copy has no solutions"),
        *(
            (["release", kind], "this is a student's copy")
            for kind in ("nbgrader", "student", "gradescope", "github")
        ),
        (["class", "--nbgrader", ".", "smoothing"], "this is a student's copy"),
        (["init"], "`grade init DIR`"),
    ],
)
def test_what_a_copy_cannot_do_is_said_in_a_line(
    copy: Path, capsys: Capture, words: list[str], why: str
) -> None:
    assert why in type_(capsys, *words, code=2)


def test_work_in_the_unzipped_folder_is_compared_with_the_stubs_as_they_came(
    whole: Course, copy: Path, capsys: Capture
) -> None:
    hand_in(whole, copy)
    file = copy / "exercises" / "smooth.py"
    assert "+ ### BEGIN SOLUTION" in type_(capsys, "diff", "smooth")
    assert "the original stub again" in type_(capsys, "reset", "smooth")
    assert file.read_text(encoding="utf-8") == read_stub(whole.stages[1])
    assert "unzip a newer copy beside it" in type_(capsys, "update")
    assert "Written: smoothing.ipynb" in type_(capsys, "notebook")
    assert "raise NotImplementedError" in (copy / "smoothing.ipynb").read_text(encoding="utf-8")


def test_a_workspace_of_a_copy(
    whole: Course, copy: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(whole, copy)
    assert "3 files to work in" in type_(capsys, "init", "../mine")
    monkeypatch.chdir(copy.parent / "mine")
    assert locate_workspace(None).course.is_partial
    for stage in whole.stages:
        mine = Path("exercises", stage.file_name).read_text(encoding="utf-8")
        assert mine == read_stub(stage)
    assert "Welcome!" in type_(capsys, code=1)
    assert "hint 1 of" in type_(capsys, "hint")
    assert "are up to date" in type_(capsys, "update")


def test_without_the_stubs_that_were_kept_those_in_exercises_are_taken(copy: Path) -> None:
    course = read_course(copy / "course.toml")
    shutil.rmtree(copy / ".grade")
    before = read_stub(course.stages[0])
    (copy / "exercises" / "moving_average.py").write_text("mine = 1\n", encoding="utf-8")
    assert "NotImplementedError" in before and read_stub(course.stages[0]) == "mine = 1\n"


def test_its_kit_grades_a_whole_course_too(whole: Course, copy: Path) -> None:
    """Without the comparison with the solutions, which is not in the copy."""
    hand_in(whole, copy, moving_average="def moving_average(values, width):\n    return [0.0]\n")
    words = ("moving_average", "--course", whole.root, "--submission", copy / "exercises")
    done = run_python("-m", "grader", *words, env={"PYTHONPATH": str(copy / "kit")})
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert "checks do not pass yet" in done.stdout, done.stdout


# --- grade release student ---------------------------------------------------------------------


def test_release_writes_the_zip(
    whole: Course, archive: bytes, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):  # it may be made again
        said = type_(capsys, "release", "student", "--course", str(whole.root))
        assert "Written: smoothing-student.zip, with 3 stages and 3 visible checks" in said
    assert "Stages without visible checks: roughness." in said
    with zipfile.ZipFile("smoothing-student.zip") as file:
        assert file.testzip() is None
        assert {name.split("/")[0] for name in file.namelist()} == {"smoothing-student"}
    type_(capsys, "release", "student", "--course", str(whole.root), "--out", "there.zip")
    assert Path("there.zip").read_bytes() == Path("smoothing-student.zip").read_bytes()
    assert sorted(os.listdir()) == ["smoothing-student.zip", "there.zip"]
    for out, said in ((tmp_path, "is a folder"), (Path("there.zip", "a.zip"), "cannot be written")):
        words = ["release", "student", "--course", str(whole.root), "--out", str(out)]
        assert said in type_(capsys, *words, code=2)


# --- installed ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the real course's copy is installed, far from a checkout and from what was unzipped."""
    pytest.importorskip("hatchling", reason="the copy is built with hatchling")
    folder = tmp_path_factory.mktemp("unzipped")
    data = zipped(student_files(COURSE), "copy")
    zipfile.ZipFile(io.BytesIO(data)).extractall(folder)
    site = tmp_path_factory.mktemp("site")
    words = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site)]
    command = [sys.executable, "-m", "pip", "install", *words, "./kit", "."]
    subprocess.run(command, cwd=folder / "copy", check=True, capture_output=True)
    shutil.rmtree(folder)
    return site


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Callable[..., str]:
    def run(*words: str, code: int = 0) -> str:
        folder = tmp_path / "mine"
        here = folder if folder.is_dir() else tmp_path
        env = {"PYTHONPATH": str(installed), "COLUMNS": "80"}
        done = run_python("-m", "grader", *words, env=env, cwd=here)
        assert done.returncode == code, done.stdout + done.stderr
        assert str(ROOT) not in done.stdout + done.stderr
        return " ".join((done.stderr if code == 2 else done.stdout).split())

    return run


@pytest.mark.slow
def test_the_real_copy_from_installing_it_to_the_last_visible_point(
    installed: Path, run: Callable[..., str], tmp_path: Path
) -> None:
    files = [file for file in installed.rglob("*") if file.is_file()]
    inside = installed / "grader_courses" / "multi_head_attention"
    assert read_course(inside / "course.toml").is_partial
    assert not [file for file in files if "solutions" in file.relative_to(installed).parts]
    assert not [file for file in files if "misconceptions" in file.relative_to(installed).parts]
    assert f" {len(COURSE.stages)} files to work in" in run("init", "mine")
    assert "Welcome!" in run(code=1)
    for stage in COURSE.stages:
        shutil.copy(stage.solution_file, tmp_path / "mine" / "exercises" / stage.file_name)
    said = run()
    assert f"our visible checks pass; {MORE}" in said and TOO_MUCH.search(said) is None
    wrong = tmp_path / "mine" / "exercises" / "split_heads.py"
    edit(wrong, "transpose(1, 2)", "transpose(2, 3)")
    said = run("split_heads", code=1)
    assert "1 of 2 checks does not pass yet" in said and "Likely" not in said
    assert "has no solutions" in run("solution", "softmax", code=2)
    assert "has no `grade certificate`" in run("certificate", code=2)
