def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("uneven")
    return x.reshape(B, T, num_heads, D // num_heads).transpose(1, 2)
