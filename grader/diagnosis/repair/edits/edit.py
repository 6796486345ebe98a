"""A small change of a source, and how likely it is to undo a mistake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Rules for an answer that is wrong in only one way, by the words for that way.
FOR_WAY: Mapping[str, frozenset[str]] = {
    "gradient": frozenset({"unwrap", "twin", "decorator", "in_place", "one_side"}),
    "dtype": frozenset({"cast", "unwrap", "twin", "argument"}),
    "device": frozenset({"cast", "unwrap", "argument"}),
    "in place": frozenset({"in_place", "unwrap"}),
    "no error": frozenset({"exception", "comparison", "negation", "statement", "parameter"}),
    "shape": frozenset(
        {
            *("axes", "axis", "keepdim", "shaped", "turned", "unwrap", "arguments"),
            *("size", "bound", "comma", "returned", "values", "indentation"),
        }
    ),
}
# How many edits of a rule it takes until one hits, on the square root's scale: measured on wrong
# answers, and lower for what people get wrong most. Rules of a low cost are tried first.
COSTS: Mapping[str, float] = {
    "setting": 0.0,  # before another candidate has made the setting in the shared worker
    **dict.fromkeys(("return", "transposed", "values", "signature", "alike"), 1.0),
    **dict.fromkeys(("unbound", "power"), 1.0),
    **dict.fromkeys(("kept", "keepdim", "in_place", "exception", "contiguous", "indentation"), 2.0),
    **dict.fromkeys(("unused", "constant", "bound", "decorator", "comma"), 2.5),
    **dict.fromkeys(("fixed", "infinity", "diagonal", "axis", "default", "returned"), 4.0),
    "unpacked": 4.0,
    "comparison": 3.5,
    **dict.fromkeys(("axes", "unwrap", "statement", "shaped"), 4.5),
    **dict.fromkeys(("one_side", "arguments", "order", "twin"), 5.5),
    **dict.fromkeys(("operator", "attribute", "number", "window"), 6.0),
    **dict.fromkeys(("size", "negation", "parameter", "turned"), 7.0),
    **dict.fromkeys(("cast", "argument", "operands"), 9.0),
    "name": 12.0,
}


@dataclass(frozen=True)
class Change:
    """The characters from `start` to `end` of a source as `new`; `at` is what to point at.

    `kind` says in plain words what is changed.
    """

    start: int
    end: int
    new: str
    rule: str
    kind: str
    at: tuple[int, int]


@dataclass(frozen=True)
class Edit:
    """A change of one source: `parts` are (start, end, new text), from the first to the last.

    `kind` says in plain words what is changed, `start` and `end` are the characters to point at.
    Edits of a lower `cost` are likelier.
    """

    source: str
    parts: tuple[tuple[int, int, str], ...]
    kind: str
    rule: str
    start: int
    end: int
    cost: float

    def applied(self, text: str) -> str:
        """The source's text with the change."""
        for start, end, new in reversed(self.parts):
            text = text[:start] + new + text[end:]
        return text
