import math
from functools import partial

import torch


def _against_one_key(q, key):
    return (q * key.unsqueeze(-2)).sum(-1) / math.sqrt(key.shape[-1])


def scaled_scores(q, k):
    one = partial(_against_one_key, q)
    return torch.stack([one(key) for key in k.unbind(2)], dim=-1)
