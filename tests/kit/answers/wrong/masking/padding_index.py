# Wrong: fills by slices with valid_lens[b] - 1.
import torch


def causal_mask(seq_len):
    return torch.ones(1, 1, seq_len, seq_len, dtype=torch.bool).tril()


def padding_mask(valid_lens, seq_len):
    m = torch.zeros(len(valid_lens), 1, 1, seq_len, dtype=torch.bool)
    for b, n in enumerate(valid_lens.tolist()):
        m[b, ..., : n - 1] = True
    return m


def apply_mask(scores, mask):
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, float("-inf"))
