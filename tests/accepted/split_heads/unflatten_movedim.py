# Köpfe aufteilen 🙂
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("d_model % num_heads != 0")
    return x.unflatten(-1, (num_heads, -1)).movedim(-2, -3)
