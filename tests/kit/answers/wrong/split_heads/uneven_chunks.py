# Wrong: no check, so an uneven split ends in a RuntimeError of torch.
def split_heads(x, num_heads):
    B, T, D = x.shape
    return x.reshape(B, T, num_heads, D // num_heads).transpose(1, 2)
