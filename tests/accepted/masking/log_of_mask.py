# log(1) = 0 lässt alles, log(0) = -∞ sperrt
import torch


def causal_mask(seq_len):
    eye = torch.eye(seq_len, dtype=torch.int64)
    return eye.cumsum(dim=1).T.bool().view(1, 1, seq_len, seq_len)


def padding_mask(valid_lens, seq_len):
    lens = valid_lens.to(torch.float64).view(-1, 1, 1, 1)
    return torch.arange(0.5, seq_len, device=valid_lens.device) < lens


def apply_mask(scores, mask):
    return scores if mask is None else scores + mask.to(scores.dtype).log()
