# Wrong: one view straight to [B, H, T, d_k], so tokens and features are mixed.
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("uneven")
    return x.reshape(B, num_heads, T, D // num_heads)
