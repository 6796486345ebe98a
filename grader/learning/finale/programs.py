"""The author's programs that train with the learner's code: hints/finale/<slug>.py."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from grader.read.faults import author_text
from grader.types.course import Course, Stage
from grader.types.errors import CourseError

_KEYS = {"class": str, "title": str, "about": str, "steps": int, "without": dict}


@dataclass(frozen=True)
class Program:
    """One training: `made_by` is its class in the file, `steps` how long it takes.

    `without` names the parts that it can leave out, each with what it is for.
    """

    stage: Stage
    name: str
    made_by: str
    title: str
    about: str
    steps: int
    without: dict[str, str]
    source: str

    @property
    def text(self) -> str:
        """The text to learn from, empty if there is none. Raises CourseError."""
        file = self.stage.finale_text
        return author_text(file, self.stage.place(file)) if file.is_file() else ""


def all_programs(course: Course) -> tuple[Program, ...]:
    """The programs of all stages, in the course's order. Raises CourseError."""
    stages = [stage for stage in course.stages if stage.finale_file.is_file()]
    return tuple(program for stage in stages for program in read_programs(stage))


def read_programs(stage: Stage) -> tuple[Program, ...]:
    """The programs of one stage's file; only a worker runs it. Raises CourseError."""
    place = stage.place(stage.finale_file)
    source = author_text(stage.finale_file, place)
    try:
        table = _constant(ast.parse(source), "PROGRAMS")
    except (SyntaxError, ValueError) as error:
        raise CourseError(f"{place}: PROGRAMS cannot be read: {error}") from None
    if not isinstance(table, dict) or not table:
        raise CourseError(f"{place}: has no table PROGRAMS")
    programs = []
    for name, facts in table.items():
        for key, kind in _KEYS.items():
            if not isinstance(facts, dict) or not isinstance(facts.get(key), kind):
                raise CourseError(f"{place}: PROGRAMS['{name}']: '{key}' must be {kind.__name__}")
        words = (facts["class"], facts["title"], facts["about"])
        programs.append(Program(stage, name, *words, facts["steps"], facts["without"], source))
    return tuple(programs)


def _constant(tree: ast.Module, name: str) -> Any:
    """The literal that is assigned to a name of the module, None if there is none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    return None
