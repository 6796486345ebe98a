import functools

import torch


@functools.lru_cache(maxsize=None)
def causal_mask(seq_len):
    return torch.ones(1, 1, seq_len, seq_len, dtype=torch.bool).tril()


def _padding(compare, valid_lens, seq_len):
    return compare(torch.arange(seq_len, device=valid_lens.device), valid_lens[:, None, None, None])


padding_mask = functools.partial(_padding, torch.lt)


class _Apply:
    fill = float("-inf")

    def __call__(self, scores, mask):
        return scores if mask is None else scores.masked_fill(mask.logical_not(), self.fill)


apply_mask = _Apply()
