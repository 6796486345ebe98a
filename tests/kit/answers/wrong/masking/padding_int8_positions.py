# Positions are int8, which ends at 127
import math
import torch
import torch.nn.functional as F


def causal_mask(seq_len):
    return torch.ones(seq_len, seq_len, dtype=torch.bool).tril()[None, None]


def padding_mask(valid_lens, seq_len):
    return (
        torch.arange(seq_len, dtype=torch.int8, device=valid_lens.device) < valid_lens[:, None]
    )[:, None, None]


def apply_mask(scores, mask):
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, -math.inf)
