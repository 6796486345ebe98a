import math


def scaled_scores(q, k):
    # computed in float32 whatever comes in, as many model files do
    scores = q.float() @ k.float().transpose(-1, -2)
    return (scores / math.sqrt(q.size(-1))).type_as(q)
