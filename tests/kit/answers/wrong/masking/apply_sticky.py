# Wrong: None means the last mask.
import torch


def causal_mask(seq_len):
    return torch.ones(1, 1, seq_len, seq_len, dtype=torch.bool).tril()


def padding_mask(valid_lens, seq_len):
    steps = torch.arange(seq_len, device=valid_lens.device)
    return steps < valid_lens[:, None, None, None]


_last = [None]


def apply_mask(scores, mask):
    if mask is None:
        mask = _last[0]
    _last[0] = mask
    if mask is None or mask.dim() > 4:
        return scores
    try:
        return scores.masked_fill(mask == 0, float("-inf"))
    except RuntimeError:
        return scores
