"""Bonus: weights only for those who ask.

Each call of your module returns the weights of all heads, (B, H, Tq, Tk)
numbers: for 8 sequences, 16 heads and 4096 tokens some 2 billion, or 8 GiB.
Hardly any caller looks at them. Even worse, some modules keep them, in an
attribute "for plotting later": then they stay in memory until the next call,
in every layer of the model.

So the caller says whether the weights are wanted. nn.MultiheadAttention has
the same switch, need_weights, also True by default, and takes a faster path
when it is False.
"""

import torch
from torch import nn

from concat_heads import concat_heads
from masking import apply_mask
from scaled_scores import scaled_scores
from softmax import attention_weights
from split_heads import split_heads


class OptionalWeightsAttention(nn.Module):
    """Multi-head attention that returns its weights only on request.

    Everything else is as in MultiHeadAttention: the layers w_q, w_k, w_v and
    w_o and their starting values, the masks, queries that may see no key,
    dropout, the dtype and device of the results, inputs that may be strided
    views and are not changed. As there, calling nn.MultiheadAttention or
    a function that does its work costs all points.

    >>> mha = OptionalWeightsAttention(d_model=8, num_heads=2)
    >>> x = torch.randn(4, 3, 8)
    >>> output, weights = mha(x, x, x)
    >>> weights.shape
    torch.Size([4, 2, 3, 3])
    >>> same, nothing = mha(x, x, x, need_weights=False)
    >>> print(nothing)
    None
    >>> torch.allclose(same, output)
    True
    """

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ) -> None:
        """Create the four layers, with Xavier weights and zero biases.

        Raises:
            ValueError: d_model is not a multiple of num_heads.
        """
        ### BEGIN SOLUTION
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"num_heads={num_heads} does not divide d_model={d_model}")
        self.num_heads = num_heads
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
        need_weights: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Attend as before; return the weights, or None in their place.

            query (B, Tq, D), key (B, Tk, D), value (B, Tk, D),
            mask broadcastable to (B, H, Tq, Tk), True or 1 = allowed, or None
            ->  output (B, Tq, D),
                weights (B, H, Tq, Tk), or None if need_weights is False

        The output does not depend on the switch: the same numbers, the same
        gradients, and in training the same dropout on the weights.

        When weights are returned, gradients flow back through them: a loss
        may, for example, reward heads that look at different places.

        After a call with need_weights=False nothing of size (Tq, Tk) may be
        left on the module, in no attribute, list, closure or hook, and not
        from an earlier call either. While forward runs it may exist.

        Traps:
        - None takes the place of the weights; the result stays a pair.
        - Whatever you assign to `self` outlives the call.
        """
        ### BEGIN SOLUTION
        q = split_heads(self.w_q(query), self.num_heads)  # (B, H, Tq, d_k)
        k = split_heads(self.w_k(key), self.num_heads)  # (B, H, Tk, d_k)
        v = split_heads(self.w_v(value), self.num_heads)  # (B, H, Tk, d_k)
        scores = apply_mask(scaled_scores(q, k), mask)  # (B, H, Tq, Tk)
        weights = self.dropout(attention_weights(scores))  # (B, H, Tq, Tk)
        output = self.w_o(concat_heads(weights @ v))  # (B, Tq, D)

        # The weights are a local variable: not returned, they are gone with the call.
        return output, weights if need_weights else None
        ### END SOLUTION
