import torch

NEG_INF = -torch.inf


def _as_bool(mask):
    return mask if mask.dtype == torch.bool else mask > 0.5


def causal_mask(seq_len):
    row, column = torch.tril_indices(seq_len, seq_len)
    mask = torch.zeros(seq_len, seq_len, dtype=torch.bool)
    mask[row, column] = True
    return mask.expand(1, 1, -1, -1)


def padding_mask(valid_lens, seq_len):
    last = valid_lens.long().reshape(-1, 1, 1, 1) - 1
    return last >= torch.arange(seq_len, device=valid_lens.device)


def apply_mask(scores, mask):
    match mask:
        case None:
            return scores
        case _:
            allowed = _as_bool(mask).expand(scores.shape)
            return torch.masked_fill(scores, ~allowed, NEG_INF)
