"""Stage 2: leave out what is not needed.

Most of what layer normalisation does is scaling. RMS normalisation keeps only that:
it divides by the root of the mean square and keeps the mean. It has half of the
parameters, it is faster, and large models train as well with it.
"""

import torch
from torch import nn


class RMSNorm(nn.Module):
    """Scale the last axis to a root mean square of 1.

        x (..., D)  ->  (..., D)

        y = x / sqrt(mean of x^2 + eps) * weight

    `weight`, D numbers that start at 1, is the only parameter.

    >>> norm = RMSNorm(2)
    >>> [round(y, 3) for y in norm(torch.tensor([3.0, 4.0])).tolist()]
    [0.849, 1.131]
    >>> norm(torch.zeros(1, 2)).tolist()
    [[0.0, 0.0]]

    The result has the dtype and the device of x, once the module is there too.
    Gradients reach x and `weight`. x is not changed.

    In float16 the largest number is 65504, so the square of 300 is already infinite.
    Take the mean square in float32, also for inputs in float16 and bfloat16.

    Traps:
    - It is the mean of the squares, not their sum.
    - Nothing is subtracted.
    - Write it out: a module that calls torch's own RMS norm gets no points.
    """

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        """Create the parameter `weight` for d_model features."""
        raise NotImplementedError("RMSNorm.__init__ is not written yet")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale each token of x (..., D)."""
        raise NotImplementedError("RMSNorm.forward is not written yet")
