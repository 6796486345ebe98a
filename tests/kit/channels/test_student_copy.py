"""The students' copy holds what they need to be graded and nothing that they must not see."""

import ast
import io
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from grader.channels.leaks import Leak, leaks, secret_lines
from grader.channels.student_copy import nameless_toml, partial_toml, student_files, zipped
from grader.channels.visible_checks import visible_checks
from grader.learning.hints.ladder import read_hints
from grader.learning.predict.questions import read_predictions
from grader.read.course_file import parse_course
from grader.read.stubs import read_stub
from grader.types.course import Course, Stage
from grader.types.errors import CourseError
from tests.kit.support.checkout import COURSE, ROOT, TINY
from tests.kit.support.files import edit
from tests.kit.support.tiny import copy_tiny

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLD = Stage("fold", "Fold a sheet", 10, False, (), (), Path("birds"))

# What stands between « and » is hidden, but for the first line, which the copy writes itself.
FIRST = '"""Fold a sheet: the visible checks; more checks run on submission."""'
MARKED = '''«"""The hidden checks of fold: see test_torn for how sheets tear."""»

from __future__ import annotations

import math
from typing import Any

import pytest

Sheet = tuple[int, ...]
SIZES, TORN = [1, 2], [3]
WIDE = 4«  # wider than the torn ones
SECRET = 5»
NARROW = 6«; THIN = 7

# --- hidden: what tears ---»


def halved(sheet: Sheet) -> float:
    """Half."""
    # inside, so it stays
    return math.floor(sheet[0] / WIDE)


«def tear(sheet):
    return SECRET


def result(sheet):
    """A helper that has the name of a variable elsewhere."""
    return tear(sheet)


»@pytest.fixture
def paper() -> int:
    return NARROW


@pytest.fixture(name="pen")
def _a_pen() -> int:
    return 8


@pytest.fixture(autouse=True)
def _always() -> None:
    assert math.pi


«@pytest.fixture
def scissors() -> int:
    return THIN


»@pytest.mark.points(2)
@pytest.mark.parametrize(
    "size", SIZES  # the smallest first
)
def test_values(submission: Any, size: int, paper: int) -> None:
    """It folds"""
    result = submission.fold((size,))
    assert result == halved((size,))


@pytest.mark.points(1«, stand_in="torn"»)
@pytest.mark.usefixtures("pen")
def test_gpu(submission: Any) -> None:
    """It folds elsewhere"""
«

@pytest.mark.points(3)
def test_torn(submission: Any, scissors: int) -> None:
    """It does not tear"""
    assert submission.fold(TORN) == tear(TORN)
»'''
CHECKS = re.sub("[«»]", "", MARKED)
VISIBLE = FIRST + re.sub("«.*?»", "", MARKED, flags=re.S)


def shown(*visible: str, source: str = CHECKS) -> str:
    return visible_checks(source, replace(FOLD, visible=visible))


# --- the visible checks ------------------------------------------------------------------------


def test_visible_checks_keep_what_they_reach_and_no_more() -> None:
    assert shown("values", "gpu") == VISIBLE
    assert shown("values", "gpu", source=CHECKS.replace("\n", "\r\n")) == VISIBLE


def test_a_check_that_stands_in_and_is_visible_goes_on_to_do_so() -> None:
    assert '@pytest.mark.points(1, stand_in="torn")' in shown("gpu", "torn")


def test_what_a_name_is_changed_by_goes_along() -> None:
    source = "A = [1]\nB = 2\nA += [B]\npytestmark = B\n\ndef test_a():\n    assert A\n"
    kept = shown("a", source=source)
    assert "A = [1]\nB = 2\nA += [B]\npytestmark = B\n" in kept


def test_a_statement_ends_where_its_code_does_in_any_script() -> None:
    source = "é = 'ü'; A = ['é',\n'ß']; B = 2  # beside\n\ndef test_a():\n    assert A\n"
    assert f"{FIRST}\n\nA = ['é',\n'ß']\n" in shown("a", source=source)


def test_no_visible_check_leaves_a_file_without_any() -> None:
    assert shown() == '"""Fold a sheet: its checks run on submission; none is visible."""\n'


