"""`grade new`: what it says, and where it refuses to write."""

from pathlib import Path

import pytest

from grader.command.main import main
from grader.learning.workspace.scaffold import make_workspace
from grader.read.course_file import read_course
from tests.kit.support.tiny import Capture, Typed


@pytest.fixture
def fault(refused: Typed) -> Typed:
    """Type `grade new ...`, which is refused; why."""

    def type_it(*words: str) -> str:
        line = refused("new", *words).removesuffix("\n")
        assert len(line) <= 80
        return line.removeprefix("grade: ")

    return type_it


def test_a_stage_is_told_file_by_file_and_then_what_to_type(birds: Path, grade: Typed) -> None:
    assert grade("new", "tail", "--title", "The tail", "--after", "fold") == (
        "added to: course.toml\n"
        "written: solutions/tail.py\n"
        "written: exercises/tail.py\n"
        "written: tests/checks/test_tail.py\n"
        "written: hints/tail.md\n"
        "written: hints/misconceptions/tail.py\n"
        "written: tests/accepted/tail/another.py\n"
        "\n"
        "It has 10 points and requires no stage: change its table if needed.\n"
        "See what is left to do:        grade verify tail\n"
        "Prove it at every save:        grade watch --author tail\n"
        "Get misconceptions suggested:  grade suggest tail\n"
        "See what learners will see:    grade preview tail\n"
        "After a change in solutions/:  grade stubs\n"
    )
    slugs = [stage.slug for stage in read_course(birds / "course.toml").stages]
    assert slugs == ["fold", "tail", "wings", "nest"]


def test_from_elsewhere_the_next_commands_name_the_course(
    birds: Path, monkeypatch: pytest.MonkeyPatch, grade: Typed
) -> None:
    monkeypatch.chdir(birds.parent)
    words = ["new", "tail", "--title", "The tail", "--bonus", "--course", birds.name]
    out = grade(*words)
    assert f"grade verify tail --course {birds.name}\n" in out
    assert out.startswith(f"In {birds.name}:\nadded to: course.toml\nwritten: solutions/tail.py\n")
    assert read_course(birds / "course.toml").stage("tail").bonus


def test_the_untouched_stage_is_not_started(birds: Path, capsys: Capture) -> None:
    main(["new", "tail", "--title", "The tail"])
    assert main(["tail"]) == 1
    assert "not started" in capsys.readouterr().out
    assert main(["tail", "--submission", "solutions"]) == 0


def test_a_course_is_told_with_one_command_to_try(here: Path, grade: Typed) -> None:
    words = ["new", "--course", "origami", "--title", "Fold paper", "--first", "fold"]
    out = grade(*words)
    assert out.startswith("In origami:\nwritten: course.toml\nwritten: README.md\n")
    assert out.splitlines()[-3:-1] == [
        "Go there:        cd origami",
        "Prove it:        grade verify",
    ]
    assert main(["--course", "origami", "--submission", "origami/solutions"]) == 0


def test_no_check_of_a_new_stage_is_idle_and_no_mutant_lives(here: Path, grade: Typed) -> None:
    main(["new", "--course", "origami", "--title", "Fold paper", "--first", "fold"])
    assert "finds no mutant" not in grade("verify", "--mutants", "--course", "origami")


def test_every_fault_of_the_command_has_its_own_line(birds: Path, fault: Typed) -> None:
    assert fault().startswith("name the stage, or start a course: `grade new --course")
    assert fault("tail") == ('a title is missing: grade new tail --title "Half a turn"')
    assert fault("tail", "--course", "no", "--title", "x") == (
        "no: does not exist: without STAGE, `grade new` starts a course there"
    )
    assert fault("tail", "--title", "x", "--library", "torch") == (
        "--library is for a new course: leave out 'tail'"
    )


def test_every_fault_of_a_new_course_has_its_own_line(here: Path, fault: Typed) -> None:
    assert fault("--course", "no").startswith("a title is missing: grade new --course")
    assert fault("--course", "no", "--title", "x", "--bonus").startswith("--bonus needs a stage")
    assert fault("--course", "no", "--title", "x", "--function", "f(x)") == (
        "--function and --class need a stage: name the first with --first SLUG"
    )
    assert list(here.iterdir()) == []


def test_a_course_file_that_cannot_be_read_is_told(birds: Path, fault: Typed) -> None:
    (birds / "course.toml").write_text("schema = ", encoding="utf-8")
    assert "course.toml:1: write " in fault("tail", "--title", "x")
    assert not (birds / "solutions" / "tail.py").exists()


def test_the_course_of_the_package_is_not_added_to_from_elsewhere(here: Path, fault: Typed) -> None:
    told = "this is not a course's folder: go to one, or name it with --course DIR"
    assert fault("tail", "--title", "x") == told
    assert list(here.iterdir()) == []


def test_a_learners_folder_is_no_courses(
    birds: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    fault: Typed,
    refused: Typed,
) -> None:
    mine = tmp_path_factory.mktemp("mine")
    make_workspace(mine, read_course(birds / "course.toml"), None)
    monkeypatch.chdir(mine)
    assert fault("tail", "--title", "x").startswith("this is not a course's folder")
    monkeypatch.chdir(birds)
    error = refused("new", "--course", str(mine / "inside"), "--title", "x")
    assert "is inside the course or workspace" in error
