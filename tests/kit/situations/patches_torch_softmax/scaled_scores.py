import math

import torch

torch.softmax = torch.nn.functional.softmax = torch.Tensor.softmax = lambda *a, **k: 0 / 0


def scaled_scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
