"""Stage 5: join the parts with attention.

A transformer is a stack of blocks like this one:

    x --+------------------------+--> residual MLP --> y
        |                        |
        +--> norm -> attention --+

First the tokens look at each other, then each thinks for itself. Any attention will
do that is called as attention(query, key, value, mask) and returns its output and its
weights: the MultiHeadAttention of the course on attention does, if you wrote it.
"""

import torch
from torch import nn

from layer_norm import LayerNorm
from residual_mlp import ResidualMLP


class TransformerBlock(nn.Module):
    """Self-attention and an MLP, each on a normalised input and added to what was there.

        x (B, T, D), mask or None  ->  (B, T, D)

        h = x + output of attention(norm(x), norm(x), norm(x), mask)
        y = mlp(h)

    Its parts are `norm`, your LayerNorm; `attention`, the module that is given; and
    `mlp`, your ResidualMLP, which has a norm of its own. Nothing else has parameters.

    >>> class Nothing(nn.Module):
    ...     def forward(self, query, key, value, mask=None):
    ...         return torch.zeros_like(query), None
    >>> block = TransformerBlock(Nothing(), d_model=8, d_ff=32)
    >>> x = torch.randn(2, 3, 8)
    >>> torch.equal(block(x), block.mlp(x))
    True
    >>> sum(p.numel() for p in block.parameters())
    584

    The mask goes to the attention as it is. x is not changed.

    Traps:
    - Queries, keys and values are the same tensor, the normalised one.
    - attention returns two things. Only its output is added.
    - The MLP sees h, not x: it comes after the attention, not beside it.
    """

    def __init__(self, attention: nn.Module, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        """Keep the attention and create the other parts; `dropout` is the MLP's."""
        raise NotImplementedError("TransformerBlock.__init__ is not written yet")

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Let the tokens of x (B, T, D) look at each other, then each for itself."""
        raise NotImplementedError("TransformerBlock.forward is not written yet")
