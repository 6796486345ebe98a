"""exercises/ is what solutions/ gives, and no work of a learner is ever lost."""

import re
from pathlib import Path

import pytest

from grader.read.stubs import (
    StubState,
    has_work,
    read_solution,
    read_stub,
    same_but_for_words,
    solution_of,
    stub_of,
    stub_states,
    write_stubs,
)
from grader.types.course import Course
from grader.types.errors import CourseError
from tests.kit.support.birds import course_of
from tests.kit.support.checkout import COURSE, ROOT
from tests.kit.support.files import write_files

SLUGS = [stage.slug for stage in COURSE.stages]

FOLDS = """\
    ### BEGIN SOLUTION
    half = sheet // 2

    return half
    ### END SOLUTION
"""
FLIES = """\
            ### BEGIN SOLUTION
            return "up"
            ### END SOLUTION
"""
SOLUTION = f'''"""Paper birds."""

import math


def fold(sheet: int) -> int:
    """Halve the sheet."""
{FOLDS}

SIZE = 4  # given


class Bird:
    def fly(self) -> str:
        if SIZE:
{FLIES}        return "down"
'''
STUB = SOLUTION.replace(
    FOLDS, '    raise NotImplementedError("fold is not written yet")\n'
).replace(FLIES, '            raise NotImplementedError("Bird.fly is not written yet")\n')
CODE = re.sub(r' *(### |""").*\n', "", SOLUTION).lstrip()
HALF_A_BRANCH = """def f(x):
    if x:
        pass
    ### BEGIN SOLUTION
    elif not x:
        pass
    ### END SOLUTION
    else:
        pass
"""
MINE = STUB.replace('raise NotImplementedError("fold is not written yet")', "return sheet >> 1")


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return course_of(write_files(tmp_path, {"solutions/fold.py": SOLUTION}), "fold")


def replaced(course: Course) -> dict[str, str]:
    folder = course.root / ".grade" / "replaced"
    return {file.name: file.read_text(encoding="utf-8") for file in folder.glob("*")}


@pytest.mark.parametrize("slug", SLUGS)
def test_the_committed_stubs_are_in_step(slug: str) -> None:
    stage = COURSE.stage(slug)
    assert stage.exercise_file.read_text(encoding="utf-8") == read_stub(stage), "run: grade stubs"


def test_takes_out_the_solution_and_nothing_else() -> None:
    assert stub_of(SOLUTION, "fold") == STUB
    assert stub_of(SOLUTION.replace("\n", "\r\n"), "fold") == STUB
    assert stub_of(SOLUTION.rstrip(), "fold") == STUB


def test_outside_a_function_it_is_the_stage_that_is_not_written() -> None:
    source = "### BEGIN SOLUTION\nx = 1\n### END SOLUTION\n"
    assert stub_of(source, "fold") == 'raise NotImplementedError("fold is not written yet")\n'


def test_the_solution_is_all_but_markers_and_docstrings() -> None:
    assert solution_of(SOLUTION, "fold.py") == CODE
    assert solution_of(SOLUTION.replace("\n", "\r\n"), "fold.py") == CODE


@pytest.mark.parametrize("body", ['"""Only words."""', '"""Words."""; x = 1'])
def test_a_docstring_that_cannot_be_spared_stays(body: str) -> None:
    source = f"class Bird:\n    {body}\n\n\n### BEGIN SOLUTION\nx = 1\n### END SOLUTION\n"
    assert solution_of(source, "f.py") == f"class Bird:\n    {body}\n\n\nx = 1\n"


@pytest.mark.parametrize("slug", SLUGS)
def test_the_course_s_solutions_are_code_without_words(slug: str) -> None:
    code = read_solution(COURSE.stage(slug))
    assert same_but_for_words(code, (ROOT / "solutions" / f"{slug}.py").read_text("utf-8"))
    assert '"""' not in code
    assert "SOLUTION" not in code


def test_a_solution_without_markers_is_not_shown() -> None:
    with pytest.raises(CourseError, match=r"f\.py: has no '### BEGIN SOLUTION'"):
        solution_of("x = 1\n", "f.py")


@pytest.mark.parametrize(
    ("source", "match"),
    [
        ("def f():\n    return 1\n", "f.py: has no '### BEGIN SOLUTION'"),
        ("def f():\n    ### BEGIN SOLUTION\n    return 1\n", "f.py:2: this solution has no"),
        ("def f():\n    return 1\n    ### END SOLUTION\n", "f.py:3: a solution ends here"),
        (
            SOLUTION.replace("    half =", "    ### BEGIN SOLUTION\n    half ="),
            "f.py:9: a solution",
        ),
        (SOLUTION.replace("    ### END", "### END", 1), "f.py:12: this marker is not indented"),
        (SOLUTION.replace("### BEGIN", "## BEGIN"), "f.py:8: write exactly '### BEGIN SOLUTION'"),
        (SOLUTION.replace("END SOLUTION", "END SOLUTION."), "f.py:12: write exactly"),
        (SOLUTION.replace("def fold(", "def fold"), "f.py:6: is not Python"),
        (HALF_A_BRANCH, "the stub of f.py:5: is not Python"),
    ],
)
def test_says_what_is_wrong(source: str, match: str) -> None:
    with pytest.raises(CourseError, match=re.escape(match)) as caught:
        stub_of(source, "f")
    assert "\n" not in str(caught.value) and "<unknown>" not in str(caught.value)


