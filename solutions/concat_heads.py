"""Stage 5: bring the heads together.

After attention each head holds, for each token, d_k features of its own. The
rest of a network expects one vector of D features per token. The paper writes
Concat(head_1, ..., head_H) W_O; this stage is the Concat.

It undoes split_heads exactly. The order of the numbers in memory now differs
from their order along the axes, so it is a good place to understand views.
"""

import torch


def concat_heads(x: torch.Tensor) -> torch.Tensor:
    """Lay the heads of every token side by side again.

        x (B, H, T, d_k)  ->  result (B, T, D)      D = H * d_k

        result[b, t, h * d_k + j] = x[b, h, t, j]

    Two heads of three tokens with two features (B = 1, H = 2, T = 3,
    d_k = 2). Token 0 gets [0, 1] from head 0, then [2, 3] from head 1:

    >>> x = torch.tensor([[[[0, 1], [4, 5], [8, 9]],
    ...                    [[2, 3], [6, 7], [10, 11]]]])
    >>> out = concat_heads(x)
    >>> out.shape
    torch.Size([1, 3, 4])
    >>> out[0].tolist()
    [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]

    It is the exact inverse of the first stage: concat_heads(split_heads(x, H))
    equals x, number for number. The result's dtype and device are those of x,
    which may hold integers. x is not changed, and gradients flow back to it. It
    may be a strided view, such as split_heads may return.

    Traps:
    - Again the right shape is easy and the right order is not. A test with
      one head or one token will not notice; the numbers above will.
    - Swapping axes moves no number in memory; it only changes the strides by
      which the numbers are found. `view` can merge two axes only if a single
      stride walks through both, and raises an error if not. `contiguous`
      copies the numbers into a new layout. `reshape` returns a view if it can
      and copies only if it must.
    """
    ### BEGIN SOLUTION
    batch, heads, tokens, d_k = x.shape

    # Put the heads of one token next to each other.
    by_token = x.transpose(1, 2)  # (B, T, H, d_k)

    # Merge heads and features; reshape copies only if no single stride walks through both.
    return by_token.reshape(batch, tokens, heads * d_k)  # (B, T, D)
    ### END SOLUTION
