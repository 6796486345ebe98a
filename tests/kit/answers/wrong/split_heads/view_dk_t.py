# Wrong: [B, H, T, d_k] by shape, but every head's T x d_k table is filled in the wrong order.
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("uneven")
    return x.transpose(1, 2).reshape(B, num_heads, T, D // num_heads)
