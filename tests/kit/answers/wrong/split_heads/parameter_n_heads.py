# Wrong: the parameter is called n_heads.
def split_heads(x, n_heads):
    B, T, D = x.shape
    if D % n_heads:
        raise ValueError("uneven")
    return x.view(B, T, n_heads, D // n_heads).transpose(1, 2)
