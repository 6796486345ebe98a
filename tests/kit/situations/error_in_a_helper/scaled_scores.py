from helpers import turned


def scaled_scores(q, k):
    return q @ turned(k)
