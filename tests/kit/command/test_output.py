"""What a command says on stderr is readable in a narrow terminal and whole in a file."""

from __future__ import annotations

import pytest

from grader.command.output import complain

FAULT = "'unheard-of' is no stage; `grade list` shows those of this course"


@pytest.mark.parametrize("terminal", [True, False])
def test_only_a_terminal_breaks_an_error_and_only_between_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    complain(FAULT)
    lines = capsys.readouterr().err.splitlines()
    assert " ".join(lines) == f"grade: {FAULT}"
    assert (max(map(len, lines)) <= 20) is terminal
