"""Where in a failing stage one small edit makes it pass, found within a second or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from grader.diagnosis.repair.candidates import Candidates
from grader.diagnosis.repair.edits.edit import Edit
from grader.diagnosis.reserve import NOT_EVERY_CHECK, unreserved
from grader.types.report import Cause, CheckResult, Diagnosis, StageResult

_WIDEST = 68  # characters of a line of code that are shown
_UNNEEDED = ", which is not needed"


@dataclass(frozen=True)
class Place:
    """`where` an expression is, in words and with a caret; `repaired` is its line as it passes.

    `also` are the checks that fail for another reason, it seemed, and pass with it too; `at_least`
    these, if there was no time to try all of them.
    """

    where: str
    repaired: str
    also: frozenset[str] = frozenset()
    at_least: bool = False


def find_place(candidates: Candidates) -> tuple[Place | None, bool]:
    """The place of the likeliest edit with which the stage passes. Raises Cancelled.

    Beside it, whether there was no time to try every edit.
    """
    try:
        edit, gave_up = search(candidates)
        if edit is None:
            return None, gave_up
        place = place_of(edit, candidates.text(edit.source))
        also = candidates.also_passing(edit)
        if candidates.asks_little and not also:
            return None, gave_up
        return replace(place, also=also, at_least=not candidates.has_time()), gave_up
    finally:
        candidates.close()


def search(candidates: Candidates) -> tuple[Edit | None, bool]:
    """The likeliest edit with which the stage passes, and whether the time was up before that."""
    for edit in candidates.edits() if candidates.first else ():
        if not candidates.has_time():
            return None, True
        if candidates.helps(edit):
            if not candidates.has_time():
                return None, True
            if candidates.passes(edit):
                return edit, False
    return None, not candidates.has_time()


def place_of(edit: Edit, text: str) -> Place:
    """The place that an edit of this text points at: of several lines, the first."""
    begin = text.rfind("\n", 0, edit.start) + 1
    code = text[begin:].split("\n", 1)[0]
    first, last = edit.start - begin, min(edit.end - begin, len(code))
    line = text.count("\n", 0, edit.start) + 1
    others = 0 if edit.rule == "signature" else len(edit.parts) - 1
    many = f", and {others} more like it" if others else ""
    where = f"{edit.source}, line {line}: {edit.kind}{many}"
    marked = _marked(code, first, last, edit.parts[0][1] - begin)
    return Place("\n".join([where, *marked]), _repaired(edit, text))


def _marked(code: str, first: int, last: int, changed: int) -> Iterator[str]:
    """A line of code without its indentation, and carets; of a long one, what is marked.

    As many whole words stand before that as fit. A mark that is too long itself loses its beginning
    if `changed`, where the change ends, would be out of sight.
    """
    indent, before = len(code) - len(code.lstrip()), ""
    if last - indent > _WIDEST:
        room = max(0, _WIDEST - (last - first) - 2 * len(" ..."))
        words = code.find(" ", first - room, first) + 1
        indent, before = (words, "... ") if words else (first, "")
    if first + _WIDEST - 4 < changed <= last:
        last = min(changed + 1, last)
        first = indent = last - _WIDEST + 2 * len(" ...")
        before = "... "
    shown = before + code[indent:]
    if len(shown) > _WIDEST:
        shown = shown[: _WIDEST - 4] + " ..."
    yield f"    {shown}"
    yield f"    {' ' * (len(before) + first - indent)}{'^' * min(last - first, _WIDEST)}"


def _repaired(edit: Edit, text: str) -> str:
    """The lines that the edit changes, as they would be."""
    repaired = edit.applied(text)
    start, _, new = edit.parts[0]
    begin = repaired.rfind("\n", 0, start) + 1
    end = repaired.find("\n", start + len(new))
    lines = repaired[begin : end if end >= 0 else len(repaired)].strip("\n")
    return f"{edit.source}, line {text.count(chr(10), 0, start) + 1}:\n{lines}"


def with_diagnosis(stage: StageResult, cause: Cause, place: Place) -> StageResult:
    """The stage's verdict with the place added to each check that passes with the edit.

    A student's copy has only the visible checks, and the sentence says so.
    """
    failing = [check for each in stage.causes for check in each.checks]
    helped = [check for check in failing if check in cause.checks or check.id in place.also]
    visible = "visible " if stage.is_partial else ""
    passing, where = f"every {visible}check of this stage", place.where
    if len(helped) < len(failing):  # for the others it may well be needed
        one = len(helped) == 1
        least = "at least " if place.at_least else ""
        passing = f"{least}{len(helped)} failing {visible}check{'' if one else 's'}"
        goes = f", without which {passing} pass{'es' if one else ''}"
        where = where.replace(_UNNEEDED, goes, 1)
    alone = Diagnosis("place:", f"One small change makes {passing} pass:")

    def told(check: CheckResult) -> CheckResult:
        if check not in helped:
            return check
        found = check.diagnosis if check in cause.checks or check.is_named else None
        found = replace(found or alone, place=where, repair=place.repaired)
        if len(helped) == len(failing):  # the edit shows that one mistake explains them all
            if found.text.endswith(NOT_EVERY_CHECK):  # another one, of the same numbers here
                found = replace(alone, place=where, repair=place.repaired)
            found = replace(found, text=unreserved(found.text))
        return replace(check, diagnosis=found)

    return replace(stage, checks=tuple(map(told, stage.checks)))
