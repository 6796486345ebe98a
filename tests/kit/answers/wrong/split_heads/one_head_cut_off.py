# A single head is cut off from the graph
import torch


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("no")
    B, T, D = x.shape
    if num_heads == 1:
        return x.data.reshape(B, 1, T, D)
    return x.reshape(B, T, num_heads, D // num_heads).transpose(1, 2)
