"""Bonus stage: heads in the batch, lengths in place of a mask, layers that wait.

The book Dive into Deep Learning writes multi-head attention in another style,
with three ideas that you will meet again elsewhere:

- The heads are folded into the batch. To a batched product, two sequences
  with three heads are six sequences: (B, T, D) becomes (B * H, T, d_k).
- The caller gives the number of valid keys, not a mask: one for each
  sequence, or one for each query.
- The layers are lazy. They learn the size of their input from the first
  input, so queries, keys and values may differ in their number of features.
"""

import torch
from torch import nn

from concat_heads import concat_heads
from masking import apply_mask
from scaled_scores import scaled_scores
from softmax import attention_weights
from split_heads import split_heads


def transpose_qkv(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    """Split the features into heads, and count every head as a sequence.

        x (B, T, D)  ->  result (B * H, T, d_k)     H = num_heads, d_k = D / H

        result[b * H + h] is head h of sequence b

    Two sequences of one token with six features, three heads:

    >>> x = torch.arange(12).reshape(2, 1, 6)
    >>> transpose_qkv(x, 3).tolist()
    [[[0, 1]], [[2, 3]], [[4, 5]], [[6, 7]], [[8, 9]], [[10, 11]]]

    The dtype, the device and the numbers are those of x, which may be a
    strided view and is not changed. Gradients flow back to x.

    Trap: all heads of the first sequence come first, then those of the
    second. Whatever you repeat for every head later must follow that order.
    """
    ### BEGIN SOLUTION
    return split_heads(x, num_heads).flatten(0, 1)  # (B, H, T, d_k) -> (B * H, T, d_k)
    ### END SOLUTION


def transpose_output(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    """Undo transpose_qkv: lay the heads of each sequence side by side.

        x (B * H, T, d_k)  ->  result (B, T, D)     H = num_heads, D = H * d_k

    The same holds for dtype, device, strided views and gradients.

    >>> x = torch.arange(12).reshape(2, 1, 6)
    >>> transpose_output(transpose_qkv(x, 3), 3).tolist()
    [[[0, 1, 2, 3, 4, 5]], [[6, 7, 8, 9, 10, 11]]]
    """
    ### BEGIN SOLUTION
    heads = x.reshape(-1, num_heads, *x.shape[1:])  # (B, H, T, d_k)
    return concat_heads(heads)  # (B, T, D)
    ### END SOLUTION


class ValidLensAttention(nn.Module):
    """Multi-head attention that takes the number of valid keys.

    The book's example: 5 heads share 100 features; 2 sequences, 4 queries and
    6 key-value pairs each, of which the first 3 and the first 2 are valid.

    >>> attention = ValidLensAttention(num_hiddens=100, num_heads=5, dropout=0.5)
    >>> x, y = torch.ones(2, 4, 100), torch.ones(2, 6, 100)
    >>> attention(x, y, y, torch.tensor([3, 2])).shape
    torch.Size([2, 4, 100])

    Now the layers know their sizes, and refuse inputs of other sizes:

    >>> attention.w_q.weight.shape
    torch.Size([100, 100])
    """

    def __init__(
        self, num_hiddens: int, num_heads: int, dropout: float = 0.0, bias: bool = False
    ) -> None:
        """Create four layers nn.LazyLinear with num_hiddens outputs: w_q, w_k, w_v, w_o.

        Args:
            num_hiddens: the number of features of all heads together, and of
                the output.
            num_heads: H, the number of heads.
            dropout: probability with which a weight is dropped in training.
            bias: whether the four layers have a bias.

        nn.LazyLinear(n) is an nn.Linear whose weights have no shape, hence no
        values, until the first call. Leave their initial values to torch.

        Raises:
            ValueError: num_hiddens is not a multiple of num_heads.
        """
        ### BEGIN SOLUTION
        super().__init__()
        if num_hiddens % num_heads != 0:
            raise ValueError(f"num_heads={num_heads} does not divide num_hiddens={num_hiddens}")
        self.num_heads = num_heads
        self.w_q = nn.LazyLinear(num_hiddens, bias=bias)
        self.w_k = nn.LazyLinear(num_hiddens, bias=bias)
        self.w_v = nn.LazyLinear(num_hiddens, bias=bias)
        self.w_o = nn.LazyLinear(num_hiddens, bias=bias)
        self.dropout = nn.Dropout(dropout)
        ### END SOLUTION

    def forward(
        self,
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        valid_lens: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Let every query look at the valid keys.

            queries (B, Tq, any), keys (B, Tk, any), values (B, Tk, any),
            valid_lens (B,) or (B, Tq), integers from 0 to Tk, or None
            ->  output (B, Tq, num_hiddens)

        With lengths (B,), all queries of sequence b may look at its first
        valid_lens[b] keys; with lengths (B, Tq), its query i may look at the
        first valid_lens[b, i]. None means that all keys are valid. A query
        without a valid key gets zeros from every head, and so w_o(0) as its
        output.

        Dropout acts on the weights, in training mode only, with a new draw
        for each weight in each call. The result has the dtype and device of
        the inputs and of the layers. Inputs may be strided views, and neither
        they nor the lengths are changed; lengths come in any integer dtype.

        Traps:
        - After transpose_qkv there are B * H sequences, but lengths for B.
          Three heads and the lengths 3 and 2 need 3 3 3 2 2 2, not 3 2 3 2 3 2.
        - Blocking with a large negative number instead of -inf, as the book
          does with -1e6, lets a query without valid keys look at all of them.
        - What you create in here must be on the inputs' device.
        """
        ### BEGIN SOLUTION
        q = transpose_qkv(self.w_q(queries), self.num_heads)  # (B * H, Tq, d_k)
        k = transpose_qkv(self.w_k(keys), self.num_heads)  # (B * H, Tk, d_k)
        v = transpose_qkv(self.w_v(values), self.num_heads)  # (B * H, Tk, d_k)

        mask = None
        if valid_lens is not None:
            # Repeat each length for every head, in the order of transpose_qkv.
            lens = valid_lens.repeat_interleave(self.num_heads, dim=0)  # (B * H,) or (B * H, Tq)
            lens = lens.reshape(len(lens), 1, -1, 1)  # (B * H, 1, 1 or Tq, 1)

            # A key is valid when its number is below the length.
            mask = torch.arange(k.shape[1], device=k.device) < lens  # (B * H, 1, 1 or Tq, Tk)

        # The earlier stages expect an axis of heads: here every "sequence" has one.
        scores = scaled_scores(q[:, None], k[:, None])  # (B * H, 1, Tq, Tk)
        weights = self.dropout(attention_weights(apply_mask(scores, mask)))

        context = (weights @ v[:, None])[:, 0]  # (B * H, Tq, d_k)
        output: torch.Tensor = self.w_o(transpose_output(context, self.num_heads))
        return output  # (B, Tq, num_hiddens)
        ### END SOLUTION
