import moving_average as first_stage


def smooth(values, width, times=1):
    curve = values.copy()
    left = times
    while left > 0:
        curve = first_stage.moving_average(curve, width)
        left -= 1
    return curve
