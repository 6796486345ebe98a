"""An exception that says nothing itself is explained, with the next step."""

from __future__ import annotations

from grader.run.failures import told


def test_a_debugger_is_sent_to_where_there_is_a_terminal() -> None:
    said = told({"type": "BdbQuit", "message": ""})
    assert said.startswith("BdbQuit: graded code has no terminal for a debugger; remove breakpoint")
    assert "`grade repro`" in said


def test_an_exit_is_told_to_return_a_value() -> None:
    said = told({"type": "SystemExit", "message": "all tests passed"})
    assert said == "SystemExit: your code called sys.exit() or quit(); return a value instead"
