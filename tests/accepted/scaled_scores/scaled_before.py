def scaled_scores(q, k):
    q = q * q.shape[-1] ** -0.5  # not in place: the caller keeps its q
    return q @ k.mT
