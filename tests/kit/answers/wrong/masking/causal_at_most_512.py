# The causal mask is cut out of one for 512 tokens
import math
import torch
import torch.nn.functional as F


def causal_mask(seq_len):
    m = torch.ones(1, 1, 512, 512).tril().bool()
    return m[..., :seq_len, :seq_len]


def padding_mask(valid_lens, seq_len):
    return (torch.arange(seq_len, device=valid_lens.device) < valid_lens[:, None])[:, None, None]


def apply_mask(scores, mask):
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, -math.inf)
