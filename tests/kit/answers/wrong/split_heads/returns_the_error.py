# Wrong: returns the ValueError instead of raising it.
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        return ValueError("uneven")
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)