@pytest.mark.parametrize(
    "source, visible, said",
    [
        (CHECKS, "vlaues", r"'fold': visible: there is no check 'vlaues' \(did you mean 'values'"),
        (CHECKS, "test_values", r"no check 'test_values' \(did you mean 'values'\?\)"),
        (CHECKS, "qqqq", r"there is no check 'qqqq'$"),
        (CHECKS, "halved", "there is no check 'halved'"),
        ("def test_a(:", "a", r"tests/checks/test_fold.py:1: SyntaxError"),
        (
            'def test_a():\n    """As test_b"""\ndef test_b(): pass\n',
            "a",
            r"test_fold.py: a visible check, or what it uses, mentions the hidden test_b",
        ),
    ],
)
def test_what_cannot_be_shown_is_the_authors_fault(source: str, visible: str, said: str) -> None:
    with pytest.raises(CourseError, match=said):
        shown(visible, source=source)


# --- course.toml -------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["", "partial = false\n"])
def test_the_copy_says_of_itself_that_it_is_partial(before: str) -> None:
    text = before + (ROOT / "course.toml").read_text(encoding="utf-8")
    copy = partial_toml(text)
    assert "# The course: stages in the order" in copy
    course = parse_course(tomllib.loads(copy), ROOT)
    assert course.is_partial
    assert replace(course, is_partial=False) == COURSE


# --- secrets -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line, found",
    [
        ("    return sheet // 2  # half of it", True),
        ("return sheet // 2", True),
        ("return sheet // ...", False),
        ("`return sheet // 2` is short", False),
        ("it says `sheet.fold(corner, other_corner).press()`", True),
    ],
)
def test_a_line_leaks_whole_and_a_long_one_as_a_part_of_another(line: str, found: bool) -> None:
    secrets = {"return sheet // 2": "solutions/fold.py:3"}
    secrets["sheet.fold(corner, other_corner).press()"] = "solutions/fold.py:3"
    files = {"hints/fold.md": f"# Fold\n{line}\n".encode()}
    expected = [Leak("hints/fold.md", 2, "solutions/fold.py:3")] if found else []
    assert leaks(files, secrets) == expected


def test_a_hint_that_gives_a_line_away_stops_the_release(course: Course) -> None:
    student_files(course)
    with open(course.stages[2].hints_file, "a", encoding="utf-8") as file:
        file.write("\n    neighbours_in_pairs = pairwise(values)\n")
    with pytest.raises(CourseError, match=r"roughness.md:\d+: gives away solutions/roughness.py:1"):
        student_files(course)


@pytest.fixture(scope="module")
def bundle() -> Mapping[str, bytes]:
    return student_files(COURSE)


