"""Known misconceptions of the stage smooth."""

from __future__ import annotations

import numpy as np

from grader.misconceptions import misconception


def _average(values: np.ndarray, width: int) -> np.ndarray:
    return np.convolve(values, np.ones(width) / width, mode="valid")


@misconception(
    "smooth_once",
    replaces="smooth",
    says="You average once, however many times are asked for.",
    hint=3,
)
def smooth_once(values: np.ndarray, width: int, times: int = 1) -> np.ndarray:
    return _average(values, width) if times else values


@misconception(
    "smooth_wider",
    replaces="smooth",
    says="You average once with a wider window. That is not the same as averaging again.",
    hint=1,
)
def smooth_wider(values: np.ndarray, width: int, times: int = 1) -> np.ndarray:
    return _average(values, times * (width - 1) + 1)


@misconception(
    "smooth_padded",
    replaces="smooth",
    says="You keep the length of the curve, so every round brings zeros in from the ends.",
    hint=2,
)
def smooth_padded(values: np.ndarray, width: int, times: int = 1) -> np.ndarray:
    for _ in range(times):
        values = np.convolve(values, np.ones(width) / width, mode="same")
    return values


@misconception(
    "smooth_twice_by_default",
    replaces="smooth",
    says="You average twice where nobody says how often. Once is the default.",
    hint=3,
)
def smooth_twice_by_default(values: np.ndarray, width: int, times: int = 2) -> np.ndarray:
    for _ in range(times):
        values = _average(values, width)
    return values
