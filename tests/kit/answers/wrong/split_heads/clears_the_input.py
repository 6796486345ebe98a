# Wrong: empties x afterwards "to free memory".
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("uneven")
    out = x.clone().view(B, T, num_heads, D // num_heads).transpose(1, 2)
    x.data.zero_()
    return out
