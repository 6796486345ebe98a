# Wrong: no ValueError, the features left over are dropped.
def split_heads(x, num_heads):
    B, T, D = x.shape
    d_k = D // num_heads
    return x[..., : d_k * num_heads].reshape(B, T, num_heads, d_k).transpose(1, 2)
