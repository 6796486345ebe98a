# Wrong: q and k are both divided by the root.
def scaled_scores(q, k):
    root = q.shape[-1] ** 0.5
    return (q / root) @ (k / root).mT
