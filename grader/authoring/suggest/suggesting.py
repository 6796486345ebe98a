"""Candidates for a stage's author: misconceptions, inputs that tell them apart, examples."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grader.authoring.suggest.behaviour import Answers, Find, How
from grader.authoring.suggest.candidates import Candidate, candidates
from grader.authoring.suggest.examples import examples
from grader.authoring.suggest.inputs import partings
from grader.authoring.suggest.types import Example, Mistake, Suggestions
from grader.authoring.suggest.writing import mistake_of
from grader.authoring.verify.runs import import_libraries
from grader.authoring.verify.todos import is_unwritten
from grader.authoring.verify.types import Progress
from grader.diagnosis.comparison.replies import Read
from grader.misconceptions import Misconception
from grader.read.faults import fault_of
from grader.read.misconceptions import read_misconceptions
from grader.read.stubs import parameters, read_source
from grader.run.facts import FINE
from grader.run.local_answers import LocalAnswers
from grader.run.solutions import at_hand
from grader.run.stopping import Stopped, stopped_after
from grader.run.under_check import StageUnderCheck
from grader.types.course import Course, Stage
from grader.types.errors import KitError

if TYPE_CHECKING:
    from grader.run.session import Checks

_SEED = 1
_MOST = 12  # mistakes to suggest for a stage
_FEWEST = 4  # for each entry point, if there are several
_TRIES = 300
_SILENT = 40  # changes that no check notices, for which an input is sought


def suggest(
    course: Course, stage: Stage, progress: Progress = lambda slug, done, total: None
) -> Suggestions:
    """What an author may keep for `stage`.

    `progress` counts the changes that have been tried. Raises KitError if the
    solution is not written, or no check calls it.
    """
    place = stage.place(stage.solution_file)
    if stage.fixture:
        raise KitError(f"{stage.slug}: learners write tests there, and tests have no mutants")
    if is_unwritten(stage.solution_file):
        raise KitError(f"{place}: is not written yet: suggestions are made from it")
    import_libraries(course)
    from grader.run.collecting import with_checks

    def body(checks: Checks) -> Suggestions:
        try:
            return _Suggesting(course, stage, checks, progress).all()
        except Exception as error:
            fault = fault_of(error, {stage.file_name: place})
            is_its_own = fault.startswith(place) or isinstance(error, (ImportError, AttributeError))
            if isinstance(error, KitError) or not is_its_own:
                raise
            raise KitError(f"{fault}: fix the solution first") from None

    return with_checks(course, [stage], body, seconds=course.limits.load_seconds)


@dataclass(frozen=True)
class _Known:
    """An implementation with its name and its answers to what the checks ask."""

    name: str
    find: Find
    answers: list[Read]


class _Suggesting:
    """Tries the changes of one solution."""

    def __init__(self, course: Course, stage: Stage, checks: Checks, progress: Progress) -> None:
        self._course = course
        self._stage = stage
        self._checks = checks
        self._progress = progress
        there = [each for each in course.stages if each.solution_file.is_file()]
        self._files = {each.file_name: each.solution_file.read_bytes() for each in there}
        self._source, self._place = read_source(stage)
        self._names = [entry.name for entry in stage.entry_points]
        self._reaching = _reaching(self._source, self._names)
        self._kept: list[Candidate] = []
        self._same: list[tuple[str, Find, str, Find]] = []  # pairs that no check tells apart
        self._tried = 0

    def all(self) -> Suggestions:
        """Everything to suggest."""
        stage = self._stage
        with at_hand(self._files, stage) as right:
            under_check = StageUnderCheck(stage, LocalAnswers(right, self._course.limits))
            facts = self._checks.run(stage, under_check, _SEED, "cpu")
            answers = Answers(facts, right)
            if not answers.count:
                place = stage.place(stage.check_file)
                raise KitError(f"{place}: no check calls the solution yet: write its inputs")
            written = _written(stage)
            known = list(self._known(written, answers, right))
        self._try(answers, known, right)
        calls = list(answers.calls(parameters(self._source)))
        return Suggestions(
            stage.slug,
            tuple(self._mistakes({mistake.id for mistake in written})),
            tuple(partings(calls, right, self._same)),
            tuple(_missing(examples(calls, right), self._source)),
            self._tried,
            tuple(dict.fromkeys(f.case.check for f in facts.cases if f.ending not in FINE)),
        )

    def _known(
        self, written: Iterable[Misconception], answers: Answers, right: Find
    ) -> Iterator[_Known]:
        """The misconceptions that the author has written so far and that checks notice."""
        for mistake in written:
            find = mistake.among(right)
            with suppress(Stopped):
                given = answers.of(find)
                if answers.how(given) is How.SAME:
                    self._same.append(("", right, mistake.id, find))
                else:
                    yield _Known(mistake.id, find, given)

    def _try(self, answers: Answers, known: list[_Known], right: Find) -> None:
        """Find the changes that behave like nothing known, until there are enough."""
        most = max(_FEWEST, _MOST // len(self._names))
        pool = list(candidates(self._source, self._place, self._names))[:_TRIES]
        found: Counter[str] = Counter()
        for candidate in pool:
            entry = self._reaching.get(candidate.function, "")
            self._tried += 1
            self._progress(self._stage.slug, self._tried, len(pool))
            if not entry or found[entry] == most:
                continue
            one = self._changed(candidate, entry, answers, right)
            if one is None:
                continue
            how = answers.how(one.answers)
            if how is How.SAME and len(self._same) < _SILENT:
                self._same.append(("", right, one.name, one.find))
            if how is not How.OTHER:
                continue
            alike = next((k for k in known if answers.are_same(one.answers, k.answers)), None)
            if alike is not None:
                self._same.append((alike.name, alike.find, one.name, one.find))
                continue
            known.append(one)
            self._kept.append(candidate)
            found[entry] += 1

    def _changed(
        self, candidate: Candidate, entry: str, answers: Answers, right: Find
    ) -> _Known | None:
        """A changed solution; None if it cannot be imported or does not end."""
        files = {**self._files, self._stage.file_name: candidate.mutant.source.encode()}
        try:
            with stopped_after(self._course.limits.load_seconds), at_hand(files, self._stage) as it:
                changed = it(entry)

            def find(name: str) -> Any:
                return changed if name == entry else right(name)

            return _Known(_change(candidate), find, answers.of(find))
        except KeyboardInterrupt:
            raise
        except (BaseException, Stopped):  # noqa: BLE001 - a wrong answer may raise anything
            return None

    def _mistakes(self, taken: set[str]) -> Iterator[Mistake]:
        """The kept candidates as misconceptions."""
        sources = {
            name.removesuffix(".py"): data.decode("utf-8-sig") for name, data in self._files.items()
        }
        for candidate in self._kept:
            entry = self._reaching[candidate.function]
            words = f"{entry}_{candidate.mutant.operator}"
            ids = (words if at == 1 else f"{words}_{at}" for at in range(1, len(taken) + 2))
            id = next(each for each in ids if each not in taken)
            taken.add(id)
            yield mistake_of(id, entry, candidate.mutant, sources)


def _written(stage: Stage) -> tuple[Misconception, ...]:
    """The stage's misconceptions; maybe none yet."""
    try:
        is_begun = "@misconception" in stage.misconceptions_file.read_text("utf-8-sig")
    except OSError:
        return ()
    return read_misconceptions(stage) if is_begun else ()


