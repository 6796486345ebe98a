"""All rounds folded into one kernel first."""

import numpy as np


def smooth(values, width, times=1):
    kernel = np.ones(1)
    for _ in range(times):
        kernel = np.convolve(kernel, np.full(width, 1 / width))
    return np.convolve(values, kernel, mode="valid")
