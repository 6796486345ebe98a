"""The stage's example to play with: some numbers, averaged."""

import numpy as np

from grader.tracing import Control, Step

CONTROLS = (
    Control("days", "Numbers", ("1 2 6", "4 4 4 4"), kind="text"),
    Control("width", "Width", (1, 2), start=2),
    Control("times", "Times", (1, 2), kind="slider"),
)


def explore(submission, days, width, times):
    values = np.array([float(word) for word in days.split()])
    yield Step("values", values, "days")
    yield Step("once", submission.moving_average(values, width), "pairs")
    yield Step("smooth", submission.smooth(values, width, times=times), "left")
    yield Step("odd", np.array([np.nan, np.inf]), "two")
    yield "That was all."
