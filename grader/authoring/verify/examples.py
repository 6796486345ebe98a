"""The examples in a stage's docstrings, run as a learner may run them."""

from __future__ import annotations

import ast
import doctest
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from grader.authoring.verify.runs import silence
from grader.run.stopping import stopped_after
from grader.types.course import Stage

_LONGEST = 80  # characters of code or of a result in a message
_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Fault:
    """What is wrong with an example, in words, and its line; it `raises` instead of answering."""

    line: int
    text: str
    raises: bool = False


def example_faults(source: str, names: Mapping[str, Any], seconds: float) -> Iterator[Fault]:
    """The first wrong example of each docstring in `source`, run with these names.

    The examples of one docstring may take `seconds` in all.
    """
    for node in ast.walk(ast.parse(source)):
        text = ast.get_docstring(node, clean=False) if isinstance(node, _Documented) else None
        if text is None:
            continue
        first = node.body[0].lineno  # type: ignore[attr-defined]
        try:
            test = doctest.DocTestParser().get_doctest(text, dict(names), "example", None, first)
            with stopped_after(seconds):
                doctest.DebugRunner().run(test)
        except ValueError as error:
            yield Fault(first, f"an example cannot be read: {error}")
        except doctest.DocTestFailure as failure:
            example = failure.example
            code, got, want = map(_short, (example.source, failure.got, example.want))
            line = first + example.lineno
            yield Fault(line, f"the example `{code}` gives {got}, not {want}")
        except doctest.UnexpectedException as failure:
            kind, raised, _ = failure.exc_info
            code = _short(failure.example.source)
            line = first + failure.example.lineno
            yield Fault(line, f"the example `{code}` raises {kind.__name__}: {raised}", raises=True)


class Examples:
    """The examples of one stage; those of a docstring may take `seconds`.

    What the solution gives must be what they say. Other right answers may print, round or name
    their classes otherwise, but they must not raise.
    """

    def __init__(self, stage: Stage, seconds: float) -> None:
        self._stage = stage
        self._seconds = seconds
        self._place = stage.place(stage.solution_file)
        self._source = stage.solution_file.read_text(encoding="utf-8-sig")
        self._names: dict[str, Any] = {}
        self._are_right = False

    def of_solution(self) -> list[str]:
        """Messages about wrong examples; the solution can be imported."""
        self._names = dict(vars(importlib.import_module(self._stage.slug)))
        faults = self._run()
        self._are_right = not faults
        return [f"{self._place}:{fault.line}: {fault.text}" for fault in faults]

    def of_answer(self) -> list[str]:
        """The faults of another right answer, which can be imported: what it raises.

        Nothing is run before the solution's own examples are right: one may take all its time.
        """
        raising = (each for each in (self._run() if self._are_right else ()) if each.raises)
        return [f"fails in {self._place}:{fault.line}: {fault.text}" for fault in raising]

    def _run(self) -> list[Fault]:
        # An answer may lack a library that the examples use.
        names = {**self._names, **vars(importlib.import_module(self._stage.slug))}
        with silence():
            return list(example_faults(self._source, names, self._seconds))


def _short(text: str) -> str:
    """A text on one line."""
    line = " ".join(text.split()) or "nothing"
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
