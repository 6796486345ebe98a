def scaled_scores(q):
    return q @ q.transpose(-2, -1)
