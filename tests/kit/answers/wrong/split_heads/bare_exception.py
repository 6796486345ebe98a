# Wrong: raises Exception, not ValueError.
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise Exception("D must be divisible by num_heads")
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)
