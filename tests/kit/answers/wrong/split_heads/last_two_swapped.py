# Wrong: [B, H, d_k, T].
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("uneven")
    return x.transpose(1, 2).reshape(B, num_heads, D // num_heads, T)
