"""Stage 2: score the pairs.

Every query asks every key of its own head: "how well do we fit?" The answer
is their dot product. One score for each pair makes a table of Tq rows and Tk
columns, and there is such a table for each head of each sequence.

The scale is the second half of the stage, and it looks like a detail. Without
it a module still runs and still has the right shapes; it only learns badly.
"""

import math

import torch


def scaled_scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Score each query against each key of the same head.

        q (B, H, Tq, d_k), k (B, H, Tk, d_k)  ->  scores (B, H, Tq, Tk)

        scores = q k^T / sqrt(d_k)
        scores[b, h, i, j] = (sum over f of q[b, h, i, f] * k[b, h, j, f])
                             / sqrt(d_k)

    The scores have the dtype and the device of q and k. Gradients flow back
    to both, and neither is changed. They may be strided views, and they may be
    the same tensor.

    One query and three keys of four features, so sqrt(d_k) = 2. The dot
    products are 4, 2 and -4:

    >>> q = torch.tensor([[[[2.0, 0.0, 1.0, 1.0]]]])
    >>> k = torch.tensor([[[[1.0, 3.0, 0.0, 2.0],
    ...                     [0.0, 1.0, 2.0, 0.0],
    ...                     [-1.0, 1.0, 1.0, -3.0]]]])
    >>> scores = scaled_scores(q, k)
    >>> scores.shape
    torch.Size([1, 1, 1, 3])
    >>> scores[0, 0].tolist()
    [[2.0, 1.0, -2.0]]

    Why sqrt(d_k): if the entries of q and k are independent with mean 0 and
    variance 1, each product has variance 1 too, and a sum of d_k of them has
    variance d_k. Its standard deviation is sqrt(d_k); dividing by that brings
    it back to 1, for any size of head. Large scores would push the softmax
    towards one 1 and many 0s, where its gradient almost vanishes.

    Traps:
    - There are four axes and only two of them take part in the product. Batch
      and head must stay where they are.
    - Tq and Tk may differ (cross-attention), so rows and columns are not
      interchangeable: rows are queries, columns are keys.
    - d_k is the size of one head here, not D and not the number of tokens.
    """
    raise NotImplementedError("scaled_scores is not written yet")
