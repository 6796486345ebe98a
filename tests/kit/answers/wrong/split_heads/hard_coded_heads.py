# Wrong: always two heads.
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("uneven")
    return x.reshape(B, T, 2, D // 2).transpose(1, 2)
