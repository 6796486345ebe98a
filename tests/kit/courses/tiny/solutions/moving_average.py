"""Stage 1: average neighbours."""

import numpy as np


def moving_average(values: np.ndarray, width: int) -> np.ndarray:
    """The mean of every `width` neighbours.

        values (n,)  ->  result (n - width + 1,)

    >>> moving_average(np.array([1.0, 2.0, 6.0, 1.0]), 2).tolist()
    [1.5, 4.0, 3.5]

    Raises:
        ValueError: width is not between 1 and n.
    """
    ### BEGIN SOLUTION
    if not 1 <= width <= len(values):
        raise ValueError(f"width={width} is not between 1 and {len(values)}")
    count_of_windows = len(values) - width + 1
    windows = [values[start : start + width] for start in range(count_of_windows)]
    return np.array([window.mean() for window in windows])
    ### END SOLUTION
