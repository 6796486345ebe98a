def scaled_scores(q, k):
    products = q.unsqueeze(3) * k.unsqueeze(2)  # (B, H, Tq, Tk, d_k)
    return products.sum(dim=-1) / q.shape[-1] ** (1 / 2)
