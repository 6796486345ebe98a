"""The table of commands."""

import argparse
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import grader
from grader.command.main import _COMMANDS, _FOR_AUTHORS, main, parser_of, with_command
from grader.read.course_file import RESERVED
from tests.kit.support.checkout import TINY
from tests.kit.support.tiny import Capture


@pytest.mark.parametrize("name", _COMMANDS)
def test_a_command_has_a_module_that_says_what_it_is(name: str) -> None:
    parser = parser_of([name])
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    command = commands.choices[name]
    assert command.description
    assert "--plain" in command.format_help() or name == "release"


def test_every_module_of_a_command_is_in_the_table() -> None:
    package = Path(grader.__file__).parent
    files = [file.relative_to(package) for file in package.rglob("*command.py")]
    modules = {".".join(file.with_suffix("").parts) for file in files}
    parts = {"channels.points_command", "channels.github_command"}  # of `grade release`
    parts |= {"channels.gradescope_command", "channels.student_command"}
    parts |= {"classes.nbgrader.release_command"}
    parts |= {"classes.folder.grade_command", "classes.nbgrader.grade_command"}  # of `grade class`
    parts |= {"classes.why.command"}
    named = {module for module, _ in _COMMANDS.values()} - {"command.grade"}
    assert modules == named | parts | set(_FOR_AUTHORS.values())


def test_no_stage_hides_a_command() -> None:
    assert {*_COMMANDS, "all", "help"} == RESERVED


@pytest.mark.parametrize(
    "words, said",
    [
        ("heatmap --output=x", "`grade heatmap` has no option --output (did you mean '--out'?)"),
        ("--al softmax --deivce cpu", "`grade` has no option --deivce (did you mean '--device'?)"),
        ("hint softmax 1 2", "`grade hint` does not accept '2'"),
        ("release student --verbose", "`grade release` has no option --verbose"),
        ("--seed x", "argument --seed: invalid int value: 'x'"),
        ("reset", "the following arguments are required: STAGE"),
    ],
)
def test_what_a_command_does_not_take_is_told_in_a_line(
    capsys: Capture, words: str, said: str
) -> None:
    assert main(words.split()) == 2
    name = words.split()[0] if words[0] != "-" else "grade"
    told = f"grade: {said}; `grade {name} --help` shows its options\n"
    assert capsys.readouterr() == ("", told)


def test_the_options_of_every_command_may_stand_before_it() -> None:
    assert with_command(["--plain", "hint", "2"]) == ["hint", "2", "--plain"]
    assert with_command(["--course", "list", "list"]) == ["list", "--course", "list"]
    assert with_command(["--course=a", "--plain"]) == ["grade", "--course=a", "--plain"]


def test_help_is_a_word_too() -> None:
    assert with_command(["help"]) == ["--help"]
    assert with_command(["help", "hint"]) == ["hint", "--help"]
    assert with_command(["help", "softmax"]) == ["grade", "softmax", "--help"]


def test_the_help_names_the_commands_that_people_type(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    for name, (_, about) in _COMMANDS.items():
        has_line = any(f"\n    {name}{end}" in shown for end in " \n")  # a long name has its own
        assert has_line == (about is not None)


def test_a_folder_that_is_no_longer_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main(["list"]) == 2
    assert capsys.readouterr().err.startswith("grade: this folder has been removed")


LINE = [sys.executable, "-m", "grader", "--submission", "solutions", "--plain"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no file here that is always full")
def test_a_full_disk_is_told_in_one_line() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(LINE, cwd=TINY.root, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("grade: the operating system refused a request: ")


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_a_warning_about_a_source_that_is_only_read_is_not_shown() -> None:
    """From Python 3.12 on, ast.parse warns of "\\sum" in a docstring."""
    assert main(["list", "--course", str(TINY.root)]) == 0
    warnings.warn_explicit("invalid escape sequence", SyntaxWarning, "<unknown>", 1)


def test_it_grades_under_one_who_ignores_the_end_of_children() -> None:
    done = subprocess.run(["sh", "-c", 'trap "" CHLD; exec "$@"', "sh", *LINE], cwd=TINY.root)
    assert done.returncode == 0
