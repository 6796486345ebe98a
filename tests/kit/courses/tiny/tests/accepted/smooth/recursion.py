"""Once less, of what is averaged once."""

from moving_average import moving_average


def smooth(values, width, times=1):
    return smooth(moving_average(values, width), width, times - 1) if times else values
