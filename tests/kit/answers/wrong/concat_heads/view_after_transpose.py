# Wrong: view after transpose, a RuntimeError for nearly every input.
def concat_heads(x):
    B, H, T, d_k = x.shape
    return x.transpose(1, 2).view(B, T, H * d_k)
