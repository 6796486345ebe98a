import torch


def causal_mask(seq_len):
    mask = torch.zeros(1, 1, seq_len, seq_len, dtype=torch.bool)
    for i in range(seq_len):
        mask[..., i, : i + 1] = True
    return mask


def padding_mask(valid_lens, seq_len):
    mask = valid_lens.new_zeros((valid_lens.shape[0], 1, 1, seq_len), dtype=torch.bool)
    for b, length in enumerate(valid_lens.tolist()):
        mask[b, :, :, :length] = True
    return mask


def apply_mask(scores, mask):
    if mask is None:
        return scores
    blocked = torch.full_like(scores, float("-inf"))
    return torch.where(mask != 0, scores, blocked)
