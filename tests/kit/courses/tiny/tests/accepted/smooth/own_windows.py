import numpy as np


def smooth(values, width, times=1):
    for _ in range(times):
        windows = np.stack([values[i : len(values) - width + 1 + i] for i in range(width)])
        values = windows.mean(0)
    return values
