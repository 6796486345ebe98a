"""The stage's example: a curve that is averaged once, then twice."""

import numpy as np

from grader.tracing import Heatmap, Step

DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri"]


def trace(submission):
    values = np.array([1.0, 2.0, 6.0, 1.0, 4.0])
    yield Step("values", values, "days", says="A number a day.", labels={"days": DAYS})
    once = submission.moving_average(values, 2)
    yield Step("once", once, "pairs=4", says="The mean of each two neighbours.")
    twice = submission.smooth(values, 2, times=2)
    yield Step("twice", twice, "triples=3")
    yield Step("largest", twice.max())
    yield Heatmap(
        "How often a day counts",
        np.array([[[1, 2, 1, 0, 0], [0, 1, 2, 1, 0], [0, 0, 1, 2, 1]]]),
        panels=["twice"],
        rows=["first", "second", "third"],
        columns=DAYS,
        row_axis="number",
        column_axis="day",
    )
    yield "That was all."
