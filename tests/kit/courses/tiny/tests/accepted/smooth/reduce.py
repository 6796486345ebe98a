from functools import reduce

from moving_average import moving_average


def smooth(values, width, times=1):
    return reduce(lambda curve, _: moving_average(curve, width), range(times), values)
