"""Differences of the running total."""

import numpy as np


def moving_average(values, width):
    if width < 1 or width > values.size:
        raise ValueError("the window does not fit")
    total = np.cumsum(np.insert(values, 0, 0.0))
    return (total[width:] - total[:-width]) / width
