"""Bonus stage: tell attention where the tokens are.

Shuffle the keys and values of stage 6, and its output stays the same: the
module sees a set, not a sequence. Rotary position embeddings (RoPE) give each
token a place without a single parameter. Queries and keys are cut into pairs
of features, and each pair, seen as a point in the plane, is turned by an
angle that grows with the token's position:

    pair i of token t turns by    t * base^(-2i / d_k)

The first pair turns by 1 radian a token, the last hardly at all: like the
hands of a clock, the fast ones tell neighbours apart and the slow ones long
distances.

Why turn? The dot product of two points depends on the angle between them. If
the query turns by m steps and the key by n, their score depends on n - m: how
far apart they are, not where.
"""

import torch
from torch import nn

from concat_heads import concat_heads
from masking import apply_mask
from scaled_scores import scaled_scores
from softmax import attention_weights
from split_heads import split_heads


def rope_angles(seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0) -> torch.Tensor:
    """Return how far each pair of features of each token turns, in radians.

        seq_len = T, d_k  ->  angles (T, d_k / 2), float32 or float64, on the CPU

        angles[t, i] = (offset + t) * base^(-2i / d_k)

    They must be precise to 5 digits up to position 1000. offset is the
    position of the first token: 0 for a whole sequence, more for a piece of
    one. Here are two pairs, the second ten times slower:

    >>> rope_angles(3, 4, base=100.0)
    tensor([[0.0000, 0.0000],
            [1.0000, 0.1000],
            [2.0000, 0.2000]])
    >>> rope_angles(1, 4, base=100.0, offset=2)
    tensor([[2.0000, 0.2000]])

    Traps:
    - There are half as many angles as features: one for each pair.
    - The exponent runs from 0 in steps of 2 / d_k, and never reaches -1.

    Raises:
        ValueError: d_k is odd, so that one feature would be left over.
    """
    ### BEGIN SOLUTION
    if d_k % 2 != 0:
        raise ValueError(f"d_k={d_k} is odd: its features cannot be paired")

    # Each pair is slower than the one before it.
    speeds = base ** (-torch.arange(0, d_k, 2) / d_k)  # (d_k / 2,)
    positions = torch.arange(offset, offset + seq_len)  # (T,)
    return positions[:, None] * speeds  # (T, d_k / 2)
    ### END SOLUTION


