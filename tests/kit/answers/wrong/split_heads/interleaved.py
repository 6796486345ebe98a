# Wrong: head h takes every H-th feature instead of a block of neighbours.
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("uneven")
    return x.reshape(B, T, D // num_heads, num_heads).permute(0, 3, 1, 2)
