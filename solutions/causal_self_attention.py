"""Bonus stage: the attention of a GPT, with the causal mask built in.

A decoder that only ever predicts the next token always needs the same mask.
So the module makes it once, for the longest text it will see, and keeps it:

    x (B, T, d_in)
      |
     w_q, w_k, w_v          each d_in -> d_out
      |
     split into heads       (B, H, T, d_k),  d_k = d_out / H
      |
     attention              with the first T rows and columns of the mask
      |
     heads side by side     (B, T, d_out)
      |
     w_o                    d_out -> d_out
      |
    output (B, T, d_out)

It takes one input, because queries, keys and values all come from the same
text, and no mask. The width may change from d_in to d_out, the width of all
heads together.
"""

import torch
from torch import nn

from concat_heads import concat_heads
from masking import apply_mask, causal_mask
from scaled_scores import scaled_scores
from softmax import attention_weights
from split_heads import split_heads


class CausalSelfAttention(nn.Module):
    """Causal self-attention over texts of at most context_size tokens.

    >>> attention = CausalSelfAttention(d_in=4, d_out=6, context_size=8, num_heads=2)
    >>> attention(torch.randn(3, 5, 4)).shape
    torch.Size([3, 5, 6])

    It learns 3 d_in d_out numbers for queries, keys and values, and
    d_out^2 + d_out for the last layer, the only one with a bias by default:

    >>> sum(p.numel() for p in attention.parameters())  # 3 * 24 + 36 + 6
    114

    The mask is not a parameter: nothing in it is learnt. It is a buffer, a
    tensor that belongs to the module and moves with it to a GPU:

    >>> sum(buffer.numel() for buffer in attention.buffers())  # 8 * 8
    64
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_size: int,
        num_heads: int,
        dropout: float = 0.0,
        qkv_bias: bool = False,
    ) -> None:
        """Create the layers and the mask.

        Args:
            d_in: the number of features of a token that comes in.
            d_out: the number of features of a token that goes out, of all
                heads together.
            context_size: the number of tokens of the longest text.
            num_heads: H, the number of heads.
            dropout: probability with which a weight is dropped in training.
            qkv_bias: whether w_q, w_k and w_v have a bias; w_o always has one.

        w_q, w_k, w_v and w_o are nn.Linear layers with Xavier weights, gain 1,
        and zero biases. The mask is one registered buffer of
        context_size x context_size elements. Its name, its dtype, which of its
        elements mean blocked and whether it is saved with the weights
        (`persistent`) are up to you.

        Traps:
        - A tensor assigned to self is not registered: it stays on the CPU
          when the module moves.
        - The heads share d_out, not d_in.

        Raises:
            ValueError: d_out is not a multiple of num_heads.
        """
        ### BEGIN SOLUTION
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"num_heads={num_heads} does not divide d_out={d_out}")
        self.num_heads = num_heads
        self.context_size = context_size

        # From here on every token is d_out wide.
        self.w_q = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_k = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_v = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_o = nn.Linear(d_out, d_out)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        self.dropout = nn.Dropout(dropout)

        # Not persistent: the constructor makes it, so a checkpoint need not hold it.
        self.register_buffer("mask", causal_mask(context_size), persistent=False)  # (1, 1, C, C)
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Let every token look at itself and at those before it.

            x (B, T, d_in), 1 <= T <= context_size  ->  output (B, T, d_out)

        A text may be shorter than context_size, and its scores are T x T. Only
        the first T rows and columns of the mask are used:

                            context_size = 4        T = 2
            allowed         1  0  0  0              1  0
                            1  1  0  0              1  1
                            1  1  1  0
                            1  1  1  1

        Dropout acts on the weights, in training mode only, with a new draw
        for each weight in each call. The output has the dtype and device of x
        and of the layers. x may be a strided view and is not changed, and no
        call affects the next one.

        Traps:
        - A mask that is not cut fits only texts of exactly context_size
          tokens. Test with one token less.
        - Cut it again in every call. If the cut mask replaces the whole one,
          the next longer text has none.

        Raises:
            ValueError: x has more than context_size tokens.
        """
        ### BEGIN SOLUTION
        _, T, _ = x.shape
        if self.context_size < T:
            raise ValueError(f"{T} tokens are more than context_size={self.context_size}")

        q = split_heads(self.w_q(x), self.num_heads)  # (B, H, T, d_k)
        k = split_heads(self.w_k(x), self.num_heads)  # (B, H, T, d_k)
        v = split_heads(self.w_v(x), self.num_heads)  # (B, H, T, d_k)

        # The upper left part of the mask is the mask of a shorter text.
        mask = self.get_buffer("mask")[:, :, :T, :T]  # (1, 1, T, T)
        weights = attention_weights(apply_mask(scaled_scores(q, k), mask))  # (B, H, T, T)

        context = self.dropout(weights) @ v  # (B, H, T, d_k)
        output: torch.Tensor = self.w_o(concat_heads(context))  # (B, T, d_out)
        return output
        ### END SOLUTION
