import torch


def causal_mask(seq_len):
    i = torch.arange(seq_len)
    return (i[:, None] >= i[None, :]).reshape(1, 1, seq_len, seq_len)


def padding_mask(valid_lens, seq_len):
    rows = torch.arange(seq_len, device=valid_lens.device).expand(len(valid_lens), seq_len)
    return (rows < valid_lens.unsqueeze(1)).unsqueeze(1).unsqueeze(2)


def apply_mask(scores, mask):
    if mask is not None:
        zeros = torch.zeros(mask.shape, dtype=scores.dtype, device=scores.device)
        scores = scores + zeros.masked_fill(mask == 0, float("-inf"))
    return scores
