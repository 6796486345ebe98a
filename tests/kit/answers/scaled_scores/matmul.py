import math

def scaled_scores(q, k):
    return q.matmul(k.transpose(-1, -2)) / math.sqrt(q.size(-1))
