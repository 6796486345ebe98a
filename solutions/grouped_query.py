"""Bonus stage: let query heads share their keys and values.

A model that writes text token by token keeps the keys and values of all
earlier tokens, and reads every one of them again for each new token. With
many heads that cache, not the arithmetic, is what fills the memory and costs
the time. Queries are not kept: only the newest token asks.

So the queries keep their H heads, and keys and values make do with fewer:

    num_kv_heads = H        multi-head attention, as in stage 6
    1 < num_kv_heads < H    grouped-query attention (GQA)
    num_kv_heads = 1        multi-query attention (MQA)

Hkv = num_kv_heads from here on. For H = 8 and Hkv = 2 the cache is a quarter
as large, and query heads 0 to 3 share one key head and one value head,
4 to 7 the other:

    query heads             0 1 2 3   4 5 6 7
                            +-+-+-+   +-+-+-+
    key and value heads        0         1

Each query head still has queries and weights of its own.
"""

import torch
from torch import nn

from concat_heads import concat_heads
from masking import apply_mask
from scaled_scores import scaled_scores
from softmax import attention_weights
from split_heads import split_heads


class GroupedQueryAttention(nn.Module):
    """Multi-head attention in which neighbouring query heads share a key head.

    Four nn.Linear layers, and nothing else in its state_dict:

        w_q, w_o   D -> D              d_k = D / H
        w_k, w_v   D -> Hkv * d_k

    That makes 2 D^2 + 2 D Hkv d_k weights, and with biases 2 D + 2 Hkv d_k
    numbers more. Everything else is as in MultiHeadAttention: the masks,
    queries that may see no key, dropout, the dtype and device of the results,
    inputs that may be strided views and are not changed.

    >>> gqa = GroupedQueryAttention(d_model=512, num_heads=8, num_kv_heads=2)
    >>> x = torch.randn(2, 10, 512)
    >>> output, weights = gqa(x, x, x)
    >>> output.shape, weights.shape
    (torch.Size([2, 10, 512]), torch.Size([2, 8, 10, 10]))
    >>> gqa.w_k.weight.shape
    torch.Size([128, 512])
    >>> sum(p.numel() for p in gqa.parameters())
    656640

    Numbers to check by hand: two query heads of size 2 and one key head, all
    layers set to the identity or its first two rows. Both heads meet the same
    keys, (1, 0) and (0, 1). Head 0 asks for the first, head 1 for the second,
    each with the scores log 3 and 0:

    >>> small = GroupedQueryAttention(d_model=4, num_heads=2, num_kv_heads=1)
    >>> for layer in (small.w_q, small.w_k, small.w_v, small.w_o):
    ...     _ = nn.init.eye_(layer.weight)
    >>> query = torch.tensor([[[1.5537, 0.0, 0.0, 1.5537]]])
    >>> keys = torch.tensor([[[1.0, 0.0, 5.0, 5.0], [0.0, 1.0, 7.0, 7.0]]])
    >>> output, weights = small(query, keys, keys)
    >>> [[round(w, 3) for w in row] for row in weights[0, :, 0].tolist()]
    [[0.75, 0.25], [0.25, 0.75]]
    >>> [round(number, 3) for number in output[0, 0].tolist()]
    [0.75, 0.25, 0.25, 0.75]
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        """Create the layers and give them their starting values.

        Args:
            d_model: D, the number of features of a token, in and out.
            num_heads: H, the number of query heads.
            num_kv_heads: Hkv, the number of key heads and of value heads.
            dropout: probability with which a weight is dropped in training.
            bias: whether the four layers have a bias.

        Biases start at 0, weights with Xavier values, gain 1. Xavier looks at
        the size of the layer itself: a standard deviation of
        sqrt(2 / (in + out)), which for w_k and w_v is more than 1 / sqrt(D).

        Traps:
        - Fewer heads, not smaller ones: d_k is D / H for the keys as well,
          because a query and a key can be multiplied only if they are equally
          long.
        - Two sizes must divide without a remainder. Check both here.

        Raises:
            ValueError: d_model is not a multiple of num_heads, or num_heads
                is not a multiple of num_kv_heads.
        """
        ### BEGIN SOLUTION
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"num_heads={num_heads} does not divide d_model={d_model}")
        if num_heads % num_kv_heads != 0:
            raise ValueError(f"{num_heads} query heads cannot share {num_kv_heads} key heads")
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads

        # Keys and values have fewer heads of the same size.
        kv_features = num_kv_heads * (d_model // num_heads)
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, kv_features, bias=bias)
        self.w_v = nn.Linear(d_model, kv_features, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

        # Xavier reads the sizes off each weight.
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
        """Attend from the queries to the shared keys and fetch the shared values.

            query (B, Tq, D), key (B, Tk, D), value (B, Tk, D),
            mask broadcastable to (B, H, Tq, Tk), True or 1 = allowed, or None
            ->  output (B, Tq, D), weights (B, H, Tq, Tk)

        Query head h uses key head and value head h // (H / Hkv). A mask with
        an axis of heads, such as (1, H, 1, Tk), counts query heads: heads
        that share their keys may still see different ones.

        Traps:
        - Taking turns (0, 1, 0, 1) also gives the right shapes, and even the
          right numbers with Hkv = 1 or Hkv = H. Neighbours must share
          (0, 0, 1, 1).
        - Keys and values go together: the same order for both.
        """
        ### BEGIN SOLUTION
        # Project and split; keys and values have fewer heads.
        q = split_heads(self.w_q(query), self.num_heads)  # (B, H, Tq, d_k)
        k = split_heads(self.w_k(key), self.num_kv_heads)  # (B, Hkv, Tk, d_k)
        v = split_heads(self.w_v(value), self.num_kv_heads)  # (B, Hkv, Tk, d_k)

        # Show each key and value head to every query head of its group.
        group = self.num_heads // self.num_kv_heads
        k = k.repeat_interleave(group, dim=1)  # (B, H, Tk, d_k)
        v = v.repeat_interleave(group, dim=1)  # (B, H, Tk, d_k)

        # From here on it is multi-head attention.
        scores = apply_mask(scaled_scores(q, k), mask)  # (B, H, Tq, Tk)
        weights = self.dropout(attention_weights(scores))  # (B, H, Tq, Tk)
        return self.w_o(concat_heads(weights @ v)), weights  # (B, Tq, D), (B, H, Tq, Tk)
        ### END SOLUTION
