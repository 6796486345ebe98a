# Wrong: d_k before H, so features of the heads alternate.
def concat_heads(x):
    return x.permute(0, 2, 3, 1).flatten(2)
