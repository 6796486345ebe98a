# Wrong: reshapes [B, H, T, d_k] without turning heads and tokens.
def concat_heads(x):
    B, H, T, d_k = x.shape
    return x.reshape(B, T, H * d_k)
