# Wrong: empties x afterwards.
def concat_heads(x):
    out = x.transpose(1, 2).flatten(2).clone()
    x.data.fill_(0)
    return out
