# Wrong: every batch entry gets the heads of the first.
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("uneven")
    one = x[0].view(T, num_heads, D // num_heads).transpose(0, 1)
    return one.expand(B, -1, -1, -1)
