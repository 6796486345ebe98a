# Wrong: the parameter is called lengths.
import torch


def causal_mask(seq_len):
    return torch.ones(1, 1, seq_len, seq_len, dtype=torch.bool).tril()


def padding_mask(lengths, seq_len):
    steps = torch.arange(seq_len, device=lengths.device)
    return steps < lengths[:, None, None, None]


def apply_mask(scores, mask):
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, float("-inf"))
