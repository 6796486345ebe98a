from tools.numbers import root

from concat_heads import concat_heads  # a later stage


def scaled_scores(q, k):
    assert concat_heads is not None
    return q @ k.transpose(-2, -1) / root(q.shape[-1])
