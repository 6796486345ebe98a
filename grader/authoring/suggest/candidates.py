"""The wrong answers that a small mistake makes of a solution, the most natural ones first. Pure.

They come from two makers: the edits with which the kit looks for the place of a learner's mistake,
and the mutants with which it tries the checks.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from grader.authoring.mutants.making import bones, mutant_of, mutants_of_source
from grader.authoring.mutants.types import Mutant
from grader.diagnosis.repair.edits.finding import edits
from grader.read.stubs import enclosing, solution_lines

# How unlikely a mistake is, by the rule or the operator that makes it. Low where many of the wrong
# answers that it makes are misconceptions of this kit's own stages.
_COSTS = {
    **dict.fromkeys(("statement", "drop", "loop", "condition", "default_ignored"), 1.0),
    **dict.fromkeys(("axes", "size", "diagonal"), 1.0),
    **dict.fromkeys(("unwrap", "compare", "axis", "twin", "shaped"), 1.5),
    **dict.fromkeys(("operator", "swap_op", "comparison"), 1.5),
    **dict.fromkeys(("one_side", "number", "parameter", "order", "bound", "fixed", "name"), 2.0),
    **dict.fromkeys(("turned", "negation", "arguments", "swap", "elements", "indices"), 2.5),
    **dict.fromkeys(("in_place", "keepdim", "argument"), 2.5),
    **dict.fromkeys(("sibling", "attribute", "arg_removal", "infinity", "constant"), 3.0),
    **dict.fromkeys(("returned", "transposed", "window", "operands"), 3.0),
}
_PLUS = "UAdd()"  # instead of -1 people write 1, another candidate, and never +1
_AGAIN = 1.0  # more for each better candidate that changes the same lines
_ALIKE = 0.5  # more for each better candidate of the same function that the same rule makes


@dataclass(frozen=True)
class Candidate:
    """A wrong version of a solution: the mutant, and how unlikely a mistake it is."""

    mutant: Mutant
    cost: float

    @property
    def function(self) -> str:
        """The function or class that it changes."""
        return self.mutant.where.partition(".")[0]


def candidates(source: str, place: str, entries: list[str]) -> Iterator[Candidate]:
    """The candidates, each of another text, likeliest first; later ones avoid what is taken.

    `place` is the file's name in errors. Raises CourseError if the solution cannot be read, and
    KitError if mutmut is not installed.
    """
    found: dict[str, Candidate] = {}
    known = bones(source)
    for mutant in itertools.chain(
        _edited(source, place, entries), mutants_of_source(source, place)
    ):
        key = bones(mutant.source)
        if key is None or key == known or _PLUS in key or mutant.operator not in _COSTS:
            continue
        cost = _COSTS[mutant.operator]
        if key not in found or cost < found[key].cost:
            found[key] = Candidate(mutant, cost)
    left = list(found.values())
    lines: Counter[tuple[str, ...]] = Counter()
    rules: Counter[tuple[str, str]] = Counter()

    def rank(each: Candidate) -> float:
        again = _AGAIN * lines[each.mutant.before]
        return each.cost + again + _ALIKE * rules[each.function, each.mutant.operator]

    while left:
        best = min(left, key=rank)
        left.remove(best)
        lines[best.mutant.before] += 1
        rules[best.function, best.mutant.operator] += 1
        yield best


def _edited(source: str, place: str, entries: list[str]) -> Iterator[Mutant]:
    """The edits of one place between the markers, as mutants whose operator is the edit's rule."""
    lines = source.split("\n")
    starts = [0, *itertools.accumulate(len(line) + 1 for line in lines)]
    spans = [(starts[first + 1], starts[last]) for first, last in solution_lines(lines, place)]
    tree = ast.parse(source)
    for edit in edits([(place, source)], entries, (), {}, {}):
        start, end, new = edit.parts[0]
        inside = any(first <= start and end <= last for first, last in spans)
        if len(edit.parts) == 1 and inside and new != "empty":  # whose numbers may be any
            where = enclosing(tree, source.count("\n", 0, start) + 1)
            yield mutant_of(source, where, edit.rule, edit.applied(source))
