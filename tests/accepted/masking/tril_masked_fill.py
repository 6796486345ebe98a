import torch


def causal_mask(seq_len):
    return torch.tril(torch.ones(seq_len, seq_len)).bool()[None, None]


def padding_mask(valid_lens, seq_len):
    positions = torch.arange(seq_len, device=valid_lens.device)
    return (positions[None, :] < valid_lens[:, None])[:, None, None, :]


def apply_mask(scores, mask):
    if mask is None:
        return scores
    return scores.masked_fill(mask == 0, float("-inf"))
