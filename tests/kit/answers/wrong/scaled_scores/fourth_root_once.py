# Wrong: the fourth root on q alone.
def scaled_scores(q, k):
    return (q / q.shape[-1] ** 0.25) @ k.mT
