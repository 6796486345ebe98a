# Wrong: one number instead of the scores.
def scaled_scores(q, k):
    return (q @ k.mT / q.shape[-1] ** 0.5).mean().item()
