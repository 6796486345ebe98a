"""A trace: the results of a learner's code on a small example, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass

from grader.tracing import Curves

Number = bool | int | float
Rows = tuple[tuple[Number, ...], ...]


@dataclass(frozen=True)
class Axis:
    """One axis; `name` is "" if unknown, `labels` is empty if the places have no names."""

    name: str
    size: int
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Block:
    """The numbers along the last two axes, at `index` of all earlier axes."""

    index: tuple[int, ...]
    rows: Rows


@dataclass(frozen=True)
class TracedStep:
    """One tensor; for a large one, `blocks` hold only the start of each axis.

    `misfit` says why the shape does not fit the expected axes, "" if it fits. `same_as` names an
    earlier step with the same numbers in another shape. `slug` is the stage whose function answered
    last before this step, "" if none has. If `compare`, right answers have these numbers. `behind`
    names the steps that its numbers come from.
    """

    name: str
    axes: tuple[Axis, ...]
    blocks: tuple[Block, ...]
    says: str = ""
    misfit: str = ""
    same_as: str = ""
    slug: str = ""
    compare: bool = True
    behind: tuple[str, ...] = ()


@dataclass(frozen=True)
class TracedHeatmap:
    """Pictures side by side: `panels` are pairs of a title and numbers."""

    title: str
    panels: tuple[tuple[str, Rows], ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_axis: str
    column_axis: str


@dataclass(frozen=True)
class Stop:
    """Why a trace ended early: the function that failed, its stage, and the message."""

    function: str
    slug: str
    not_written: bool
    message: str


@dataclass(frozen=True)
class Trace:
    """One stage's example: steps, pictures and sentences in order.

    `printed` is what the learner's own code printed.
    """

    slug: str
    title: str
    parts: tuple[TracedStep | TracedHeatmap | Curves | str, ...]
    stop: Stop | None = None
    printed: str = ""

    @property
    def heatmap(self) -> TracedHeatmap | None:
        """The last heatmap, if there is one."""
        found = (part for part in reversed(self.parts) if isinstance(part, TracedHeatmap))
        return next(found, None)

    @property
    def picture(self) -> TracedHeatmap | Curves | None:
        """The last picture of either kind."""
        kinds = TracedHeatmap, Curves
        return next((part for part in reversed(self.parts) if isinstance(part, kinds)), None)

    @property
    def to_fix(self) -> str | None:
        """The slug of the stage to fix first, None if there is nothing to fix."""
        for part in self.parts:
            if isinstance(part, TracedStep) and part.misfit and part.slug:
                return part.slug
        return self.stop.slug if self.stop is not None else None
