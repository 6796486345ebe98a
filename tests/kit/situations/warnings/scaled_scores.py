import math
import warnings

import torch

warnings.warn("an old way of doing things", FutureWarning, stacklevel=1)


def scaled_scores(q, k):
    where = "(Triggered internally at /torch/a.cpp:1.)"  # so do warnings of torch end
    warnings.warn(f"scores may\nbe large {where}", UserWarning, stacklevel=2)
    torch.ones(2, 3, 4).T  # torch warns of this one
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
