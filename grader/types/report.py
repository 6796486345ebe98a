"""The report on one submission, which every channel (terminal, JSON, notebook ...) shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from textwrap import shorten
from typing import Any, get_type_hints

from grader.types.course import core_of
from grader.types.text import is_unloaded, listed, safe_data

SCHEMA = 1
REFUSED = "can-be-read"  # the only check of a refused submission; no test can have this name
_SMALL = 12  # numbers of an input
_MOST = 1e12  # points or seconds
_SAID = 160  # characters of a message beside a hint
_SEED = "seed "
_NOT_HERE, _MODULE = "nor installed here", re.compile(r"No module named '(\w+)")
_NAMED = 3  # modules in a sentence
# The parts of a message that explain: the lines to look at, and an exception in plain words.
_WHY = re.compile(r"\n  (look at|in words) .*(\n {4}.*)*")
# The start of a note in a report.
UNLOCKED = "graded without a complete lock; missing on this machine: "


class Outcome(str, Enum):
    """How one check ended. FAILED is the learner's fault, ERROR is not; TIMEOUT gave no answer."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"
    TIMEOUT = "timeout"


class Way(Enum):
    """The way in which an answer is wrong."""

    SHAPE = "shape"
    VALUES = "values"
    GRADIENT = "gradient"
    DTYPE = "dtype"
    DEVICE = "device"
    IN_PLACE = "in place"
    NO_ERROR = "no error"  # where one was expected, or another error


FORBIDDEN = "forbidden"  # also a way to fail, although it is not about an answer
NOT_WRITTEN = "not written"
EARLIER = "earlier stage"  # only the stages that it uses make it fail


class Status(str, Enum):
    """The status of one stage. NOT_STARTED is an unchanged stub; ERROR is the grader's fault."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_STARTED = "not_started"
    ERROR = "error"


class Kind(str, Enum):
    """How the reason of a failure was found, the strongest evidence first."""

    NAME = "name"  # the answers equal those of a known misconception
    SYMPTOM = "symptom"  # a relation between what came and what was expected
    VALUE = "value"  # the first intermediate value that the code does not make
    PLACE = "place"  # the smallest edit of the learner's code with which the stage passes


@dataclass(frozen=True)
class Diagnosis:
    """Why a check fails; `hint` is the rung about it.

    An `id` such as "symptom:factor" begins with its kind; any other is a misconception's.
    `place` is where: the file and line, and below it the code with a caret under the expression.
    `repair` is that code as it would pass, which only the last hint may tell.
    """

    id: str
    text: str
    hint: int | None = None
    place: str = ""
    repair: str = ""

    @property
    def kind(self) -> Kind:
        """How the reason was found."""
        kinds = (kind for kind in Kind if self.id.startswith(f"{kind.value}:"))
        return next(kinds, Kind.NAME)

    @property
    def opening(self) -> str:
        """What stands before the text: a name is a guess about the code, the rest are facts."""
        return "Likely: " if self.kind is Kind.NAME else ""


@dataclass(frozen=True)
class CheckResult:
    """One check of one stage: its outcome, its points and the message for the learner.

    Checks that fail in one `way` may do so for one reason; `size` is how many numbers the failing
    call received. `hint` is the rung for learners who fail the check.
    """

    id: str
    title: str
    outcome: Outcome
    score: float
    max_score: float
    message: str = ""
    diagnosis: Diagnosis | None = None
    seconds: float = field(default=0.0, compare=False)
    way: str = ""
    size: int = 0
    hint: int | None = None

    @property
    def is_named(self) -> bool:
        """Whether it fails because of a known mistake."""
        return self.diagnosis is not None and self.diagnosis.kind is Kind.NAME


@dataclass(frozen=True)
class Cause:
    """What one mistake does: the checks that fail by it, the one to `show` and the others."""

    show: CheckResult
    others: tuple[CheckResult, ...] = ()

    @property
    def checks(self) -> tuple[CheckResult, ...]:
        """All of them."""
        return (self.show, *self.others)

    @property
    def lost(self) -> float:
        """The points that it costs."""
        return sum(check.max_score - check.score for check in self.checks)


# Ways to fail that come after what a stage is about; a later one is fixed later.
_LATER = {
    **dict.fromkeys((Way.GRADIENT.value, Way.DTYPE.value, Way.DEVICE.value), 1),
    FORBIDDEN: -1,  # without the call the answer is another one
    Way.IN_PLACE.value: 1,
    **dict.fromkeys((Way.NO_ERROR.value, NOT_WRITTEN), 2),
    EARLIER: 3,
}


@dataclass(frozen=True)
class StageResult:
    """One stage: its checks in order; `caused_by` is the slug of the earlier stage to fix first.

    `printed` is the output of the learner's own code, trimmed and safe to show. With `is_partial`
    only the visible checks ran, and none if there are no `checks`. `perhaps` is the earlier stage
    that may be the cause: without solutions, and for a class, that is uncertain. `is_exam` if it
    belongs to an exam. `why_not_started` is a sentence for a learner who has written something and
    has only a stub.
    """

    slug: str
    title: str
    status: Status
    score: float
    max_score: float
    bonus: bool
    checks: tuple[CheckResult, ...]
    caused_by: str | None = None
    printed: str = ""
    is_partial: bool = False
    perhaps: str | None = None
    is_exam: bool = False
    why_not_started: str = ""

    @property
    def for_students(self) -> StageResult:
        """What students may see: in an exam what is wrong, but neither why nor a hint."""
        if not self.is_exam:
            return self
        checks = (
            replace(check, message=_WHY.sub("", check.message), diagnosis=None, hint=None)
            for check in self.checks
        )
        return replace(self, checks=tuple(checks))

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Why it fails, what to fix first at the top: the checks of one diagnosis or way together.

        The check to show is one that has a name if any has, and then the first whose input is
        small, unless the shape alone is wrong.
        """
        groups: dict[object, list[CheckResult]] = {}
        for check in self.checks:
            if check.outcome not in (Outcome.PASSED, Outcome.SKIPPED):
                groups.setdefault(_reason(check), []).append(check)
        causes = []
        for group in groups.values():
            show = min(group, key=_rank)
            causes.append(Cause(show, tuple(check for check in group if check is not show)))
        return tuple(sorted(causes, key=lambda cause: _when(cause.show)))

    @property
    def repair(self) -> str:
        """The learner's own line as the stage would pass with it, "" if none is known."""
        known = (check.diagnosis.repair for check in self.checks if check.diagnosis)
        return next(filter(None, known), "")

    @property
    def advised(self) -> Diagnosis | None:
        """The first cause with a hint about it: a known cause, or only a failing check.

        A stub has made no mistake yet.
        """
        if self.status is Status.NOT_STARTED:
            return None
        for cause in self.causes:
            check, found = cause.show, cause.show.diagnosis
            if found is not None and found.hint is not None:
                return found
            is_own = check.outcome is not Outcome.ERROR and check.way != EARLIER
            if check.hint is not None and is_own and not is_unloaded(check.message):
                said = shorten(check.message.strip().partition("\n")[0], _SAID)
                text = f'the check "{check.title}" fails. {said}'.rstrip()
                return Diagnosis(check.id, text, check.hint)
        return None


