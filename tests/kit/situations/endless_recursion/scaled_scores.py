def scaled_scores(q, k):
    return scaled_scores(q, k)
