"""Bonus: attention without the big matrix.

The scores of 4096 tokens are 16 million numbers for each head, only to be
summed away a moment later. They need not be in memory all at once: a query's
output is a weighted sum, and both the sum of the exponentials and the sum of
the weighted values can be built up block by block. FlashAttention does that
inside the processor's small fast memory. That also makes it faster, because
most of the time went into moving those numbers.

PyTorch has it as F.scaled_dot_product_attention, SDPA for short. It picks a
kernel for your hardware. So this stage is about using a fast function that
somebody else wrote: what do its arguments mean, and do yours mean the same?
"""

import torch
import torch.nn.functional as F

from masking import causal_mask


def flash_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
    causal: bool = False,
    dropout_p: float = 0.0,
) -> torch.Tensor:
    """Attend with memory that grows with T, not with T^2.

        q (B, H, Tq, d_k), k (B, H, Tk, d_k), v (B, H, Tk, d_k),
        mask broadcastable to (B, H, Tq, Tk), True or 1 = allowed, or None
        ->  output (B, H, Tq, d_k)

        output = dropout(softmax(q k^T / sqrt(d_k))) v, blocked pairs left out

    causal=True blocks later tokens as well, whatever the mask says; it is
    used for Tq = Tk only. A query that may see no key gets zeros. dropout_p
    is the chance that a weight is dropped; those kept are divided by
    1 - dropout_p. There is no training mode here: the caller decides, and the
    default is no dropout.

    With mask=None, no dropout and no gradients, causal or not, the peak memory
    must grow with T, not with T^2. (A mask from the caller is as large as the
    matrix, so little can be saved then.)

    The result has the dtype and the device of q, however large the scores are.
    Gradients flow back to q, k and v and are never NaN. The mask may be bool
    or hold 0 and 1 in any dtype. Inputs may be strided views, and none is
    changed. You may use PyTorch's own function or blocks of your own.

    >>> q, k = torch.tensor([[[[1.0], [0.0]]]]), torch.tensor([[[[0.0], [1.0]]]])
    >>> v = torch.tensor([[[[4.0], [8.0]]]])
    >>> [round(number, 3) for number in flash_attention(q, k, v).flatten().tolist()]
    [6.924, 6.0]
    >>> flash_attention(q, k, v, causal=True).flatten().tolist()
    [4.0, 6.0]
    >>> mask = torch.tensor([[0, 1], [1, 1]])
    >>> flash_attention(q, k, v, mask).flatten().tolist()
    [8.0, 6.0]
    >>> flash_attention(q, k, v, mask, causal=True).flatten().tolist()
    [0.0, 6.0]

    Traps of F.scaled_dot_product_attention:
    - Its attn_mask means what ours does if it is boolean. A mask of numbers
      is ADDED to the scores: 0 and 1 would hardly change them.
    - Many of its kernels and versions refuse attn_mask and is_causal together.
      One mask can say both.
    - It scales by 1 / sqrt(d_k) itself.
    """
    raise NotImplementedError("flash_attention is not written yet")