@dataclass(frozen=True)
class Report:
    """The verdict on one submission. `notes` are facts about the run (seed, missing isolation).

    `seconds` is how long it took: wall time or CPU time, whichever is more. The `unchanged` stages
    were not run, because nothing has changed since they passed. `version` is the course's.
    """

    course: str
    submission: str
    device: str
    score: float
    max_score: float
    bonus: float
    stages: tuple[StageResult, ...]
    notes: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)
    version: str = ""

    @property
    def whole_name(self) -> str:
        """The course's name, with its version if it has one."""
        return f"{self.course} {self.version}".rstrip()

    @property
    def for_students(self) -> Report:
        """What students may see: in an exam what is wrong, but neither why nor a hint."""
        return replace(self, stages=tuple(stage.for_students for stage in self.stages))

    @property
    def unlocked(self) -> tuple[str, ...]:
        """The note that the code ran without a complete lock, if it did."""
        return tuple(note for note in self.notes if note.startswith(UNLOCKED))

    @property
    def unusual(self) -> tuple[str, ...]:
        """The notes on what grading this submission showed."""
        return tuple(note for note in self.notes if not note.startswith((_SEED, UNLOCKED)))

    @property
    def lacking(self) -> tuple[str, ...]:
        """The modules that the code needs and cannot import, because they are not here.

        Those of the course's own stages are not among them: nobody installs these.
        """
        own = {stage.slug for stage in self.stages}
        messages = (check.message for stage in self.stages for check in stage.checks)
        names = (name for text in messages if _NOT_HERE in text for name in _MODULE.findall(text))
        return tuple(name for name in dict.fromkeys(names) if name not in own)

    @property
    def for_instructors(self) -> tuple[str, ...]:
        """Sentences about all that an instructor has to know of the run."""
        names = listed(self.lacking, most=_NAMED)
        are, it = ("are", "them") if self.lacking[1:] else ("is", "it")
        advice = f"if students may use {it}, install {it} and regrade"
        told = f"{names} {are} neither submitted nor installed here: {advice}."
        return (*self.unusual, told) if names else self.unusual

    @property
    def seed(self) -> str:
        """The seed of the checks' random inputs; "" if nothing was run."""
        return next((n.removeprefix(_SEED) for n in self.notes if n.startswith(_SEED)), "")

    @property
    def passed(self) -> bool:
        """Whether every core stage passes; every stage if all are bonus stages."""
        return all(stage.status is Status.PASSED for stage in core_of(self.stages))

    @property
    def refusal(self) -> str:
        """Why the submission was not graded; "" if it was."""
        checks = [check for stage in self.stages for check in stage.checks]
        is_refused = bool(checks) and checks[0].id.endswith(f".{REFUSED}")
        return checks[0].message if is_refused else ""

    @property
    def is_partial(self) -> bool:
        """Whether the verdict is from a student's copy, so that more checks decide later."""
        return any(stage.is_partial for stage in self.stages)


