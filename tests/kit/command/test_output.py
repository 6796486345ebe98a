"""What a command says on stderr is readable in a narrow terminal and whole in a file."""

import argparse
from pathlib import Path

import pytest

from grader.classes.progress_bar import progress_bar
from grader.command.output import complain, console, stage_bar
from grader.show.screen import Screen
from tests.kit.support.tiny import Capture

FAULT = "'unheard-of' is no stage; `grade list` shows those of this course"


@pytest.mark.parametrize("terminal", [True, False])
def test_only_a_terminal_breaks_an_error_and_only_between_words(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    complain(FAULT)
    lines = capsys.readouterr().err.splitlines()
    assert " ".join(lines) == f"grade: {FAULT}"
    assert (max(map(len, lines)) <= 20) is terminal


@pytest.mark.parametrize("place", ["a terminal", "a cell", "a log"])
def test_only_a_terminal_gets_a_bar_because_cells_and_logs_keep_every_line(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # for rich, stderr is then a terminal
    monkeypatch.setattr("sys.stderr.isatty", lambda: place != "a log")
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    if place == "a cell":
        monkeypatch.setenv("JPY_PARENT_PID", "1")
    args = argparse.Namespace(plain=False)
    with stage_bar(args) as tell:
        tell("softmax", 1, 6)
    with progress_bar(args, "grading", 2) as advance:
        advance()
    assert ("1/6" in capsys.readouterr().err) is (place == "a terminal")


@pytest.mark.parametrize("plain", [True, False])
def test_a_command_to_type_names_the_course_that_was_named_and_is_never_cut(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, plain: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    typed = ["grade", f"grade hint {'a' * 40}", "nbgrader list", "grade list --course there"]
    offers = Screen(lambda page: (line for each in typed for line in page.offer("Type:", each)))
    for course, more in ((None, ""), (Path("my course"), " --course 'my course'")):
        console(argparse.Namespace(plain=plain, course=course)).print(offers, end="")
        lines = capsys.readouterr().out.replace("Type:", "").splitlines()
        shown = [line.strip() for line in lines if line.strip()]
        assert shown == [f"{typed[0]}{more}", f"{typed[1]}{more}", *typed[2:]]


@pytest.mark.parametrize(("plain", "width"), [(False, 60), (True, 10_000)])
def test_a_dumb_terminal_is_as_wide_as_it_says_and_plain_lines_stay_whole_there(
    monkeypatch: pytest.MonkeyPatch, plain: bool, width: int
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal for rich
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert console(argparse.Namespace(plain=plain, course=None)).width == width
