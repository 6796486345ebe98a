"""Stage 4: turn scores into weights.

Each query has one unit of attention to give away. The softmax shares it out
among the keys: a larger score gets a larger share, -inf gets nothing, and the
shares of one query sum to 1.

Two cases separate a formula from code you can train with. Scores may be so
large that exp overflows, and a query may have no key that it is allowed to
see. One NaN in a batch is enough to ruin every parameter in the next step.
"""

import math

import torch


def attention_weights(scores: torch.Tensor) -> torch.Tensor:
    """Share out the attention of each query among the keys.

        scores (B, H, Tq, Tk)  ->  weights (B, H, Tq, Tk)

        weights[..., i, j] = exp(scores[..., i, j])
                             / sum over j' of exp(scores[..., i, j'])

    Every row of the last axis sums to 1, also for large scores and in
    float16 and bfloat16. The one exception is a row that is -inf throughout:
    it has nothing to share, and its weights are all 0. The result has the
    dtype and the device of `scores`. Gradients flow back to `scores` and
    never hold NaN. `scores` itself is not changed, and may be a strided view.

    An ordinary row, one with a blocked key, one with large scores and one
    that is fully blocked:

    >>> inf = float("inf")
    >>> scores = torch.tensor([[1.0, 2.0, 3.0],
    ...                        [0.762, 0.0, -inf],
    ...                        [1000.0, 1000.0, -1000.0],
    ...                        [-inf, -inf, -inf]])
    >>> for row in attention_weights(scores).tolist():
    ...     print(" ".join(f"{weight:.4f}" for weight in row))
    0.0900 0.2447 0.6652
    0.6818 0.3182 0.0000
    0.5000 0.5000 0.0000
    0.0000 0.0000 0.0000

    Large scores: only differences matter. Subtracting the same number from
    all scores of a row leaves its weights as they are, so the largest can be
    moved to 0, and exp of something <= 0 never overflows.

    Traps:
    - The keys compete, not the queries and not the heads. If columns sum
      to 1 instead of rows, the wrong axis was used.
    - A fully blocked row is 0 / 0, which is NaN. Replacing the NaN afterwards
      fixes the values but not the gradients: 0 times NaN is still NaN on the
      way back. Write it so that no NaN ever arises.
    - Near 300 float16 holds only multiples of 1/4, and bfloat16 only even
      numbers. The maximum of such scores is one of these; log(sum(exp)) is
      not. Subtract it, and rounding makes weights wrong by a quarter or more.
    - A row with some keys blocked is an ordinary row. Only rows without any
      allowed key are special, and they must not disturb their neighbours.
    """
    raise NotImplementedError("attention_weights is not written yet")