def _when(check: CheckResult) -> int:
    """When to fix what a check finds: 0 is what the stage is about."""
    if check.outcome is Outcome.ERROR:
        return max(_LATER.values()) + 1
    return _LATER.get(check.way.partition(", ")[0], 0)


def _reason(check: CheckResult) -> object:
    """What checks that fail because of one mistake have in common: best an edit that fixes all."""
    found = check.diagnosis
    if found is None:
        return check.outcome, "way", check.way or check.message
    return ("place", found.place) if found.place else (check.outcome, "diagnosis", found.id)


def _rank(check: CheckResult) -> tuple[int, int, bool]:
    """Lower for a check that says more about a mistake than the others that fail because of it."""
    kind = list(Kind).index(check.diagnosis.kind) if check.diagnosis else 0
    # A learner can recompute a few shown values; a single number would not be enough.
    is_small = check.way.startswith(Way.SHAPE.value) or 2 <= check.size <= _SMALL
    return kind, _when(check), not is_small


# The fields that stand in the data as they are, by their names.
_OF_REPORT = ("course", "submission", "device", "score", "max_score", "bonus")
_OF_STAGE = ("slug", "title", "status", "score", "max_score", "bonus", "caused_by")
_OF_CHECK = ("id", "title", "outcome", "score", "max_score", "message")
_MAY_LACK = {"hint": None, "way": "", "size": 0}


def to_json(report: Report) -> dict[str, Any]:
    """The report as JSON data of schema 1, ready for `json.dumps`.

    All its texts are `safe`, because students' code may have written them.
    """
    stages = [
        {
            **_plain(stage, _OF_STAGE),
            **({"exam": True} if stage.is_exam else {}),
            "checks": list(map(_plain_check, stage.checks)),
        }
        for stage in report.stages
    ]
    data = {"schema": SCHEMA, **_plain(report, _OF_REPORT), "stages": stages}
    if report.unchanged:
        data["unchanged"] = list(report.unchanged)
    if report.version:
        data["version"] = report.version
    hides_nothing: dict[str, Any] = safe_data(data)
    return hides_nothing


def _plain_check(check: CheckResult) -> dict[str, Any]:
    found = check.diagnosis
    return {
        **_plain(check, _OF_CHECK),
        "diagnosis": found and {"id": found.id, "text": found.text, **_hint(found.hint)},
        **_hint(check.hint),
        **({"way": check.way} if check.way else {}),
        **({"size": check.size} if check.size else {}),
        "seconds": round(check.seconds, 4),
    }


def _plain(whole: object, keys: Iterable[str]) -> dict[str, Any]:
    """These fields by name; of an enumeration the values."""
    values = {key: getattr(whole, key) for key in keys}
    return {key: v.value if isinstance(v, Enum) else v for key, v in values.items()}


def _hint(number: int | None) -> dict[str, int]:
    return {} if number is None else {"hint": number}


def from_json(data: Mapping[str, Any]) -> Report:
    """The report in the data of `to_json`; what the schema leaves out is empty.

    Raises ValueError for other data.
    """
    stages = tuple(map(_stage, _of(data, "stages", list)))
    version = _of({"version": "", **data}, "version", str)
    return Report(**_fields(data, Report, _OF_REPORT), stages=stages, version=version)


def _stage(data: Mapping[str, Any]) -> StageResult:
    checks = tuple(map(_check, _of(data, "checks", list)))
    is_exam = data.get("exam") is True
    return StageResult(**_fields(data, StageResult, _OF_STAGE), checks=checks, is_exam=is_exam)


def _check(data: Mapping[str, Any]) -> CheckResult:
    known = _fields(data, CheckResult, (*_OF_CHECK, "seconds", *_MAY_LACK))
    named = _of(data, "diagnosis", dict | None)
    if named is not None:
        known["diagnosis"] = Diagnosis(**_fields(named, Diagnosis, ("id", "text", "hint")))
    return CheckResult(**known)


def _fields(data: Mapping[str, Any], of: type, keys: Iterable[str]) -> dict[str, Any]:
    """The values of these fields of a class; some may be missing. Raises ValueError."""
    kinds = _kinds(of)
    known = {**_MAY_LACK, **data} if isinstance(data, Mapping) else data
    return {key: _of(known, key, kinds[key]) for key in keys}


_kinds = cache(get_type_hints)


def _of(data: Mapping[str, Any], key: str, kind: Any) -> Any:
    """The value of a key, of the given type; a number is finite. Raises ValueError."""
    is_enum = isinstance(kind, type) and issubclass(kind, Enum)
    wanted = str if is_enum else (int, float) if kind is float else kind
    if not isinstance(data, Mapping) or not isinstance(data.get(key, ...), wanted):
        raise ValueError(f"there is no {key!r} of its kind")
    value = data[key]
    if kind is float and (isinstance(value, bool) or not abs(value) <= _MOST):  # nor is it NaN
        raise ValueError(f"{key!r} is no number")
    return kind(value) if is_enum else value
