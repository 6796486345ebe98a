# Wrong: AssertionError instead of ValueError.
def split_heads(x, num_heads):
    B, T, D = x.shape
    assert D % num_heads == 0, "uneven"
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)
