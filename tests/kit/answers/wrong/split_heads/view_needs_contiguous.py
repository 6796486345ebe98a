# Wrong: view over batch and tokens together fails for a non-contiguous x.
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("uneven")
    return x.view(B * T, num_heads, D // num_heads).unflatten(0, (B, T)).transpose(1, 2)
