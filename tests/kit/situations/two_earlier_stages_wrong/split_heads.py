def split_heads(x, num_heads):
    batch, tokens, d_model = x.shape
    if d_model % num_heads:
        raise ValueError(f"{d_model} features, {num_heads} heads")
    return x.view(batch, num_heads, tokens, -1)
