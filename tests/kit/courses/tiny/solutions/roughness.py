"""Bonus: measure the jumps, in plain Python."""

from itertools import pairwise


def roughness(values: list[float]) -> float:
    """The largest step between two neighbours, 0 where there are none.

    >>> roughness([1.0, 4.0, 2.0])
    3.0
    """
    ### BEGIN SOLUTION
    neighbours_in_pairs = pairwise(values)
    return max((abs(right - left) for left, right in neighbours_in_pairs), default=0.0)
    ### END SOLUTION
