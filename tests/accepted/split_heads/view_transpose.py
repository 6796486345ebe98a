import torch


def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads != 0:
        raise ValueError(f"d_model {D} is not divisible by num_heads {num_heads}")
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)


if __name__ == "__main__":
    print(split_heads(torch.arange(24.0).reshape(1, 3, 8), 2))
