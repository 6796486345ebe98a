# Wrong: [B, T, H, d_k], the last step is missing.
def concat_heads(x):
    return x.transpose(1, 2).contiguous()
