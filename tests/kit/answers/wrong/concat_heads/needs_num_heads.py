# Wrong: asks for a second argument.
def concat_heads(x, num_heads):
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], num_heads * x.shape[3])
