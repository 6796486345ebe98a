"""Stage 1: bring every token to the same scale.

Deep networks multiply: a feature that is a little too large in one layer is much
too large twenty layers later. Layer normalisation takes each token by itself, moves
its features to mean 0 and scales them to variance 1. Then it lets the network choose
a scale and a shift for each feature, because sometimes a large one is meant.
"""

import torch
from torch import nn


class LayerNorm(nn.Module):
    """Normalise the last axis: D features of a token, whatever stands before them.

        x (..., D)  ->  (..., D)

        y = (x - mean) / sqrt(variance + eps) * weight + bias

    `weight` and `bias` are the only parameters, of D numbers each: the weights start
    at 1, the biases at 0. The mean and the variance are those of the token's own D
    features. The variance is the mean of the squared distances, divided by D and not
    by D - 1. `eps` keeps a token whose features are all equal from dividing by 0.

    >>> norm = LayerNorm(4)
    >>> [round(y, 3) for y in norm(torch.tensor([1.0, 2.0, 3.0, 6.0])).tolist()]
    [-1.069, -0.535, 0.0, 1.604]
    >>> norm(torch.full((1, 4), 7.0)).tolist()
    [[0.0, 0.0, 0.0, 0.0]]
    >>> sum(p.numel() for p in norm.parameters())
    8

    The result has the dtype and the device of x, once the module is there too.
    Gradients reach x and both parameters. x is not changed.

    Traps:
    - `torch.var` divides by D - 1 unless you tell it otherwise.
    - `eps` stands under the root.
    - Write it out: a module that calls torch's own layer norm gets no points.
    """

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        """Create the parameters `weight` and `bias` for d_model features."""
        raise NotImplementedError("LayerNorm.__init__ is not written yet")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise each token of x (..., D), then scale and shift it."""
        raise NotImplementedError("LayerNorm.forward is not written yet")
