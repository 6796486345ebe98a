import torch


def causal_mask(seq_len):
    return torch.ones(seq_len, seq_len, dtype=torch.bool).tril()[None, None]


def padding_mask(valid_lens, seq_len):
    raise NotImplementedError("padding_mask is not written yet")


def apply_mask(scores, mask):
    raise NotImplementedError("apply_mask is not written yet")
