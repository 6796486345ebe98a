# Wrong: the first batch's mask is kept for every batch of that size.
import torch


def causal_mask(seq_len):
    return torch.ones(1, 1, seq_len, seq_len, dtype=torch.bool).tril()


_kept = {}


def padding_mask(valid_lens, seq_len):
    key = (len(valid_lens), seq_len)
    if key not in _kept:
        _kept[key] = torch.arange(seq_len) < valid_lens[:, None, None, None]
    return _kept[key]


def apply_mask(scores, mask):
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, float("-inf"))
