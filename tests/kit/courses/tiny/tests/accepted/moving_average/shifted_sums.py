"""Shifted copies, added up in place of a copy of our own."""

import numpy as np


def moving_average(values, width):
    n = len(values) - width + 1
    if width < 1 or n < 1:
        raise ValueError
    total = np.zeros(n)
    for shift in range(width):
        total += values[shift : shift + n]
    total /= width
    return total