def coded(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield re.sub(r"\s+#\s.*$", "", line).strip()


def hidden_part(stage: Stage) -> tuple[list[str], list[str]]:
    """The lines of the hidden checks of a stage, and all others of its check file."""
    text = stage.check_file.read_text(encoding="utf-8")
    lines = text.splitlines()
    inside = {
        number
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and node.name.removeprefix("test_") not in stage.visible
        for number in range(
            min(each.lineno for each in [node, *node.decorator_list]), (node.end_lineno or 0) + 1
        )
    }
    numbered = list(enumerate(lines, start=1))
    hidden = [line for number, line in numbered if number in inside]
    return hidden, [line for number, line in numbered if number not in inside]


def secrets(course: Course) -> set[str]:
    """The lines of solutions, misconceptions and hidden checks, found without the code under test.

    It leaves out lines that the stub, the engine or the rest of a check file also has, calls of the
    learner's function with variables, which a trace makes too, and parameters.
    """
    found: set[str] = set()
    public = [file.read_text(encoding="utf-8") for file in (ROOT / "grader").rglob("*.py")]
    for stage in course.stages:
        hidden, others = hidden_part(stage)
        solution = stage.solution_file.read_text(encoding="utf-8")
        parts = re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", solution, re.DOTALL)
        wrong = stage.misconceptions_file.read_text(encoding="utf-8")
        found |= {line for text in (*parts, wrong, "\n".join(hidden)) for line in coded(text)}
        public += [read_stub(stage), "\n".join(others)]
    known = "\n".join(public)
    call = re.compile(r"([\w, ]+ = )?submission\.\w+\([\w, ]*\)")
    parameter = re.compile(r"\w+: [^=]+,")
    harmless = {s for s in found if call.fullmatch(s) or parameter.fullmatch(s)}
    kept = {s for s in found - harmless if len(s) >= 12}
    return kept - within(known, kept, 12)


def within(text: str, lines: Iterable[str], letters: int) -> set[str]:
    """Those of the lines with at least so many `letters` that are in the text."""
    starts = {line[:letters] for line in lines if len(line) >= letters}
    pieces = map(slice, range(len(text)), range(letters, len(text) + letters))
    begun = starts.intersection(map(text.__getitem__, pieces))
    return {line for line in lines if line[:letters] in begun and line in text}


def test_no_byte_of_the_zip_is_a_secret(bundle: Mapping[str, bytes]) -> None:
    hidden = secrets(COURSE)
    assert len(hidden) > 1000
    with zipfile.ZipFile(io.BytesIO(zipped(bundle, "copy"))) as archive:
        members = {
            name: archive.read(name).decode("utf-8", "replace") for name in archive.namelist()
        }
    assert members.keys() == {f"copy/{name}" for name in bundle}
    for name, text in members.items():
        assert not hidden.intersection(coded(text)), name
        assert within(text, hidden, 30) == set(), name


def test_no_hidden_check_is_named_or_described(bundle: Mapping[str, bytes]) -> None:
    text = b"\n".join(bundle.values()).decode("utf-8", "replace")
    # What is hidden of one stage may be visible of another.
    told = "\n".join(line for stage in COURSE.stages for line in hidden_part(stage)[1])
    for stage in COURSE.stages:
        hidden, _ = hidden_part(stage)
        titles = re.findall(r'^    """(.*)"""$', "\n".join(hidden), re.MULTILINE)
        assert titles
        assert [title for title in titles if title in text and title not in told] == []
        checks = bundle[f"tests/checks/test_{stage.slug}.py"].decode()
        assert sorted(re.findall(r"\bdef test_(\w+)", checks)) == sorted(stage.visible)
        names = re.findall(r"^def (test_\w+)", "\n".join(hidden), re.MULTILINE)
        assert [name for name in names if re.search(rf"\b{name}\b", checks)] == []


def test_students_learn_how_to_install_a_small_torch(bundle: Mapping[str, bytes]) -> None:
    lines = bundle["README.md"].decode().splitlines()
    (number,) = [n for n, line in enumerate(lines) if "download.pytorch.org/whl/cpu" in line]
    assert lines[number].startswith('pip install "torch==')
    assert lines[number + 1] == "pip install -c constraints.txt ./kit ."
    assert b"pytorch" not in student_files(TINY)["README.md"]


def test_hints_and_questions_that_can_be_read_go_along(bundle: Mapping[str, bytes]) -> None:
    for stage in COURSE.stages:
        assert read_hints(stage).rungs and f"hints/{stage.slug}.md" in bundle
        if read_predictions(stage) is not None:
            assert f"hints/predictions/{stage.slug}.md" in bundle


def test_the_bundle_holds_what_a_student_needs(bundle: Mapping[str, bytes]) -> None:
    assert {name.split("/")[0] for name in bundle} == {
        *("course.toml", "pyproject.toml", "constraints.txt", "LICENSE", "README.md"),
        *("exercises", "hints", "tests", "kit", ".grade"),
    }
    assert {name.rpartition("/")[0] for name in bundle if name.startswith(("hints", "tests"))} == {
        *("hints", "hints/explore", "hints/figures", "hints/finale", "hints/predictions"),
        *("hints/traces", "tests/checks"),
    }
    assert not [name for name in bundle if "__pycache__" in name or "conftest" in name]
    kit = {name.removeprefix("kit/") for name in bundle if name.startswith("kit/")}
    assert {"pyproject.toml", "LICENSE", "grader/engine.py", "grader/run/worker/lock.py"} < kit
    rooms = {name.split("/")[1] for name in kit if name.count("/") > 1}
    assert {"learning", "run"} < rooms and not rooms & {"authoring", "channels", "classes", "kit"}
    withheld = ("grader/diagnosis/comparison", "grader/learning/certificate")
    assert not [name for name in kit if name.startswith(withheld)]
    for stage in COURSE.stages:
        stub = read_stub(stage).encode()
        assert bundle[f"exercises/{stage.file_name}"] == stub
        assert bundle[f".grade/stubs/{stage.file_name}"] == stub


def test_what_somebody_wrote_into_exercises_stays_there(course: Course) -> None:
    course.stages[0].exercise_file.write_text("mine = 1\n", encoding="utf-8")
    assert b"mine" not in student_files(course)["exercises/moving_average.py"]


def test_the_same_course_gives_the_same_zip(bundle: Mapping[str, bytes]) -> None:
    again = zipped(dict(reversed(bundle.items())), "copy")
    assert again == zipped(bundle, "copy")


def test_every_stage_is_searched_for_secrets() -> None:
    found = secret_lines(COURSE, COURSE.stages).values()
    for stage in COURSE.stages:
        for file in (stage.solution_file, stage.check_file, stage.misconceptions_file):
            assert any(place.startswith(file.relative_to(ROOT).as_posix()) for place in found)
    assert any(place.startswith("hints/misconceptions/_attention.py") for place in found)


def test_a_line_that_students_see_is_no_secret(course: Course) -> None:
    solution = course.stage("roughness").solution_file
    edit(solution, "    >>> rough", "    (...zqvw = 98765)\n\n    >>> rough")
    edit(solution, "    neighb", "    zqvw = 98765\n    zqvw = 98766\n    neighb")
    found = secret_lines(course, course.stages)
    assert "zqvw = 98766" in found
    assert "zqvw = 98765" not in found


def test_a_parameter_on_a_line_of_its_own_is_no_secret_unless_it_has_a_default(
    course: Course,
) -> None:
    with course.stage("roughness").misconceptions_file.open("a", encoding="utf-8") as file:
        file.write(
            "\n\ndef helper(\n    zqvw: list[float] | None,\n    qvwz: int = 98765,\n): ...\n"
        )
    found = secret_lines(course, course.stages)
    assert "zqvw: list[float] | None," not in found
    assert "qvwz: int = 98765," in found


BY_NAME = """[[assignments]]
name = "averages"
stages = ["moving_average"]
due = 2026-10-30T23:59:00Z
{}
exam = true
"""
WRITTEN = {
    "in a line": "extensions = { ada = 2026-11-02T23:59:00Z }  # ada was ill\n",
    "dotted": "extensions.ada = 2026-11-02T23:59:00Z\nextensions.bob = 2026-11-02T23:59:00Z\n",
    "none": "",
}


def exam_course(tmp_path: Path, written: str) -> Course:
    """The tiny course with an exam on its first stage, and extensions as they are written."""
    return copy_tiny(tmp_path / "tiny", {"[limits]": f"{BY_NAME.format(written)}[limits]"})


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_a_copy_does_not_tell_who_has_an_extension(tmp_path: Path, written: str) -> None:
    files = student_files(exam_course(tmp_path, written))
    text = files["course.toml"].decode()
    assert "ada" not in text and "bob" not in text
    [assignment] = parse_course(tomllib.loads(text), tmp_path).assignments
    assert assignment.due is not None and not assignment.extensions and assignment.is_exam


def test_a_table_of_extensions_is_left_out_whole(tmp_path: Path) -> None:
    table = "[assignments.extensions]\nada = 2026-11-02T23:59:00Z\n# ill\n\nbob = 2026-11-02\n"
    course = exam_course(tmp_path, "")
    toml = course.root / "course.toml"
    text = toml.read_text("utf-8")
    edit(toml, "[limits]", f"{table}[limits]")
    assert nameless_toml(course) == text
    toml.write_text(text, "utf-8")
    text = """[[assignments]]
name = "a"
stages = ["moving_average"]
[assignments . extensions]
ada = 2026-11-02T23:59:00Z
"""
    edit(toml, "[limits]", f"{text}[limits]")
    with pytest.raises(CourseError, match="must not name the students"):
        student_files(course)


def test_a_copy_of_an_exam_has_no_hints_for_its_stages(tmp_path: Path) -> None:
    files = student_files(exam_course(tmp_path, ""))
    assert "hints/moving_average.md" not in files and "hints/smooth.md" in files
    assert "no hints" in files["README.md"].decode()
