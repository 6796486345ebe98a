# Wrong: cuts the root to a whole number.
def scaled_scores(q, k):
    return q @ k.transpose(-2, -1) / int(q.shape[-1] ** 0.5)
