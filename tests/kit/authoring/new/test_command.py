"""`grade new`: what it says, and where it refuses to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.command.main import main
from grader.learning.workspace.scaffold import make_workspace
from grader.read.course_file import read_course
from tests.kit.tiny import Capture


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRADE_COURSE", raising=False)
    return tmp_path


def refused(words: list[str], capsys: Capture) -> str:
    """The one line that `grade new` ends with."""
    assert main(["new", *words]) == 2
    captured = capsys.readouterr()
    [line] = captured.err.splitlines()
    assert captured.out == "" and len(line) <= 80
    return line.removeprefix("grade: ")


def test_a_stage_is_told_file_by_file_and_then_what_to_type(birds: Path, capsys: Capture) -> None:
    assert main(["new", "tail", "--title", "The tail", "--after", "fold"]) == 0
    assert capsys.readouterr().out == (
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
    birds: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(birds.parent)
    words = ["new", "tail", "--title", "The tail", "--bonus", "--course", birds.name]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert f"grade verify tail --course {birds.name}\n" in out
    assert out.startswith(f"In {birds.name}:\nadded to: course.toml\nwritten: solutions/tail.py\n")
    assert read_course(birds / "course.toml").stage("tail").bonus


def test_the_untouched_stage_is_not_started(birds: Path, capsys: Capture) -> None:
    main(["new", "tail", "--title", "The tail"])
    assert main(["tail"]) == 1
    assert "not started" in capsys.readouterr().out
    assert main(["tail", "--submission", "solutions"]) == 0


def test_a_course_is_told_with_one_command_to_try(here: Path, capsys: Capture) -> None:
    words = ["new", "--course", "origami", "--title", "Fold paper", "--first", "fold"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.startswith("In origami:\nwritten: course.toml\nwritten: README.md\n")
    assert out.splitlines()[-3:-1] == [
        "Go there:        cd origami",
        "Prove it:        grade verify",
    ]
    assert main(["--course", "origami", "--submission", "origami/solutions"]) == 0


def test_no_check_of_a_new_stage_is_idle_and_no_mutant_lives(here: Path, capsys: Capture) -> None:
    main(["new", "--course", "origami", "--title", "Fold paper", "--first", "fold"])
    assert main(["verify", "--mutants", "--course", "origami"]) == 0
    assert "finds no mutant" not in capsys.readouterr().out


def test_every_fault_of_the_command_has_its_own_line(birds: Path, capsys: Capture) -> None:
    assert refused([], capsys).startswith("name the stage, or start a course: `grade new --course")
    assert refused(["tail"], capsys) == ('a title is missing: grade new tail --title "Half a turn"')
    assert refused(["tail", "--title", "x", "--after", "wing"], capsys) == (
        "--after: there is no stage 'wing'; did you mean 'wings'?"
    )
    assert refused(["random", "--title", "x"], capsys) == (
        "'random' is a module of Python's standard library: choose another slug"
    )
    assert refused(["tail", "--course", "no", "--title", "x"], capsys) == (
        "no: does not exist: without STAGE, `grade new` starts a course there"
    )
    assert refused(["tail", "--title", "x", "--library", "torch"], capsys) == (
        "--library is for a new course: leave out 'tail'"
    )


def test_every_fault_of_a_new_course_has_its_own_line(here: Path, capsys: Capture) -> None:
    assert refused(["--course", "no"], capsys).startswith("a title is missing: grade new --course")
    assert refused(["--course", "no", "--title", "x", "--bonus"], capsys).startswith(
        "--bonus needs a stage"
    )
    assert refused(["--course", "no", "--title", "x", "--function", "f(x)"], capsys) == (
        "--function and --class need a stage: name the first with --first SLUG"
    )
    assert list(here.iterdir()) == []


def test_a_course_file_that_cannot_be_read_is_told(birds: Path, capsys: Capture) -> None:
    (birds / "course.toml").write_text("schema = ", encoding="utf-8")
    assert main(["new", "tail", "--title", "x"]) == 2
    assert "course.toml: is not TOML" in capsys.readouterr().err
    assert not (birds / "solutions" / "tail.py").exists()


def test_the_course_of_the_package_is_not_added_to_from_elsewhere(
    here: Path, capsys: Capture
) -> None:
    told = "this is not a course's folder: go to one, or name it with --course DIR"
    assert refused(["tail", "--title", "x"], capsys) == told
    assert list(here.iterdir()) == []


def test_a_learners_folder_is_no_courses(
    birds: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    mine = tmp_path_factory.mktemp("mine")
    make_workspace(mine, read_course(birds / "course.toml"), None)
    monkeypatch.chdir(mine)
    assert refused(["tail", "--title", "x"], capsys).startswith("this is not a course's folder")
    monkeypatch.chdir(birds)
    assert main(["new", "--course", str(mine / "inside"), "--title", "x"]) == 2
    assert "is inside the course or workspace" in capsys.readouterr().err
