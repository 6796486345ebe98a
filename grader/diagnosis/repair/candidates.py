"""Runs a stage's checks on edited submissions, in locked workers as every submission is run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from grader.diagnosis.repair.edits import MODULES
from grader.diagnosis.repair.edits.edit import Edit
from grader.diagnosis.reruns import Cancellable, Reruns
from grader.read.stubs import parameters, read_stub
from grader.run.answers import WorkerAnswers
from grader.run.budget import Budget
from grader.run.facts import FINE, Case, CaseFact, Ending, StageFacts
from grader.run.importing import Import
from grader.run.parts import Parts
from grader.run.reader import Reader, SourceReader, sent_along
from grader.run.sources import all_sources
from grader.run.workers import Worker
from grader.types.submission import Submission

_LOOKS = 2  # failing cases of different checks that a candidate must pass first
_PATIENCE = 5.0  # times the seconds of the failing cases
_AGAIN = 3  # definitions that replace earlier ones, the last, are left out
_SHORTEST = 0.3  # seconds; less would stop a right edit on a busy machine
_NEXT = 3  # lines, from the one where the last right value is made
_BEFORE = 8  # lines, to the one where the first wrong value is made: others may be other functions
_FRAME = re.compile(r"^  (\S.*), line (\d+)(?:, in |$)", re.MULTILINE)
_FAILED = (Ending.WRONG, Ending.RAISED)


@dataclass(frozen=True)
class _Goal:
    """What an edit must make pass: the `first` cases of two failing checks, and then the `rest`.

    `others` are the cases of the checks that fail for another cause. `way` is how all answers of
    this cause are wrong, "" if in several ways.
    """

    first: tuple[CaseFact, ...]
    rest: tuple[Case, ...]
    others: Mapping[str, Sequence[Case]]
    way: str


def _goal(facts: StageFacts, cause: frozenset[str]) -> _Goal:
    """The goal for a stage of which these checks fail for one cause."""
    quick = sorted(facts.cases, key=lambda fact: fact.seconds)
    failing = [fact for fact in quick if fact.ending in _FAILED]
    first: dict[str, CaseFact] = {}
    others: dict[str, list[Case]] = {}
    for fact in failing:
        if fact.case.check in cause:
            first.setdefault(fact.case.check, fact)
        else:
            others.setdefault(fact.case.check, []).append(fact.case)
    looks = tuple(first.values())[:_LOOKS]
    by_failure = sorted(facts.cases, key=lambda fact: fact.ending is Ending.PASSED)
    rest = tuple(
        fact.case
        for fact in by_failure
        if (fact.case.check in cause or fact.ending in FINE) and fact not in looks
    )
    ways = {fact.way for fact in failing if fact.case.check in cause}
    return _Goal(looks, rest, others, ways.pop() if len(ways) == 1 else "")


class Candidates(Cancellable):
    """Edited versions of one submission that fails one stage.

    All first looks share one worker, where a wrong candidate can spoil the looks after it. So
    whether the stage passes is found out in a new worker. Nothing takes longer than the `budget`.
    `near` are texts that name lines near the mistake.
    """

    def __init__(
        self,
        reruns: Reruns,
        reader: Reader,
        facts: StageFacts,
        cause: frozenset[str],
        near: Sequence[str],
        budget: Budget,
    ) -> None:
        self._reruns = reruns
        # It is run again and again.
        source = SourceReader(reader, reruns.submission)
        self._submission = Parts(reruns.course, reruns.submission, source).alone(reruns.stage)
        self._near = near
        self._budget = budget
        self._reader = reader
        self._sources = dict(all_sources(self._submission))
        self._goal = _goal(facts, cause)
        accepting = {check.id for check in facts.planned if check.pays}
        self.asks_little = asks_little(cause, accepting, len(self._goal.others))
        self._raised: int | None = None  # statements of the cells that fail, unedited
        self._worker: Worker | None = None

    def has_time(self) -> bool:
        """Whether another candidate may run. Raises Cancelled after `cancel`."""
        self.go_on()
        return not self._budget.is_spent

    def text(self, source: str) -> str:
        """The text of a source."""
        return self._sources[source]

    @property
    def first(self) -> Sequence[CaseFact]:
        """The failing cases that a candidate must pass first."""
        return self._goal.first

    def edits(self) -> list[Edit]:
        """The edits of what the failing call reaches, likeliest first; read in a worker.

        There are none if the first failing cases pass without an edit: they would pass with any.
        """
        if not self._sources or not self._fails_unedited():
            return []
        found = self._reader.ask(self._about(), max(self._budget.left, 0.0))
        if found is None:
            return []
        part = self._submission, dict(found["sources"]), self._raised
        self._submission, self._sources = self._reruns.submission, dict(found["whole"])
        self._raised = None
        if to_leave_out := self._to_leave_out(_edits(found["beside"])):
            return to_leave_out
        self._submission, self._sources, self._raised = part
        return _edits(found["edits"])

    def _to_leave_out(self, beside: Sequence[Edit]) -> list[Edit]:
        """Those of the edits, which leave out what is beside the answer, that help.

        Most answers fail without all these statements too, which is one look.
        """
        again = [edit for edit in beside if edit.rule == "again"][-_AGAIN:]
        if found := [edit for edit in again if self._look([edit])[0]]:
            return found
        suspects = [edit for edit in beside if edit.rule != "again"]
        if not suspects or not self._look(suspects)[0]:
            return []
        while len(suspects) > 1:
            some, others = suspects[: len(suspects) // 2], suspects[len(suspects) // 2 :]
            suspects = others if self._look(others)[0] else some
        return suspects

    def _fails_unedited(self) -> bool:
        """Whether the submission fails; takes all cells if it does so only with those left out."""
        whole = self._reruns.submission
        if not self._passes_unedited():
            return True
        if self._submission == whole:
            return False
        self._submission, self._sources = whole, dict(all_sources(whole))
        return not self._passes_unedited()

    def _passes_unedited(self) -> bool:
        own = self._reruns.stage.file_name  # its text as UTF-8, whatever its bytes were
        source = own if own in self._sources else next(iter(self._sources))
        self._raised = None
        passes, self._raised = self._look([Edit(source, (), "", "", 0, 0, 0.0)])
        return passes

    def _look(self, edits: Sequence[Edit]) -> tuple[bool, int]:
        """Whether what failed first passes with all these edits, and the statements that raised.

        Much depends on this look: it gets a worker of its own, and as much time as all others.
        """
        with closing(self._answers(edits, Budget(self._budget.left / 2))) as answers:
            passes = self._passes(answers, [fact.case for fact in self.first])
            return passes, answers.raised_at_import

    def _about(self) -> dict[str, Any]:
        """The request for the edits."""
        stage, first = self._reruns.stage, self.first
        names = {entry.name for entry in stage.entry_points}
        lines = {name: lines_near(name, self._near) for name in self._sources}
        for fact in first:
            if fact.ending is Ending.RAISED:
                for name, line in _FRAME.findall(fact.message):
                    lines.setdefault(name, set()).add(int(line))
        entries = [entry.name for each in self._reruns.course.stages for entry in each.entry_points]
        return {
            "what": "sent",
            "modules": sent_along("grader.diagnosis.repair.edits", MODULES),
            "sources": list(self._sources.items()),
            "whole": list(all_sources(self._reruns.submission)),
            "targets": sorted({fact.target for fact in first if fact.target} or names),
            "others": [name for name in entries if name not in names],
            "lines": {name: sorted(own) for name, own in lines.items()},
            "way": self._goal.way,
            "signatures": parameters(read_stub(stage)),
            "is_notebook": self._submission.cells is not None,
        }

    def helps(self, edit: Edit) -> bool:
        """Whether the edited submission passes what failed first."""
        shortest = max(_SHORTEST, _PATIENCE * sum(fact.seconds for fact in self.first))
        answers = self._answers([edit], Budget(min(shortest, self._budget.left)), self._looking())
        return self._passes(answers, [fact.case for fact in self.first])

    def passes(self, edit: Edit) -> bool:
        """Whether the edited submission passes the stage, run as a submission is run."""
        with closing(self._answers([edit], self._budget)) as answers:
            return self._passes(answers, [*(fact.case for fact in self.first), *self._goal.rest])

    def also_passing(self, edit: Edit) -> frozenset[str]:
        """The other failing checks that the edited submission passes, as far as time allows."""
        with closing(self._answers([edit], self._budget)) as answers:
            return frozenset(
                check for check, cases in self._goal.others.items() if self._passes(answers, cases)
            )

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None and self._worker.is_there:
            self._worker.end()

    def _looking(self) -> Worker:
        if self._worker is None or not self._worker.is_there:
            self._worker = self._reruns.interpreter.start()
        return self._worker

    def _answers(
        self, edits: Sequence[Edit], budget: Budget, worker: Worker | None = None
    ) -> WorkerAnswers:
        runs, submission = self._reruns, self._edited(edits)
        importing = Import(runs.course, runs.stage, submission)
        answers = WorkerAnswers(runs.interpreter, importing, budget=budget, worker=worker)
        return self.begun(answers)

    def _edited(self, edits: Sequence[Edit]) -> Submission:
        texts = dict(self._sources)
        for edit in reversed(edits):  # the last of a source first
            texts[edit.source] = edit.applied(texts[edit.source])
        submission = self._submission
        if submission.cells is None:
            changed = {edit.source: texts[edit.source].encode() for edit in edits}
            return replace(submission, files={**submission.files, **changed})
        return replace(submission, cells=tuple(texts.values()))

    def _passes(self, answers: WorkerAnswers, cases: Sequence[Case]) -> bool:
        """Whether all pass; False if the edit makes one more cell fail."""
        facts = self._reruns.facts(answers, cases)
        if self._raised is not None and answers.raised_at_import > self._raised:
            return False
        return all(fact.ending in FINE for fact in facts) and not answers.forbidden


def _edits(data: Iterable[Sequence[Any]]) -> list[Edit]:
    """The edits that came as JSON data."""
    return [
        Edit(source, tuple((start, end, new) for start, end, new in parts), *more)
        for source, parts, *more in data
    ]


def asks_little(cause: Set[str], accepting: Set[str], others: int) -> bool:
    """Whether an answer that is wrong in another way may pass what the cause is about.

    Any answer of the right shape passes the checks `accepting`. `others` fail for other causes.
    """
    is_small = len(cause) < others and bool(cause & accepting)
    return is_small or (cause <= accepting and others > 0)


def lines_near(source: str, texts: Iterable[str]) -> set[int]:
    """The lines of a source between the first two that each text names, or after its only one.

    Of those between two, the last.
    """
    near: set[int] = set()
    for text in texts:
        named = re.findall(rf"(?<!\w){re.escape(source)}, line (\d+)", text)[:2]
        if named:
            first, last = int(named[0]), int(named[-1])
            if len(named) > 1:
                near |= {last, *range(max(first, last - _BEFORE), last)}
            else:
                near |= {*range(first, first + _NEXT)}
    return near
