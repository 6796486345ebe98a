import math


def scaled_scores(query, key):
    return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
