"""Candidates for a stage's author: misconceptions, inputs that tell them apart, examples."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grader.authoring.suggest.behaviour import Answers, Find, How
from grader.authoring.suggest.candidates import Candidate, candidates
from grader.authoring.suggest.examples import examples
from grader.authoring.suggest.inputs import partings
from grader.authoring.suggest.types import Mistake, Suggestions
from grader.authoring.suggest.writing import mistake_of
from grader.authoring.verify.runs import import_libraries
from grader.authoring.verify.todos import is_unwritten
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
    course: Course, stage: Stage, progress: Callable[[int, int], None] = lambda done, total: None
) -> Suggestions:
    """What an author may keep for `stage`.

    `progress` is called with the number of tried changes, and of all. Raises KitError if the
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

    def __init__(
        self, course: Course, stage: Stage, checks: Checks, progress: Callable[[int, int], None]
    ) -> None:
        self._course = course
        self._stage = stage
        self._checks = checks
        self._progress = progress
        there = [each for each in course.stages if each.solution_file.is_file()]
        self._files = {each.file_name: each.solution_file.read_bytes() for each in there}
        source, self._place = read_source(stage)
        self._source = source.replace("\r\n", "\n")
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
            known = list(self._known(answers, right))
            taken = {mistake.id for mistake in _written(stage)}
        self._try(answers, known, right)
        calls = list(answers.calls(parameters(self._source)))
        return Suggestions(
            stage.slug,
            tuple(self._mistakes(taken)),
            tuple(partings(calls, right, self._same)),
            tuple(examples(calls, right)),
            self._tried,
            tuple(dict.fromkeys(f.case.check for f in facts.cases if f.ending not in FINE)),
        )

    def _known(self, answers: Answers, right: Find) -> Iterator[_Known]:
        """The misconceptions that the author has written so far."""
        for mistake in _written(self._stage):
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
            self._progress(self._tried, len(pool))
            if not entry or found[entry] == most:
                continue
            changed = self._implementation(candidate, entry)
            if changed is None:
                continue
            find = _with(entry, changed, right)
            try:
                given = answers.of(find)
            except Stopped:
                continue
            name, how = _change(candidate), answers.how(given)
            if how is How.SAME and len(self._same) < _SILENT:
                self._same.append(("", right, name, find))
            if how is not How.OTHER:
                continue
            alike = next((k for k in known if answers.are_same(given, k.answers)), None)
            if alike is not None:
                self._same.append((alike.name, alike.find, name, find))
                continue
            known.append(_Known(name, find, given))
            self._kept.append(candidate)
            found[entry] += 1

    def _implementation(self, candidate: Candidate, entry: str) -> Any:
        """An entry point of a changed solution; None if it cannot be imported."""
        files = {**self._files, self._stage.file_name: candidate.mutant.source.encode()}
        try:
            with stopped_after(self._course.limits.load_seconds), at_hand(files, self._stage) as it:
                return it(entry)
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
            entry, mutant = self._reaching[candidate.function], candidate.mutant
            words = f"{entry}_{mutant.operator}"
            ids = (words if at == 1 else f"{words}_{at}" for at in range(1, len(taken) + 2))
            id = next(each for each in ids if each not in taken)
            taken.add(id)
            change = (mutant.before, mutant.after)
            yield mistake_of(id, entry, change, mutant.source, sources, candidate.function)


def _written(stage: Stage) -> tuple[Misconception, ...]:
    """The stage's misconceptions; maybe none yet."""
    try:
        is_begun = "@misconception" in stage.misconceptions_file.read_text("utf-8-sig")
    except OSError:
        return ()
    return read_misconceptions(stage) if is_begun else ()


def _with(entry: str, changed: Any, right: Find) -> Find:
    """The solution's entry points, of which one is replaced, as a misconception does it."""
    return lambda name: changed if name == entry else right(name)


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
