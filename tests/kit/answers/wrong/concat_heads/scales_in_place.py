# Wrong: divides the input by H in place "to average" and then undoes it on the output only.
def concat_heads(x):
    H = x.shape[1]
    x.data.div_(H)
    return x.transpose(1, 2).flatten(2) * H
