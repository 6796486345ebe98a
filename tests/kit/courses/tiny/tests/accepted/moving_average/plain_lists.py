"""Python's own numbers, made an array at the end."""

from statistics import fmean

import numpy


class WidthError(ValueError):
    pass


def moving_average(values, width):
    numbers = values.tolist()
    if not 1 <= width <= len(numbers):
        raise WidthError(width)
    return numpy.array([fmean(numbers[i : i + width]) for i in range(len(numbers) - width + 1)])
