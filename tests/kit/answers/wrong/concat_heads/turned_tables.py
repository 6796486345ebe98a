# Wrong: swaps d_k with the heads instead of the tokens with the heads.
def concat_heads(x):
    B, H, T, d_k = x.shape
    return x.transpose(1, 3).reshape(B, T, H * d_k)
