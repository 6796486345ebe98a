# Wrong: the scale of the first call is kept.
_scale = None

def scaled_scores(q, k):
    global _scale
    _scale = _scale or q.shape[-1] ** -0.5
    return q @ k.mT * _scale
