# Wrong: counts valid_lens down in place.
import torch


def causal_mask(seq_len):
    return torch.ones(1, 1, seq_len, seq_len, dtype=torch.bool).tril()


def padding_mask(valid_lens, seq_len):
    rows = []
    for _ in range(seq_len):
        rows.append(valid_lens > 0)
        valid_lens.sub_(1)
    return torch.stack(rows, -1)[:, None, None]


def apply_mask(scores, mask):
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, float("-inf"))
