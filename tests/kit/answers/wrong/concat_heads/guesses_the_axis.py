# Wrong: takes the smaller of the two axes for the heads.
def concat_heads(x):
    B, H, T, d_k = x.shape
    if H <= T:
        return x.transpose(1, 2).reshape(B, T, H * d_k)
    return x.reshape(B, T, H * d_k)
