# Wrong: the first parameter is called inputs.
def split_heads(inputs, num_heads):
    B, T, D = inputs.shape
    if D % num_heads:
        raise ValueError("uneven")
    return inputs.view(B, T, num_heads, D // num_heads).transpose(1, 2)
