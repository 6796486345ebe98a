# Wrong: sees only two tokens back.
import torch


def causal_mask(seq_len):
    m = torch.ones(1, 1, seq_len, seq_len, dtype=torch.bool).tril()
    return m & m.triu(-2).bool()


def padding_mask(valid_lens, seq_len):
    steps = torch.arange(seq_len, device=valid_lens.device)
    return steps < valid_lens[:, None, None, None]


def apply_mask(scores, mask):
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, float("-inf"))
