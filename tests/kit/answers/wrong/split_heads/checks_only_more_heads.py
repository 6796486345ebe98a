# Wrong: ValueError only where there are more heads than features.
def split_heads(x, num_heads):
    B, T, D = x.shape
    if num_heads > D:
        raise ValueError("too many heads")
    d_k = D // num_heads
    return x[..., : num_heads * d_k].reshape(B, T, num_heads, d_k).transpose(1, 2)
