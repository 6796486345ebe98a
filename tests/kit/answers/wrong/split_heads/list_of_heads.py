# Wrong: a list of tensors, not one tensor.
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("uneven")
    return [head for head in x.chunk(num_heads, dim=-1)]
