"""Stage 4: the second half of a block.

Attention moves information between tokens. The MLP works on each token by itself: it
makes the token four times as wide, keeps what gelu lets through, and goes back to the
old width. The result is added to what was there: a block only ever proposes a change,
so that gradients find a straight way back through all of them.

The norm stands on the side road, before the layers ("pre-norm"). On the main road
nothing is in the way.

    x --+---------------------------------------------+--> y
        |                                             |
        +--> norm -> w_in -> gelu -> w_out -> dropout +
"""

import torch
from torch import nn

from gelu import gelu
from layer_norm import LayerNorm


class ResidualMLP(nn.Module):
    """Normalise, widen, gelu, narrow, and add to the input.

        x (..., D)  ->  (..., D)

        y = x + dropout(w_out(gelu(w_in(norm(x)))))

    Its parts are `norm`, your LayerNorm with its own eps, and the nn.Linear layers
    `w_in` from d_model to d_ff and `w_out` back, both with biases and torch's own
    starting values. Nothing else has parameters.

    >>> mlp = ResidualMLP(d_model=4, d_ff=16)
    >>> sorted(name for name, _ in mlp.named_parameters())
    ['norm.bias', 'norm.weight', 'w_in.bias', 'w_in.weight', 'w_out.bias', 'w_out.weight']
    >>> _ = nn.init.zeros_(mlp.w_out.weight), nn.init.zeros_(mlp.w_out.bias)
    >>> mlp(torch.tensor([1.0, 2.0, 3.0, 4.0])).tolist()
    [1.0, 2.0, 3.0, 4.0]

    Dropout, in training mode only, falls on what is added and never on x. x is not
    changed.
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        """Create the parts for tokens of d_model features."""
        ### BEGIN SOLUTION
        super().__init__()
        self.norm = LayerNorm(d_model)
        self.w_in = nn.Linear(d_model, d_ff)
        self.w_out = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What the MLP adds to each token of x (..., D), and x."""
        ### BEGIN SOLUTION
        wide = gelu(self.w_in(self.norm(x)))  # (..., d_ff)
        return x + self.dropout(self.w_out(wide))  # (..., D)
        ### END SOLUTION
