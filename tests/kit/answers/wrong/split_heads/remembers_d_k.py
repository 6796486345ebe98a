# Wrong: d_k of the first call is kept for all later calls.
_sizes = {}

def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("uneven")
    d_k = _sizes.setdefault("d_k", D // num_heads)
    return x.reshape(B, T, -1, d_k).transpose(1, 2)
