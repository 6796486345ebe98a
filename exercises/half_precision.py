"""Bonus stage: attention in half precision that neither overflows nor blurs.

float16 and bfloat16 take half the memory of float32 and are several times as
fast on the right hardware, so large models use them. What they give up:

                 largest number   next number after 1   digits
    float16               65504         1 + 1/1024        3 to 4
    bfloat16             3.4e38         1 + 1/128         2 to 3
    float32              3.4e38         1 + 1/8388608     7

A dot product of queries and keys may well be larger than 65504. In float16
that is inf, and inf - inf in the softmax is NaN. bfloat16 holds it, but
rounds it: a score of 300 may be off by 1, which makes a weight almost three
times what it should be. Inputs and result fit; the scores need more room.
"""

import torch

from masking import apply_mask
from scaled_scores import scaled_scores
from softmax import attention_weights


def stable_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    """Attend with scores that are precise whatever the dtype of the inputs.

        q (B, H, Tq, d_k), k and v (B, H, Tk, d_k),
        mask broadcastable to (B, H, Tq, Tk), True or 1 = allowed, or None
        ->  result (B, H, Tq, d_k), in the dtype of q, k and v

        result = softmax(q k^T / sqrt(d_k)) v, blocked keys left out

    All three inputs have the same dtype: float16, bfloat16, float32 or
    float64. The result has it too, and is as precise as it allows: you may
    round the weights and the result to it, once each, but not the scores.
    Compute float64 inputs in float64. A query that may see no key gets zeros.

    The result is on the inputs' device. Gradients flow back to q, k and v, as
    precise as their dtype and never inf or NaN. The inputs may be strided
    views, and neither they nor the mask are changed.

    The dot products here are 90000 and 89700. In float16 both would be inf.
    Scaled they differ by 150, so the second key gets nothing:

    >>> q = torch.full((1, 1, 1, 4), 150.0, dtype=torch.float16)
    >>> k = torch.tensor([[[[150.0, 150.0, 150.0, 150.0],
    ...                     [150.0, 150.0, 150.0, 148.0]]]], dtype=torch.float16)
    >>> v = torch.tensor([[[[1.0, 2.0, 3.0, 4.0],
    ...                     [5.0, 6.0, 7.0, 8.0]]]], dtype=torch.float16)
    >>> stable_attention(q, k, v)
    tensor([[[[1., 2., 3., 4.]]]], dtype=torch.float16)

    Traps:
    - Once a product is inf, a later conversion doesn't bring it back.
    - Scaling q first postpones the overflow, and still rounds the scores.
    - Sums over thousands of keys overflow too, though their average fits. So
      may the sum in the softmax: 70000 exponentials near 1 exceed 65504.
    - Somebody may pass float64. Going through float32 would lose half of its
      digits.
    """
    raise NotImplementedError("stable_attention is not written yet")
