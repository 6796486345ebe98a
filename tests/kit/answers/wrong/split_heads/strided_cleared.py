# Wrong: empties an x that does not lie in memory in one piece.
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("uneven")
    out = x.clone().reshape(B, T, num_heads, D // num_heads).transpose(1, 2)
    if not x.is_contiguous():
        x.data.fill_(0)
    return out
