def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("D % num_heads")
    d_k = D // num_heads
    out = x.new_zeros(B, num_heads, T, d_k)
    for h in range(num_heads):
        out[:, h] = x[..., h * d_k : (h + 1) * d_k]
    return out
