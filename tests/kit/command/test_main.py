"""The table of commands."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

import grader.command
from grader.command.main import _COMMANDS, main, parser_of

# What is in the folder of the commands and is none.
PARTS = {"__init__", "main", "output", "picture", "stage", "editor", "mutants"}


@pytest.mark.parametrize("name", _COMMANDS)
def test_a_command_has_a_module_that_says_what_it_is(name: str) -> None:
    parser = parser_of(name)
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    command = commands.choices[name]
    assert command.description
    assert "--plain" in command.format_help() or name == "release"


def test_every_module_of_a_command_is_in_the_table() -> None:
    (folder,) = grader.command.__path__
    modules = {file.stem for file in Path(folder).glob("*.py")} - PARTS
    assert {name for name in modules if not name.startswith("release_")} == {
        module for module, _ in _COMMANDS.values()
    }


@pytest.mark.parametrize(
    "words, said",
    [
        (
            "heatmap --output=x.png",
            "`grade heatmap` has no option --output (did you mean '--out'?)",
        ),
        ("--al softmax --deivce cpu", "`grade` has no option --deivce (did you mean '--device'?)"),
        ("hint softmax 1 2", "`grade hint` has nothing to do with '2'"),
        ("release student --verbose", "`grade release` has no option --verbose"),
    ],
)
def test_what_a_command_does_not_take_is_told_in_a_line(
    capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    assert main(words.split()) == 2
    name = words.split()[0] if words[0] != "-" else "grade"
    told = f"grade: {said}; `grade {name} --help` shows what it takes\n"
    assert capsys.readouterr() == ("", told)


def test_the_help_names_the_commands_that_people_type(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    for name, (_, about) in _COMMANDS.items():
        assert (f"\n    {name} " in shown) == (about is not None)
