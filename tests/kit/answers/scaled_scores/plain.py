def scaled_scores(q, k):
    return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