def test_a_solution_that_is_not_there_names_its_file(course: Course) -> None:
    course.stages[0].solution_file.unlink()
    with pytest.raises(CourseError, match=r"^solutions/fold\.py: cannot be read"):
        write_stubs(course)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (STUB, True),
        (STUB.replace("Halve", "Cut"), True),
        (STUB.replace("fold is not", "fold() is not"), True),
        (STUB.replace("# given", "# yours"), True),
        (MINE, False),
        (STUB.replace("SIZE = 4", "SIZE = 5"), False),
        (STUB.replace("sheet: int", "paper: int"), False),
        (STUB + "\n\ndef my_helper(): ...\n", False),
        (STUB + "\nif", False),
        (STUB + f"\nx = {'-' * 50_000}1\n", False),
        (STUB + f"\nx = {' + '.join(['1'] * 1000)}\n", False),
        (STUB + "\nif x: pass\n" + "elif x: pass\n" * 3000, False),
        (STUB + "\n" + "x = 1\n" * 50_000, False),
    ],
)
def test_words_are_no_work(other: str, same: bool) -> None:
    assert same_but_for_words(STUB, other) is same


def test_writes_what_is_absent_then_nothing(course: Course) -> None:
    (stage,) = course.stages
    assert write_stubs(course) == {stage: StubState.ABSENT}
    assert stage.exercise_file.read_bytes() == STUB.encode()
    assert write_stubs(course) == {stage: StubState.IN_STEP}
    assert [file.name for file in stage.exercise_file.parent.iterdir()] == ["fold.py"]
    assert not (course.root / ".grade").exists()


def test_an_older_stub_is_replaced_and_kept(course: Course) -> None:
    (stage,) = course.stages
    old = STUB.replace("Halve", "Note to self: halve")
    write_stubs(course)
    stage.exercise_file.write_text(old, encoding="utf-8")
    assert write_stubs(course) == {stage: StubState.OLD}
    assert stage.exercise_file.read_text(encoding="utf-8") == STUB
    assert replaced(course) == {"fold.py-1": old}


def test_work_is_left_alone(course: Course) -> None:
    (stage,) = course.stages
    write_stubs(course)
    stage.exercise_file.write_text(MINE, encoding="utf-8")
    assert stub_states(course) == {stage: StubState.BEGUN}
    assert write_stubs(course) == {stage: StubState.BEGUN}
    assert stage.exercise_file.read_text(encoding="utf-8") == MINE


def test_force_replaces_work_and_keeps_every_copy(course: Course) -> None:
    (stage,) = course.stages
    for work in (MINE, MINE + "\nif", MINE):
        stage.exercise_file.parent.mkdir(exist_ok=True)
        stage.exercise_file.write_text(work, encoding="utf-8")
        assert write_stubs(course, force=True) == {stage: StubState.BEGUN}
        assert stage.exercise_file.read_text(encoding="utf-8") == STUB
    assert replaced(course) == {"fold.py-1": MINE, "fold.py-2": MINE + "\nif", "fold.py-3": MINE}


@pytest.mark.parametrize(
    "content", [STUB.replace("\n", "\r\n").encode(), b"\xef\xbb\xbf" + STUB.encode()]
)
def test_an_editor_s_line_ends_are_no_work(course: Course, content: bytes) -> None:
    write_stubs(course)
    course.stages[0].exercise_file.write_bytes(content)
    assert set(stub_states(course).values()) == {StubState.IN_STEP}


def test_what_cannot_be_read_is_taken_for_work(course: Course) -> None:
    write_stubs(course)
    course.stages[0].exercise_file.write_bytes(b"\xff\xfe\x00")
    assert set(write_stubs(course).values()) == {StubState.BEGUN}


def test_nothing_is_written_if_a_solution_is_wrong(course: Course) -> None:
    course.stages[0].solution_file.write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(CourseError, match=r"^solutions/fold\.py: has no"):
        write_stubs(course)
    assert not course.exercises.exists()


@pytest.mark.parametrize(
    "text, begun",
    [
        (STUB, False),
        (f"import math\nfrom math import pi\n{STUB}", False),
        (STUB.replace("raise", "import math\n    raise"), True),
    ],
    ids=["the stub", "other imports at the top", "an import in a function"],
)
def test_a_stub_with_other_imports_is_not_begun(text: str, begun: bool) -> None:
    assert has_work(text, STUB) is begun
