import torch


def concat_heads(x):
    B, H, T, d_k = x.shape
    x = x.transpose(2, 3).reshape(B, H * d_k, T)  # every feature of every head is a row
    return torch.transpose(x, 1, 2)


if __name__ == "__main__":
    print(concat_heads(torch.randn(2, 2, 3, 4)).shape)
