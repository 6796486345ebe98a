# Wrong: nested lists instead of a tensor.
import torch


def causal_mask(seq_len):
    return [[[[j <= i for j in range(seq_len)] for i in range(seq_len)]]]


def padding_mask(valid_lens, seq_len):
    steps = torch.arange(seq_len, device=valid_lens.device)
    return steps < valid_lens[:, None, None, None]


def apply_mask(scores, mask):
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, float("-inf"))
