# Wrong: scales float64 in place, which double() does not copy.
def concat_heads(x):
    wide = x.detach().double()
    out = x.transpose(1, 2).flatten(2).clone()
    if wide.is_contiguous():
        wide.mul_(2)
    return out