def _missing(found: Iterable[Example], source: str) -> Iterator[Example]:
    """The examples of functions whose docstrings have none."""
    nodes = ast.parse(source).body
    documented = {
        node.name
        for node in nodes
        if isinstance(node, _DEFINITION) and ">>>" in (ast.get_docstring(node) or "")
    }
    return (example for example in found if example.entry not in documented)


def _change(candidate: Candidate) -> str:
    """A change in words: the lines before and after."""
    mutant = candidate.mutant
    before, after = (" ".join(lines) for lines in (mutant.before, mutant.after))
    if not (before and after):
        return f"`{after}` added" if after else f"`{before}` removed"
    return f"`{before}` -> `{after}`"


def _reaching(source: str, entries: Sequence[str]) -> Mapping[str, str]:
    """For each definition of a solution the first entry point that uses it, itself above all."""
    nodes = {node.name: node for node in ast.parse(source).body if isinstance(node, _DEFINITION)}
    found = {entry: entry for entry in entries}
    for entry in entries:
        waiting = [entry]
        while waiting:
            node = nodes.get(waiting.pop())
            for each in ast.walk(node) if node else ():
                if isinstance(each, ast.Name) and each.id in nodes and each.id not in found:
                    found[each.id] = entry
                    waiting.append(each.id)
    return found


_DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
