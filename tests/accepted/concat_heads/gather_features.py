import torch


def concat_heads(x):
    B, H, T, d_k = x.shape
    feature = torch.arange(H * d_k, device=x.device)
    head = torch.div(feature, d_k, rounding_mode="floor")
    return x[:, head, :, feature % d_k].permute(1, 2, 0)
