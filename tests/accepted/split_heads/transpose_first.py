def split_heads(x, num_heads):
    """Features first, then cut them into heads, then turn every head back."""
    B, T, D = x.shape
    if D // num_heads * num_heads != D:
        raise ValueError("uneven heads")
    x = x.transpose(1, 2)  # (B, D, T)
    x = x.reshape(B, num_heads, D // num_heads, T)  # (B, H, d_k, T)
    return x.transpose(2, 3)  # (B, H, T, d_k)
