import torch


def causal_mask(seq_len):
    mask = torch.full((seq_len, seq_len), True)
    mask.tril_()
    return mask.reshape([1, 1, seq_len, seq_len])


def padding_mask(valid_lens, seq_len):
    grid = torch.stack([torch.arange(seq_len, device=valid_lens.device) for _ in valid_lens])
    return torch.less(grid, valid_lens[:, None])[:, None, None, :]


def apply_mask(scores, mask):
    result = scores.clone()
    if mask is not None:
        result.masked_fill_(mask.to(dtype=torch.bool).logical_not(), -torch.inf)
    return result
