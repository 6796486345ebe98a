# Wrong: a length of 0 is taken for no padding.
import torch


def causal_mask(seq_len):
    return torch.ones(1, 1, seq_len, seq_len, dtype=torch.bool).tril()


def padding_mask(valid_lens, seq_len):
    steps = torch.arange(seq_len, device=valid_lens.device)
    lens = torch.where(valid_lens == 0, seq_len, valid_lens)
    return steps < lens[:, None, None, None]


def apply_mask(scores, mask):
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, float("-inf"))
