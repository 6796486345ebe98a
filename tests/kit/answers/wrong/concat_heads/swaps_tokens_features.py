# Wrong: transposes the last two axes before reshaping.
def concat_heads(x):
    B, H, T, d_k = x.shape
    return x.transpose(2, 3).reshape(B, T, H * d_k)
