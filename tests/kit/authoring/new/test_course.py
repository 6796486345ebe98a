"""`grade new --course`: a course that is one from the start, without stages or with one."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grader.authoring.new.course import LIBRARIES, new_course, title_of
from grader.authoring.new.files import Wanted, new_stage
from grader.authoring.verify.verify import verify
from grader.command.main import main
from grader.read.course_file import read_course
from grader.types.errors import KitError
from tests.kit.support.files import tree, write_files
from tests.kit.support.tiny import Capture


def test_a_course_without_stages_is_one_and_takes_the_first(here: Path) -> None:
    course, files = new_course(here / "deep" / "origami", 'Fold "paper"')
    assert read_course(here / "deep" / "origami" / "course.toml") == course
    assert (course.name, course.title, course.preload) == ("origami", 'Fold "paper"', ("numpy",))
    assert (course.stages, course.assignments, course.version) == ((), (), "0.1")
    assert all(path.is_file() for path in files)
    new_stage(course, Wanted("wings", "Wings"))
    course = read_course(course.root / "course.toml")
    new_stage(course, Wanted("beak", "Beak"))
    assert [s.slug for s in read_course(course.root / "course.toml").stages] == ["wings", "beak"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_its_first_stage_is_of_the_library_that_was_named(here: Path, library: str) -> None:
    first = Wanted("half_turn", "Half turn")
    course, files = new_course(here / "origami", "Fold", library=library, first=first)
    assert course.preload == course.requirements == LIBRARIES[library]
    assert read_course(course.root / "course.toml") == course
    assert [(stage.slug, stage.title) for stage in course.stages] == [("half_turn", "Half turn")]
    assert ("torch" in course.stages[0].check_file.read_text("utf-8")) == (library == "torch")
    [proof] = verify(course, course.stages, seeds=(1,)).stages
    assert all(mistake.caught_by for mistake in proof.misconceptions)
    assert all(path.is_file() for path in files)


COMMANDS = [
    *([], ["list"], ["hint"], ["watch"], ["notebook"], ["trace"], ["update"], ["init", "../mine"]),
    *(["verify"], ["verify", "--mutants"], ["stubs"], ["certificate"]),
    ["class", ".", "--out", "marks"],
    *(["release", what] for what in ("nbgrader", "student", "gradescope", "github")),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_without_stages_every_command_says_what_to_do(
    here: Path, words: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    course, _ = new_course(here / "origami", "Fold")
    monkeypatch.chdir(course.root)
    before = tree(here)
    assert main(words) == 2
    said = capsys.readouterr()
    assert said.err == (
        "grade: the course 'origami' has no stages yet: `grade new STAGE --title TEXT` adds one\n"
    )
    assert said.out == "" and tree(here) == before


# --- the questions ---------------------------------------------------------------------------


@pytest.fixture
def typing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Types these lines on a terminal; returns the list that the questions go to."""

    def type_(*lines: str) -> list[str]:
        asked: list[str] = []
        answers: Iterator[str] = iter(lines)

        def answer(question: str) -> str:
            asked.append(question)
            try:
                return next(answers)
            except StopIteration:
                raise EOFError from None

        monkeypatch.setattr("sys.stdin.isatty", lambda: True)
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        monkeypatch.setattr("builtins.input", answer)
        return asked

    return type_


def test_on_a_terminal_it_asks_for_all_and_enter_takes_what_it_offers(
    here: Path, typing: Callable[..., list[str]], capsys: Capture
) -> None:
    asked = typing("", "", "", "")
    assert main(["new", "--course", "paper-birds"]) == 0
    assert asked == [
        "The course's name [paper-birds]: ",
        "Its title [Paper birds]: ",
        "Its library, or python for none: numpy, torch, python [numpy]: ",
        "The first stage's slug, such as half_turn (none: Enter): ",
    ]
    course = read_course(here / "paper-birds" / "course.toml")
    assert (course.name, course.title, course.stages) == ("paper-birds", "Paper birds", ())
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "Go there:        cd paper-birds",
        'The first stage: grade new STAGE --title "..."',
    ]


def test_it_asks_again_after_what_cannot_be_and_not_for_what_was_given(
    here: Path, typing: Callable[..., list[str]], capsys: Capture
) -> None:
    asked = typing("numbers", "python", "2nd", "fold")
    assert main(["new", "--course", "birds", "--name", "paper", "--title", "Paper"]) == 0
    assert len(asked) == 4
    said = capsys.readouterr().out
    assert "'numbers': type one of numpy, torch, python" in said
    assert "'2nd' is not a lower-case Python name: try 'nd'" in said
    assert "Prove it:        grade verify\nThe next stage:" in said
    course = read_course(here / "birds" / "course.toml")
    assert (course.name, course.preload, course.stages[0].slug) == ("paper", (), "fold")


def test_stopped_among_the_questions_it_writes_nothing(
    here: Path, typing: Callable[..., list[str]]
) -> None:
    typing("birds")
    assert main(["new", "--course", "birds"]) == 130
    assert tree(here) == {}


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prepare, told",
    [
        (
            lambda here: write_files(here, {"origami/notes.txt": "mine"}),
            "origami: is not empty: choose a new folder",
        ),
        (
            lambda here: write_files(here, {"origami": "mine"}),
            "origami: cannot hold a course: Not a directory",
        ),
        (
            lambda here: new_course(here / "origami", "Mine"),
            "origami: is a course already: `grade new STAGE` adds to it",
        ),
        (lambda here: new_course(here, "Mine", name="mine"), ": choose another folder"),
    ],
)
def test_a_folder_that_is_taken_stays_as_it_is(
    here: Path, prepare: Callable[[Path], None], told: str
) -> None:
    prepare(here)
    before = tree(here)
    with pytest.raises(KitError) as refused:
        new_course(here / "origami", "Fold")
    assert str(refused.value).endswith(told)
    assert tree(here) == before


def test_what_cannot_be_a_course_leaves_nothing(here: Path) -> None:
    with pytest.raises(KitError, match="'my birds': name the course with letters"):
        new_course(here / "birds", "Fold", name="my birds")
    with pytest.raises(KitError, match="'random' is a module of Python's standard library"):
        new_course(here / "birds", "Fold", first=Wanted("random", "x"))
    assert tree(here) == {}
    (here / "birds").mkdir()
    assert new_course(here / "birds", "Fold")[0].name == "birds", "an empty folder will do"
    assert new_course(here / "my (paper) birds", "Fold")[0].name == "my-paper-birds"


def test_a_title_is_made_of_a_name() -> None:
    assert [title_of(name) for name in ("half_turn", "BPE-in.python")] == [
        "Half turn",
        "BPE in python",
    ]
