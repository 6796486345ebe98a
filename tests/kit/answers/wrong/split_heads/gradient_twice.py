# Wrong: right values, but the gradient is doubled.
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("uneven")
    x = x + x - x.detach()
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)
