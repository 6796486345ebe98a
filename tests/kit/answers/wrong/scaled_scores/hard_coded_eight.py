# Wrong: divides by 8, the root of the textbook's 64.
def scaled_scores(q, k):
    return q @ k.transpose(-2, -1) / 8
