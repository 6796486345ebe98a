def split_heads(x, num_heads):
    *_, D = x.shape
    if D % num_heads:
        raise ValueError("no")
    d_k = D // num_heads
    return x.unfold(-1, d_k, d_k).swapaxes(1, 2).contiguous()
