def scaled_scores(q, k):
    root = k.shape[-1] ** 0.25
    return (q / root) @ (k / root).permute(0, 1, 3, 2)
