"""What an author writes in hints/traces/<slug>.py: the steps of a small example, one by one.

And in hints/explore/<slug>.py: the same steps for an example that the learner can change.

    def trace(submission):
        x = torch.arange(24.0).view(1, 4, 6)
        yield Step("x", x, "B T D", says="Four words.", labels={"T": ["birds", "sing", ...]})
        yield Step("halves", submission.halves(x), "B H=2 T d=3")
        yield "A string is a sentence of its own."

`submission.f(...)` calls the learner's function, of this stage or of one that it requires.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Step:
    """One tensor or number of the example.

    `axes` names its axes, `labels` the places along some of them. An axis keeps the size that it
    had when its name first appeared; "H=2" states the size itself, and the axis "1" always has size
    1. If a tensor does not fit, a sentence says so. Numbers that differ from the solution's are
    marked as wrong, unless `compare` is False: for steps in which right answers differ.

    `behind` names two earlier steps for the page of `grade explore`: each number comes from a
    vector of either, along the axis that this step lacks. The page shows both and their products.
    """

    name: str
    tensor: Any
    axes: str = ""
    says: str = ""
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    compare: bool = True
    behind: Sequence[str] = ()


@dataclass(frozen=True)
class Heatmap:
    """A tensor [panels, rows, columns] as pictures side by side, with a name for each place."""

    title: str
    tensor: Any
    panels: Sequence[str]
    rows: Sequence[str]
    columns: Sequence[str]
    row_axis: str
    column_axis: str


@dataclass(frozen=True)
class Curves:
    """Positive numbers over the places `x` as curves, on two logarithmic scales.

    `guides` are the author's curves for comparison.
    """

    title: str
    x: Sequence[float]
    curves: Mapping[str, Sequence[float]]
    x_axis: str
    y_axis: str
    guides: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Control:
    """What a person can change on the page of `grade explore`.

    `explore(submission, **values)` gets its value as the argument `name`. A "choice" has one of
    `values`, a "slider" one of these numbers, and a "text" any words; its `values` are examples. It
    starts with `start`, by default the first value.
    """

    name: str
    label: str
    values: Sequence[str | float]
    kind: Literal["choice", "slider", "text"] = "choice"
    start: str | float | None = None
