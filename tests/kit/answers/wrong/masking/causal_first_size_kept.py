# Wrong: the first size asked for is kept.
import torch


_kept = []

def causal_mask(seq_len):
    if not _kept:
        _kept.append(torch.ones(1, 1, seq_len, seq_len, dtype=torch.bool).tril())
    return _kept[0]


def padding_mask(valid_lens, seq_len):
    steps = torch.arange(seq_len, device=valid_lens.device)
    return steps < valid_lens[:, None, None, None]


def apply_mask(scores, mask):
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, float("-inf"))
