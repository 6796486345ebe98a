"""Stage 1: split the heads.

With a single head, one attention pattern must serve every purpose. Multi-head
attention runs H smaller attentions side by side, each on its own slice of the
features, so each can learn to look for something different.

Nothing is computed here. The D = d_model features of a token are divided
among H heads, d_k = D / H features each, and the heads become an axis of
their own. From then on one batched product serves all heads, with no loop
over them.

Letters used in this course: B batch, T tokens, D = d_model, H heads,
d_k = D / H; later Tq and Tk, the numbers of query and key tokens.
"""

import torch


def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    """Divide the features of every token among the heads.

        x (B, T, D)  ->  result (B, H, T, d_k)      d_k = D / H

    Head h gets features h * d_k up to, but not including, (h + 1) * d_k of
    every token, and the tokens keep their order:

        result[b, h, t, j] = x[b, t, h * d_k + j]

    The result has the numbers, the dtype and the device of x; x may hold
    integers. x may be a strided view, such as a transposed tensor, and is not
    changed. Gradients flow back to it.

    Three tokens of four features, for two heads (B = 1, T = 3, D = 4, so
    d_k = 2). Head 0 holds the first two features of each token, head 1 the
    last two:

    >>> x = torch.arange(12).view(1, 3, 4)
    >>> x[0].tolist()
    [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    >>> heads = split_heads(x, num_heads=2)
    >>> heads.shape
    torch.Size([1, 2, 3, 2])
    >>> heads[0, 0].tolist()
    [[0, 1], [4, 5], [8, 9]]
    >>> heads[0, 1].tolist()
    [[2, 3], [6, 7], [10, 11]]

    Why this order: the paper gives each head its own small projection W_i.
    One large layer D -> D does the same at once: rows i * d_k to (i + 1) * d_k
    of its weight are head i's W_i, so its output holds head after head. And
    because d_k shrinks as H grows, the matrix products cost the same for any
    number of heads: 8 of size 64 in the paper, and up to 96 in later models.

    Traps:
    - The right shape does not mean the right answer. Another way to this shape
      gives head 0 whole tokens instead of a part of every token; compare with
      the numbers above.
    - The batch keeps its own axis: a token never moves to another sequence.
    - If H does not divide D, raise the error yourself. PyTorch's own would
      name sizes, not the cause, and `python -O` removes an `assert`.

    Raises:
        ValueError: D is not a multiple of num_heads.
    """
    ### BEGIN SOLUTION
    batch, tokens, d_model = x.shape
    if d_model % num_heads != 0:
        raise ValueError(f"num_heads={num_heads} does not divide d_model={d_model}")
    d_k = d_model // num_heads

    # Cut the features of each token into H groups of neighbours.
    grouped = x.view(batch, tokens, num_heads, d_k)  # (B, T, H, d_k)

    # Put the heads before the tokens, so that each head holds a small sequence.
    return grouped.transpose(1, 2)  # (B, H, T, d_k)
    ### END SOLUTION
