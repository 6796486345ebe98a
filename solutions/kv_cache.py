"""Bonus stage: generate token by token, without starting over.

A model that writes text adds one token at a time. Each new token must look at
all tokens before it, but their keys and values are the same as in the last
step: a causal token never sees what comes after it. So the model keeps them in
a cache, and only the new token goes through w_q, w_k and w_v.

    step      new tokens    the cache afterwards holds
    prompt    birds sing    birds sing
    1         at            birds sing at
    2         dawn          birds sing at dawn

Without the cache step 2 would project all four tokens again, and step 1000
all 1002.
"""

import torch
from torch import nn

from concat_heads import concat_heads
from masking import apply_mask
from scaled_scores import scaled_scores
from softmax import attention_weights
from split_heads import split_heads


class CachedSelfAttention(nn.Module):
    """Causal self-attention that can continue where an earlier call stopped.

    The layers w_q, w_k, w_v and w_o are those of MultiHeadAttention: the same
    names, sizes and starting values, and nothing else in the state_dict. There
    is no dropout. Without a cache it is MultiHeadAttention with a causal mask.

    Five tokens at once, or three and then the other two, give the same:

    >>> attention = CachedSelfAttention(d_model=8, num_heads=2)
    >>> x = torch.randn(1, 5, 8)
    >>> whole, _ = attention(x)
    >>> first, cache = attention(x[:, :3])
    >>> k, v = cache
    >>> k.shape
    torch.Size([1, 2, 3, 4])
    >>> rest, cache = attention(x[:, 3:], cache)
    >>> cache[0].shape
    torch.Size([1, 2, 5, 4])
    >>> torch.allclose(torch.cat([first, rest], dim=1), whole, atol=1e-6)
    True
    """

    def __init__(self, d_model: int, num_heads: int, bias: bool = True) -> None:
        """Create the layers as MultiHeadAttention does: Xavier weights, zero biases.

        Args:
            d_model: D, the number of features of a token, in and out.
            num_heads: H, the number of heads.
            bias: whether the four layers have a bias.

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
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)
        ### END SOLUTION

    def forward(
        self, x: torch.Tensor, cache: tuple[torch.Tensor, torch.Tensor] | None = None
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """Let the new tokens look at the old ones, at each other and at themselves.

            x (B, N, D), only the N new tokens;  cache of P old tokens, or None
            ->  output (B, N, D), cache of all T = P + N tokens

        A cache is a tuple (k, v) of two tensors (B, H, tokens, d_k), as w_k
        and w_v and then split_heads give them, the oldest token first. Any
        such pair may come in, even one that the caller has cut or joined, so
        take it apart by position: k, v = cache.

        Output and cache have the dtype and device of x and of the layers.
        Gradients flow back to x and the layers, and through the cache to the
        old tokens. x and the cache may be strided views, and neither is changed.

        The tokens are causal: with P = 3 and N = 2, the first new token sees
        four tokens and the second sees all five.

                       old old old new new
            new 0        1   1   1   1   0
            new 1        1   1   1   1   1

        Traps:
        - A triangle of N x N, or one that starts in the upper left corner,
          hides the wrong tokens as soon as there are old ones. With a single
          new token nothing is hidden at all, so test with two.
        - The cache belongs to the caller: put old and new together in new
          tensors. The caller may continue from one cache twice, to try two
          continuations.
        - Keep nothing on self. The next call may be about another text.
        """
        ### BEGIN SOLUTION
        # Only the new tokens go through the layers.
        q = split_heads(self.w_q(x), self.num_heads)  # (B, H, N, d_k)
        k = split_heads(self.w_k(x), self.num_heads)  # (B, H, N, d_k)
        v = split_heads(self.w_v(x), self.num_heads)  # (B, H, N, d_k)

        # Their keys and values come after those of the old tokens.
        if cache is not None:
            old_k, old_v = cache
            k = torch.cat([old_k, k], dim=2)  # (B, H, T, d_k)
            v = torch.cat([old_v, v], dim=2)  # (B, H, T, d_k)

        # Number all tokens; the new ones are the last, and none looks past its own number.
        positions = torch.arange(k.shape[2], device=x.device)  # (T,)
        mask = positions <= positions[-x.shape[1] :, None]  # (N, T)

        weights = attention_weights(apply_mask(scaled_scores(q, k), mask))  # (B, H, N, T)
        output = self.w_o(concat_heads(weights @ v))  # (B, N, D)
        return output, (k, v)
        ### END SOLUTION
