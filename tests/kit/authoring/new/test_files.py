"""`grade new`: a stage that runs as it is written, and nothing at all where that cannot be."""

from dataclasses import replace
from pathlib import Path

import pytest

from grader.authoring.new import files as module
from grader.authoring.new.files import Wanted, new_stage, with_stage
from grader.authoring.verify.verify import verify
from grader.engine import Engine, Request, with_engine
from grader.learning.hints.ladder import read_hints
from grader.read.course_file import course_of_text, read_course
from grader.read.stubs import StubState, stub_states
from grader.read.submission import read_submission
from grader.types.course import Course
from grader.types.errors import KitError
from grader.types.report import Status
from tests.kit.support.files import tree, write_files

BIRDS = """\
# Paper birds: fold once, then fly.
schema = 1
name = "birds"
title = "Paper birds"
preload = [{preload}]

# The first fold.
[[stages]]
slug = "fold"
title = "Fold"   # not twice
points = 60
visible = [
    "values",
]
entry_points = {{ fold = "number", crease = "number" }}
# Harder than it looks.

# Then the wings,
# which come in twos.

[[stages]]
slug = "wings"
title = "Wings"
points = 40
requires = ["fold"]
[stages.entry_points]
wings = "number"

# What is handed out.
[[assignments]]
name = "paper"
stages = ["fold", "wings"]
"""
TABLE = '[[stages]]\nslug = "nest"\n'
STYLES = {"torch": '"torch"', "numpy": '"numpy"', "neither": ""}


@pytest.fixture
def birds(tmp_path: Path) -> Course:
    (tmp_path / "course.toml").write_text(BIRDS.format(preload='"numpy"'), encoding="utf-8")
    return read_course(tmp_path / "course.toml")


# --- the table -------------------------------------------------------------------------------


def grown(text: str, after: str | None) -> tuple[str, str]:
    """What is before and behind the table that was added."""
    before, _, behind = with_stage(text, ["fold", "wings"], TABLE, after).partition(TABLE)
    return before, behind


def test_the_table_comes_behind_the_stage_that_was_named_with_its_comments() -> None:
    before, behind = grown(BIRDS, "fold")
    assert before.endswith("# Harder than it looks.\n\n")
    assert behind.startswith("\n# Then the wings,\n# which come in twos.\n\n[[stages]]\n")
    assert before.removesuffix("\n") + behind == BIRDS


def test_without_a_name_it_comes_behind_the_last_stage() -> None:
    before, behind = grown(BIRDS, None)
    assert before.endswith('[stages.entry_points]\nwings = "number"\n\n')
    assert behind.startswith("\n# What is handed out.\n[[assignments]]")
    assert before.removesuffix("\n") + behind == BIRDS


def test_a_file_without_an_end_of_line_gets_one() -> None:
    text = BIRDS.partition("\n\n# What is handed out")[0]
    assert with_stage(text, ["fold", "wings"], TABLE, None) == f"{text}\n\n{TABLE}"


def test_the_line_ends_are_those_of_the_file() -> None:
    windows = BIRDS.replace("\n", "\r\n")
    for after in ("fold", None):
        text = with_stage(windows, ["fold", "wings"], TABLE, after)
        assert text == with_stage(BIRDS, ["fold", "wings"], TABLE, after).replace("\n", "\r\n")


def test_a_stage_that_is_not_there_is_told_with_what_comes_close() -> None:
    with pytest.raises(KitError, match=r"--after: there is no stage 'wing' \(did you mean 'wings'"):
        grown(BIRDS, "wing")
    with pytest.raises(KitError, match="no stage 'xyz'; `grade list` shows all stages"):
        grown(BIRDS, "xyz")


def test_stages_that_are_written_in_another_way_are_left_to_the_author(tmp_path: Path) -> None:
    stage = '{ slug = "fold", title = "Fold", points = 1, entry_points = { fold = "number" } }'
    text = f'schema = 1\nname = "birds"\ntitle = "Birds"\nstages = [\n    {stage},\n]\n'
    (tmp_path / "course.toml").write_text(text, encoding="utf-8")
    course = read_course(tmp_path / "course.toml")
    with pytest.raises(KitError, match="add the new one by hand"):
        new_stage(course, Wanted("nest", "Nest"))
    assert list(tree(tmp_path)) == ["course.toml"]


def test_what_reads_otherwise_than_it_looks_is_left_to_the_author(tmp_path: Path) -> None:
    text = BIRDS.format(preload="").replace('title = "Fold"', 'title = """\n[[stages]]\n"""')
    text = text.replace('[[stages]]\nslug = "wings"', "[[ 'stages' ]]\nslug = \"wings\"")
    (tmp_path / "course.toml").write_text(text, encoding="utf-8")
    course = read_course(tmp_path / "course.toml")
    before = tree(tmp_path)
    with pytest.raises(KitError):
        new_stage(course, Wanted("nest", "Nest", after="wings"))
    assert tree(tmp_path) == before


# --- the files -------------------------------------------------------------------------------


