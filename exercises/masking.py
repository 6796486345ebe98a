"""Stage 3: hide what must not be seen.

An encoder may look at every token. A decoder that learns to predict the next
token must not see it, and nobody should look at padding, the filler that
makes the sequences of a batch equally long. A mask says which pairs of query
and key are allowed.

In this course True (or 1) means ALLOWED. F.scaled_dot_product_attention reads
a boolean mask the same way. nn.MultiheadAttention reads it the other way
round: there True means blocked. Look it up whenever you change libraries.
"""

import math

import torch


def causal_mask(seq_len: int) -> torch.Tensor:
    """Allow each token to look at itself and at earlier tokens.

        seq_len = T  ->  mask (1, 1, T, T), bool, on the CPU

        mask[0, 0, i, j] is True exactly when j <= i

    The two leading axes of size 1 stretch over batch and heads. Row i is the
    token that looks, column j the token that is looked at:

    >>> mask = causal_mask(3)
    >>> mask.shape, mask.dtype
    (torch.Size([1, 1, 3, 3]), torch.bool)
    >>> mask[0, 0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]

    Traps:
    - Code you find elsewhere often marks what is BLOCKED, with the triangle
      on the other side. Check the first row: token 0 sees only itself.
    - Token i sees itself. Without the diagonal, token 0 would see nothing.
    """
    raise NotImplementedError("causal_mask is not written yet")


def padding_mask(valid_lens: torch.Tensor, seq_len: int) -> torch.Tensor:
    """Allow only the real tokens of each sequence as keys.

        valid_lens (B,), integers  ->  mask (B, 1, 1, T), bool      T = seq_len

        mask[b, 0, 0, j] is True exactly when j < valid_lens[b]

    Lengths lie between 0 and T, both included. The mask is on the same device
    as valid_lens, which is not changed. Two sequences in a batch of length 4,
    one real token in the first and three in the second:

    >>> mask = padding_mask(torch.tensor([1, 3]), seq_len=4)
    >>> mask.shape, mask.dtype
    (torch.Size([2, 1, 1, 4]), torch.bool)
    >>> mask[:, 0, 0].int().tolist()
    [[1, 0, 0, 0], [1, 1, 1, 0]]

    Traps:
    - It hides keys, not queries: the last axis is T, the one before it is 1.
      The rows of padding queries are still computed, and nobody reads them.
    - A tensor you create yourself lives on the CPU unless you say otherwise.
    """
    raise NotImplementedError("padding_mask is not written yet")


def apply_mask(scores: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Give every blocked pair the score minus infinity.

        scores (B, H, Tq, Tk), mask broadcastable to it or None
        ->  result (B, H, Tq, Tk)

        result = scores where mask is True (or not 0), -inf elsewhere

    The mask may be bool or hold the numbers 0 and 1 in any dtype. A mask with
    two axes is (Tq, Tk), the same for all heads and sequences; one with three
    is (H, Tq, Tk), the same for all sequences. None means that everything is
    allowed. Both tensors may be strided views.

    The result has the dtype and the device of `scores`: float16, bfloat16
    and float64 stay what they are. Gradients flow back to every allowed
    score. Neither `scores` nor `mask` is changed.

    >>> scores = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> mask = torch.tensor([[1, 0, 0], [1, 1, 0]])
    >>> apply_mask(scores, mask).tolist()
    [[1.0, -inf, -inf], [4.0, 5.0, -inf]]
    >>> scores.tolist()
    [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]

    Why -inf: exp(-inf) is exactly 0, so a blocked key takes no share of the
    attention and the allowed ones share all of it. The score 0 would not do:
    exp(0) is 1. The paper's formula adds a mask M to the scaled scores, 0
    where allowed and -inf where blocked; filling gives the same. Scaling
    before or after makes no difference, as -inf divided by sqrt(d_k) is still
    -inf. What matters is to mask before the softmax: zeroing weights after it
    leaves rows that no longer sum to 1.

    Traps:
    - A large negative number is not -inf. -1e6 does not fit into float16 and
      in a row with nothing allowed it makes all keys equal, not absent.
    - 0 * -inf is NaN, so a mask of numbers cannot simply be multiplied.
    - A score may be exactly 0 and still be allowed: only the mask says what
      is blocked.
    - `scores` belongs to the caller: it must not change.
    """
    raise NotImplementedError("apply_mask is not written yet")
