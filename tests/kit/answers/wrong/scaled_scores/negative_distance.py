# Wrong: minus half the squared distance instead of the product.
def scaled_scores(q, k):
    d = (q.unsqueeze(-2) - k.unsqueeze(-3)).pow(2).sum(-1)
    return -d / 2 / q.shape[-1] ** 0.5
