import math

import torch


class Scores(torch.Tensor):
    """Scores that print nicely."""

    def __repr__(self):
        return "scores"


def scaled_scores(q, k):
    return (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).as_subclass(Scores)
