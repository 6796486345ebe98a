import numpy as np


def roughness(values):
    steps = np.abs(np.diff(values))
    return steps.max() if steps.size else 0.0
