"""The proof of one stage while it is being made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.authoring.verify.author_files import file_problems, missing_files
from grader.authoring.verify.todos import is_unwritten, stage_todos
from grader.authoring.verify.types import CheckProof, MisconceptionProof, StageProof
from grader.types.course import Stage
from grader.types.text import listed

if TYPE_CHECKING:
    from grader.authoring.verify.tolerances import Shares


class Draft:
    """The results of a stage so far, starting with the faults that its files show unrun."""

    def __init__(self, stage: Stage, fault: str) -> None:
        self.stage = stage
        self.problems = list(missing_files(stage))
        self.is_complete = not self.problems and not fault
        needed = (stage.solution_file, stage.check_file)
        self.can_run = not fault and all(file.is_file() for file in needed)
        unwritten = [stage.place(file) for file in needed if self.can_run and is_unwritten(file)]
        self.is_unwritten = bool(unwritten)
        self.can_run &= not unwritten
        self.notes: list[str] = []
        if unwritten:
            self.notes.append(f"{stage.slug} does not run yet: write {listed(unwritten)}")
        self.checks: list[CheckProof] = []
        self.misconceptions: list[MisconceptionProof] = []
        self.accepted: list[str] = []
        self.skipped: tuple[str, ...] = ()
        self.seeds = 0
        self.right: list[Shares] = []
        self.wrong: dict[str, Shares] = {}
        self.faint: set[str] = set()
        self.problems += [fault] if fault else []
        self.problems += file_problems(stage, is_broken=bool(fault))

    def proof(self) -> StageProof:
        """The finished proof."""
        from grader.authoring.verify.tolerances import largest, tolerance_problems, tolerance_proofs

        right = largest((spot.check, one) for own in self.right for spot, one in own.items())
        tolerances = tuple(tolerance_proofs(right, self.wrong, self.faint))
        problems = [*self.problems, *tolerance_problems(tolerances)]
        using = [told.partition(": ")[0] for told in problems if " uses a solution: " in told]
        kinds = ("ImportError", "ModuleNotFoundError")  # which come of that
        follow = tuple(f"{place}: {kind}" for place in using for kind in kinds)
        problems = [told for told in problems if not told.startswith(follow)]
        return StageProof(
            self.stage.slug,
            self.seeds,
            tuple(self.checks),
            tuple(self.misconceptions),
            tuple(self.accepted),
            tolerances,
            tuple(dict.fromkeys(problems)),
            stage_todos(self.stage),
            tuple(self.notes),
            self.skipped,
        )
