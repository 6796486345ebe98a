# Wrong: the parameters are called query and key.
def scaled_scores(query, key):
    return query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
