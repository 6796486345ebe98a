def concat_heads(x):
    B, H, T, d_k = x.shape
    out = x.new_zeros((B, T, H * d_k))
    for h in range(H):
        out[:, :, h * d_k : (h + 1) * d_k] = x[:, h, :, :]
    return out
