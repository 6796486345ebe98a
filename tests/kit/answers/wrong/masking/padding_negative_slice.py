# Wrong: m[:, n:] = False goes wrong nowhere, m[-(T-n):] does for n = T.
import torch


def causal_mask(seq_len):
    return torch.ones(1, 1, seq_len, seq_len, dtype=torch.bool).tril()


def padding_mask(valid_lens, seq_len):
    m = torch.ones(len(valid_lens), 1, 1, seq_len, dtype=torch.bool)
    for b, n in enumerate(valid_lens.tolist()):
        m[b, ..., -(seq_len - n):] = False
    return m


def apply_mask(scores, mask):
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, float("-inf"))
