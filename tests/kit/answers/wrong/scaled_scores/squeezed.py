# Wrong: squeeze() loses axes of size 1.
def scaled_scores(q, k):
    return (q @ k.mT / q.shape[-1] ** 0.5).squeeze()
