# Wrong: as_strided takes a contiguous x for granted.
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("uneven")
    d_k = D // num_heads
    return x.as_strided((B, num_heads, T, d_k), (T * D, d_k, D, 1))
