# Wrong: F.one_hot fails for a full sentence and for int32 lengths.
import torch
import torch.nn.functional as F


def causal_mask(seq_len):
    return torch.ones(1, 1, seq_len, seq_len, dtype=torch.bool).tril()


def padding_mask(valid_lens, seq_len):
    return (1 - F.one_hot(valid_lens, seq_len).cumsum(-1)).bool()[:, None, None]


def apply_mask(scores, mask):
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, float("-inf"))
