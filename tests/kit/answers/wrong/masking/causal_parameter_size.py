# Wrong: the parameter is called size.
import torch


def causal_mask(size):
    return torch.ones(1, 1, size, size, dtype=torch.bool).tril()


def padding_mask(valid_lens, seq_len):
    steps = torch.arange(seq_len, device=valid_lens.device)
    return steps < valid_lens[:, None, None, None]


def apply_mask(scores, mask):
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, float("-inf"))
