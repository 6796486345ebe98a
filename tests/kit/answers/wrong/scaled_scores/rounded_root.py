# Wrong: rounds the root to one digit.
def scaled_scores(q, k):
    return q @ k.transpose(-2, -1) / round(q.shape[-1] ** 0.5, 1)