@pytest.mark.parametrize("preload", STYLES.values(), ids=STYLES)
def test_a_new_stage_runs_as_it_is(tmp_path: Path, preload: str) -> None:
    (tmp_path / "course.toml").write_text(BIRDS.format(preload=preload), encoding="utf-8")
    stage, files = new_stage(
        read_course(tmp_path / "course.toml"), Wanted("nest", 'A "nest" \\ of «two»', bonus=True)
    )
    text = (tmp_path / "course.toml").read_text(encoding="utf-8")
    course = course_of_text(text, tmp_path / "course.toml")
    assert course.stages[-1] == stage and stage.bonus and stage.title == 'A "nest" \\ of «two»'
    assert {path.relative_to(tmp_path).as_posix() for path in files} == {
        "solutions/nest.py",
        "exercises/nest.py",
        "tests/checks/test_nest.py",
        "hints/nest.md",
        "hints/misconceptions/nest.py",
        "tests/accepted/nest/another.py",
    }
    for path in files:
        written = path.read_text(encoding="utf-8")
        assert "TODO: " in written
        assert ("torch" in written) <= (preload == '"torch"'), path
        assert max(map(len, written.splitlines())) <= 100
    assert len(read_hints(stage).rungs) == 4

    alone = Course("birds", "Birds", tmp_path, course.preload, course.limits, (stage,))
    assert stub_states(alone) == {stage: StubState.IN_STEP}
    submissions = {
        "exercises": Status.NOT_STARTED,
        "solutions": Status.PASSED,
        "tests/accepted/nest": Status.PASSED,
    }
    (tmp_path / "tests/accepted/nest/another.py").rename(tmp_path / "tests/accepted/nest/nest.py")

    def statuses(engine: Engine) -> list[Status]:
        return [
            engine.grade(Request(read_submission(tmp_path / name), alone.stages, 5))
            .stages[0]
            .status
            for name in submissions
        ]

    assert with_engine(alone, alone.stages, "cpu", statuses) == list(submissions.values())
    (tmp_path / "tests/accepted/nest/nest.py").rename(tmp_path / "tests/accepted/nest/another.py")
    [proof] = verify(alone, alone.stages, seeds=(1,)).stages
    assert {tmp_path / todo.file for todo in proof.todos} == {*files} - {stage.exercise_file}
    assert [*proof.problems] == ["tests/accepted/nest/: has 1 of 3 right answers: write 2 more"]
    assert len(proof.misconceptions) == (3 if preload else 2)
    assert all(mistake.named == mistake.id for mistake in proof.misconceptions)


def test_several_stages_keep_their_order_and_the_comments(birds: Course) -> None:
    file = birds.root / "course.toml"
    before = file.read_text(encoding="utf-8")
    for slug, after in (("nest", None), ("beak", "fold"), ("tail", "wings")):
        new_stage(read_course(file), Wanted(slug, slug.title(), after))
    slugs = [stage.slug for stage in read_course(file).stages]
    assert slugs == ["fold", "beak", "wings", "tail", "nest"]
    after_all = file.read_text(encoding="utf-8")
    assert [line for line in after_all.splitlines() if line in before.splitlines()][:4] == (
        before.splitlines()[:4]
    )
    assert after_all.count("#") == before.count("#")


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "slug, title, told",
    [
        ("Half-turn", "x", "'Half-turn' is not a lower-case Python name: try 'half_turn'"),
        ("2nd", "x", "'2nd' is not a lower-case Python name: try 'nd'"),
        ("größer", "x", "'größer' may only hold a to z, 0 to 9 and _: choose another slug"),
        ("Part2", "x", "'Part2' is not a lower-case Python name: try 'part2'"),
        ("---", "x", "'---' is not a lower-case Python name: choose another slug"),
        ("lambda", "x", "'lambda' is a keyword of Python: choose another slug"),
        ("random", "x", "'random' is a module of Python's standard library: choose another slug"),
        ("hint", "x", "'hint' is a command of `grade`: choose another slug"),
        ("grader", "x", "'grader' is a module of the kit: choose another slug"),
        ("rich", "x", "'rich' would hide an installed package: choose another"),
        ("sum", "x", "'sum' is a built-in name of Python: choose another slug"),
        ("conftest", "x", "pytest would treat 'conftest' as a test file: choose another slug"),
        ("test_nest", "x", "pytest would treat 'test_nest' as a test file: choose another slug"),
        ("wings", "x", "stage 'wings' exists already: choose another slug"),
        ("crease", "x", "stage 'fold' defines 'crease': choose another slug"),
        ("nest", "", "--title: give it a line of text"),
        ("nest", "two\nlines", "--title: give it a line of text"),
        ("nest", "x" * 61, "--title: has 61 characters: use at most 60"),
    ],
)
def test_each_fault_has_its_own_line_and_leaves_nothing(
    birds: Course, slug: str, title: str, told: str
) -> None:
    before = tree(birds.root)
    with pytest.raises(KitError) as refused:
        new_stage(birds, Wanted(slug, title))
    assert str(refused.value).startswith(told) and len(f"grade: {refused.value}") <= 80
    assert tree(birds.root) == before


def test_a_folder_of_that_name_in_the_working_folder_hides_nothing(
    birds: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(birds.root)
    (birds.root / "nest").mkdir()
    assert new_stage(birds, Wanted("nest", "Nest"))[0].slug == "nest"


@pytest.mark.parametrize(
    "file, told",
    [
        ("hints/nest.md", r"^hints/nest\.md: exists already: move it"),
        ("hints", r"hints.*: cannot be written"),  # it should be a folder
    ],
)
def test_a_file_in_the_way_is_named_and_nothing_is_left_behind(
    birds: Course, file: str, told: str
) -> None:
    before = tree(write_files(birds.root, {file: "mine"}))
    with pytest.raises(KitError, match=told):
        new_stage(birds, Wanted("nest", "Nest"))
    assert tree(birds.root) == before


def test_being_stopped_leaves_nothing_behind(
    birds: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(path: Path, text: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "write_whole", stopped)
    before = tree(birds.root)
    with pytest.raises(KeyboardInterrupt):
        new_stage(birds, Wanted("nest", "Nest"))
    assert tree(birds.root) == before


def test_an_installed_course_stays_as_it_is(birds: Course, tmp_path: Path) -> None:
    installed = replace(birds, root=tmp_path / "grader_courses" / "birds")
    with pytest.raises(KitError, match="`grade new --course DIR` starts a"):
        new_stage(installed, Wanted("nest", "Nest"))
