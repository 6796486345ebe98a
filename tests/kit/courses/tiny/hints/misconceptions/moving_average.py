"""Known misconceptions of the stage moving_average."""

from __future__ import annotations

import numpy as np

from grader.misconceptions import misconception


def _checked(values: np.ndarray, width: int) -> None:
    if not 1 <= width <= len(values):
        raise ValueError(f"{width} does not fit {len(values)}")


@misconception(
    "average_last_window",
    replaces="moving_average",
    says="You leave out the last window. There is one more than n - width.",
    hint=2,
)
def average_last_window(values: np.ndarray, width: int) -> np.ndarray:
    _checked(values, width)
    means = [values[i : i + width].mean() for i in range(len(values) - width)]
    return np.array(means, dtype=float)


@misconception(
    "average_sum",
    replaces="moving_average",
    says="You add the neighbours up. An average also divides by how many they are.",
    hint=1,
)
def average_sum(values: np.ndarray, width: int) -> np.ndarray:
    _checked(values, width)
    return np.convolve(values, np.ones(width), mode="valid")


@misconception(
    "average_padded",
    replaces="moving_average",
    says="You keep the length of the input, so the windows at the ends are padded with zeros.",
    hint=2,
)
def average_padded(values: np.ndarray, width: int) -> np.ndarray:
    _checked(values, width)
    return np.convolve(values, np.ones(width) / width, mode="same")


@misconception(
    "average_any_width",
    replaces="moving_average",
    says="You never refuse a width that does not fit.",
    hint=4,
)
def average_any_width(values: np.ndarray, width: int) -> np.ndarray:
    if 1 <= width <= len(values):
        return np.convolve(values, np.ones(width) / width, mode="valid")
    return np.array([])


@misconception(
    "average_in_place",
    replaces="moving_average",
    says="You write the means over the values that you were given, which belong to the caller.",
    hint=4,
)
def average_in_place(values: np.ndarray, width: int) -> np.ndarray:
    _checked(values, width)
    count = len(values) - width + 1
    values[:count] = np.convolve(values, np.ones(width) / width, mode="valid")
    return values[:count].copy()
