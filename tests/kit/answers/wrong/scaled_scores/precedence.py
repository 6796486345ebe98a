# Wrong: a misplaced bracket takes the root of the whole quotient (keeping its sign).
def scaled_scores(q, k):
    s = q @ k.transpose(-2, -1) / q.shape[-1]
    return s.abs() ** 0.5 * s.sign()
