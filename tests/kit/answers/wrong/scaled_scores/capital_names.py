# Wrong: the parameters are called Q and K.
def scaled_scores(Q, K):
    return Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
