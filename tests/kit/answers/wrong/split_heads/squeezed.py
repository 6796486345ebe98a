# Wrong: squeeze() drops every axis of size 1 (B = 1, H = 1, T = 1).
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("uneven")
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2).squeeze()
