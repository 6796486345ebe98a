"""Bonus: one projection for queries, keys and values.

In self-attention the same x goes through w_q, w_k and w_v. Three products
with one input are one product with three weights stacked:

    x (B, T, D)
        |
      w_qkv                  one layer D -> 3 D
        | (B, T, 3 D)
        +--> the first D features:  queries (B, T, D)
        +--> the next D:            keys    (B, T, D)
        +--> the last D:            values  (B, T, D)

From there on nothing is new. The numbers are the same, the work is the same,
but the hardware gets one large product instead of three smaller ones, and runs
it faster. GPT-2 and most models after it store their weights this way, and so
does nn.MultiheadAttention (as in_proj_weight).

`fuse` takes weights that were trained in separate layers and stacks them in
the right order.
"""

import torch
from torch import nn

from concat_heads import concat_heads
from masking import apply_mask
from multi_head_attention import MultiHeadAttention
from scaled_scores import scaled_scores
from softmax import attention_weights
from split_heads import split_heads


class FusedMultiHeadAttention(nn.Module):
    """Multi-head self-attention with one input projection.

    Two nn.Linear layers, and nothing else in its state_dict, 4 D^2 + 4 D
    numbers as before:

        w_qkv   D -> 3 D, its rows (outputs) 0 to D - 1 for the queries,
                D to 2 D - 1 for the keys, 2 D to 3 D - 1 for the values
        w_o     D -> D

    >>> fused = FusedMultiHeadAttention(d_model=6, num_heads=2)
    >>> output, weights = fused(torch.randn(4, 5, 6))
    >>> output.shape, weights.shape
    (torch.Size([4, 5, 6]), torch.Size([4, 2, 5, 5]))
    >>> fused.w_qkv.weight.shape
    torch.Size([18, 6])
    """

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ) -> None:
        """Create the two layers; the arguments mean what they meant before.

        Both weights start with Xavier values (gain 1), both biases, if there
        are any, at 0. Xavier looks at the sizes of a matrix: for the whole
        (3 D, D) matrix it gives a standard deviation of 0.71 / sqrt(D), for
        each third by itself 1 / sqrt(D), as the separate layers had. You may
        choose. Each layer of each module draws values of its own.

        Raises:
            ValueError: d_model is not a multiple of num_heads.
        """
        raise NotImplementedError("FusedMultiHeadAttention.__init__ is not written yet")

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Let every token attend to the tokens of its sequence.

            x (B, T, D), mask broadcastable to (B, H, T, T), True or 1 =
            allowed, or None
            ->  output (B, T, D), weights (B, H, T, T)

        Everything else is as in MultiHeadAttention: the masks, queries that
        may see no key, dropout on the weights in training mode and the weights
        returned then, the dtype and device of the results, inputs that may be
        strided views and are not changed. As there, calling
        nn.MultiheadAttention or a function that does its work costs all points.

        Traps:
        - You cut the same axis twice, into three parts and into heads. The
          parts come first: a row of w_qkv belongs to a part, and within it to
          a head. The other way round has the same shapes.
        - All three come from x here; there is no cross-attention.
        """
        raise NotImplementedError("FusedMultiHeadAttention.forward is not written yet")


def fuse(mha: MultiHeadAttention, num_heads: int) -> FusedMultiHeadAttention:
    """Make a fused module that computes what `mha` computes.

        mha has nn.Linear layers w_q, w_k, w_v, w_o from D to D, with or
        without biases  ->  a new FusedMultiHeadAttention, without dropout

    For every x and every mask its output and weights are those of
    mha(x, x, x, mask), and so are the gradients. It has mha's dtype and
    device. Nothing else of mha is needed, so the number of heads is an
    argument: weights do not say into how many heads they are cut, and mha need
    not be a module of yours.

    The two modules share no memory: training one does not change the other.
    mha itself is not changed: not its numbers, its mode or its gradients.

    With D = 1 you can see the order: the first row is the query's.

    >>> mha = MultiHeadAttention(d_model=1, num_heads=1, bias=False)
    >>> for number, layer in enumerate([mha.w_q, mha.w_k, mha.w_v, mha.w_o], 1):
    ...     _ = nn.init.constant_(layer.weight, number)
    >>> fuse(mha, num_heads=1).w_qkv.weight.tolist()
    [[1.0], [2.0], [3.0]]

    Traps:
    - nn.Linear keeps its weight as (outputs, inputs): along which axis do the
      outputs grow from D to 3 D?
    - A weight that is assigned, not copied, is still the same memory.
    """
    raise NotImplementedError("fuse is not written yet")
