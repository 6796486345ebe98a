# Wrong: right values, but the gradient misses the scale.
def scaled_scores(q, k):
    s = q @ k.transpose(-2, -1)
    return s - s.detach() + s.detach() / q.shape[-1] ** 0.5