def apply_rope(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Turn the pairs of each token by its angles.

        x (B, H, T, d_k), angles (T, d_k / 2)  ->  result (B, H, T, d_k)

    Features 2i and 2i + 1 are a pair. With a = x[..., 2i], b = x[..., 2i + 1]
    and the angle angles[t, i]:

        result[..., 2i]     = a cos - b sin
        result[..., 2i + 1] = a sin + b cos

    The result has the dtype and device of x, whatever those of the angles.
    Neither x nor the angles are changed, and gradients flow back to x. x may
    be a strided view, as split_heads returns one. Here one pair is turned by
    60 degrees, the other by 180:

    >>> x = torch.tensor([[[[2.0, 0.0, 3.0, 4.0]]]])
    >>> angles = torch.tensor([[torch.pi / 3, torch.pi]])
    >>> [round(number, 4) for number in apply_rope(x, angles).flatten().tolist()]
    [1.0, 1.7321, -3.0, -4.0]

    Turning all pairs the other way is not wrong: scores then depend on m - n
    instead of n - m. But queries, keys and trained weights must agree on it.

    Traps:
    - Some libraries pair feature i with feature i + d_k / 2. That works too,
      but not with weights that were trained for neighbours.
    - Both results go back to the places of their pair: the next pair's a
      follows this pair's b.
    - The new b needs the old a.
    """
    ### BEGIN SOLUTION
    # Cosine and sine first: rounded to half precision, an angle would be far off.
    cos, sin = angles.cos().to(x), angles.sin().to(x)  # (T, d_k / 2)
    a, b = x[..., 0::2], x[..., 1::2]  # (B, H, T, d_k / 2)

    # Put each pair side by side again.
    pairs = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return pairs.flatten(-2)  # (B, H, T, d_k)
    ### END SOLUTION


class RotaryMultiHeadAttention(nn.Module):
    """Multi-head attention that knows positions, without a new parameter.

    Queries and keys are turned after they are split. Everything else is as in
    MultiHeadAttention: layers, starting values, masks, queries that may see no
    key, dropout, the dtype and device of the results, inputs that may be
    strided views and are not changed.

    >>> mha = RotaryMultiHeadAttention(d_model=512, num_heads=8)
    >>> x = torch.randn(2, 10, 512)
    >>> output, weights = mha(x, x, x)
    >>> output.shape, weights.shape
    (torch.Size([2, 10, 512]), torch.Size([2, 8, 10, 10]))
    >>> sum(p.numel() for p in mha.parameters())
    1050624

    One head of two features, all layers the identity, and four times the same
    word: the weights depend only on the distance, at 1 radian a step. Here are
    those of the first word:

    >>> small = RotaryMultiHeadAttention(d_model=2, num_heads=1)
    >>> for layer in (small.w_q, small.w_k, small.w_v, small.w_o):
    ...     _ = nn.init.eye_(layer.weight)
    >>> x = torch.tensor([[[2.0, 0.0]]]).expand(1, 4, 2)
    >>> _, weights = small(x, x, x)
    >>> [round(weight, 3) for weight in weights[0, 0, 0].tolist()]
    [0.773, 0.211, 0.014, 0.003]
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        base: float = 10000.0,
    ) -> None:
        """Create the layers of stage 6, and keep what the angles need.

        Args:
            d_model: D, the number of features of a token, in and out.
            num_heads: H, the number of heads.
            dropout: probability with which a weight is dropped in training.
            bias: whether the four layers have a bias.
            base: as in rope_angles.

        Raises:
            ValueError: d_model is not a multiple of num_heads, or d_k is odd.
        """
        ### BEGIN SOLUTION
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"num_heads={num_heads} does not divide d_model={d_model}")
        if d_model // num_heads % 2 != 0:
            raise ValueError(f"d_k={d_model // num_heads} is odd: its features cannot be paired")
        self.num_heads = num_heads
        self.base = base

        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)
        ### END SOLUTION

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Turn queries and keys by their positions, then attend as in stage 6.

            query (B, Tq, D), key (B, Tk, D), value (B, Tk, D),
            mask broadcastable to (B, H, Tq, Tk), True or 1 = allowed, or None
            ->  output (B, Tq, D), weights (B, H, Tq, Tk)

        The first query and the first key are both at position 0.

        Traps:
        - Do not turn the values: that would bring their positions into the
          output.
        - Each head turns its own d_k features: split first.
        - Queries and keys may differ in number, and so do their angles.
        """
        ### BEGIN SOLUTION
        q = split_heads(self.w_q(query), self.num_heads)  # (B, H, Tq, d_k)
        k = split_heads(self.w_k(key), self.num_heads)  # (B, H, Tk, d_k)
        v = split_heads(self.w_v(value), self.num_heads)  # (B, H, Tk, d_k)

        # Turn queries and keys, which are compared, and not the values.
        q, k = self.turn(q), self.turn(k)

        scores = apply_mask(scaled_scores(q, k), mask)  # (B, H, Tq, Tk)
        weights = self.dropout(attention_weights(scores))  # (B, H, Tq, Tk)
        return self.w_o(concat_heads(weights @ v)), weights  # (B, Tq, D), (B, H, Tq, Tk)

    def turn(self, x: torch.Tensor) -> torch.Tensor:
        tokens, d_k = x.shape[-2:]
        return apply_rope(x, rope_angles(tokens, d_k, self.base))
        ### END SOLUTION
