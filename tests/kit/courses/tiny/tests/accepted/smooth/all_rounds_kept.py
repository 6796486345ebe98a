from moving_average import moving_average


def smooth(values, width, times=1):
    rounds = [values]
    for _ in range(times):
        rounds.append(moving_average(rounds[-1], width))
    return rounds[-1]
