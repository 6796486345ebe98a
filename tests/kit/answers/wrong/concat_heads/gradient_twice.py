# Wrong: right values, doubled gradient.
def concat_heads(x):
    y = x.transpose(1, 2).flatten(2)
    return 2 * y - y.detach()
