"""Stage 6: the whole module.

Your five stages become one nn.Module with four learnt layers:

    query (B, Tq, D)     key (B, Tk, D)     value (B, Tk, D)
          |                    |                   |
         w_q                  w_k                 w_v
          |                    |                   |
     split_heads          split_heads         split_heads
          | (B, H, Tq, d_k)    | (B, H, Tk, d_k)   | (B, H, Tk, d_k)
          +--> scaled_scores <-+                   |
                     | (B, H, Tq, Tk)              |
     mask ----> apply_mask                         |
                     |                             |
             attention_weights                     |
                     |                             |
                  dropout                          |
                     | (B, H, Tq, Tk)              |
          +----------+--------> weighted sum <-----+
          |                          | (B, H, Tq, d_k)
          |                     concat_heads
          |                          | (B, Tq, D)
          |                         w_o
          |                          |
       weights                    output (B, Tq, D)

Each head works in a small space of its own, with its own notion of what is
relevant. In trained models some heads follow syntax (a verb and its subject),
some look at neighbours, some reach far back to what a pronoun refers to.
Nobody assigns these jobs; different starting weights and training do.

Self-attention passes the same tensor three times: mha(x, x, x). In
cross-attention the queries come from one sequence and keys and values from
another, of any length: mha(query=decoder, key=encoder, value=encoder).
"""

import torch
from torch import nn

from concat_heads import concat_heads
from masking import apply_mask
from scaled_scores import scaled_scores
from softmax import attention_weights
from split_heads import split_heads


class MultiHeadAttention(nn.Module):
    """Multi-head attention with H heads of size d_k = d_model / num_heads.

        head_i = Attention(query W_i^Q, key W_i^K, value W_i^V)
        output = Concat(head_1, ..., head_H) W^O

    Four nn.Linear layers from D to D, named w_q, w_k, w_v and w_o. Nothing
    else is in its state_dict: 4 D^2 + 4 D numbers, or 4 D^2 without biases.
    For D = 512 that is 1,050,624, whatever the number of heads.

    >>> mha = MultiHeadAttention(d_model=512, num_heads=8)
    >>> x = torch.randn(2, 10, 512)
    >>> output, weights = mha(x, x, x)
    >>> output.shape, weights.shape
    (torch.Size([2, 10, 512]), torch.Size([2, 8, 10, 10]))
    >>> sum(p.numel() for p in mha.parameters())
    1050624

    Numbers to check by hand: two heads of size 2, all four layers set to the
    identity. The query's only feature lies in head 0 and is chosen so that
    its scores there are log 3 and 0. Head 0 therefore looks at the first key
    three times as much as at the second; head 1 has no preference:

    >>> small = MultiHeadAttention(d_model=4, num_heads=2)
    >>> for layer in (small.w_q, small.w_k, small.w_v, small.w_o):
    ...     _ = nn.init.eye_(layer.weight)
    >>> query = torch.tensor([[[1.5537, 0.0, 0.0, 0.0]]])
    >>> keys = torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]]])
    >>> output, weights = small(query, keys, keys)
    >>> [[round(w, 3) for w in row] for row in weights[0, :, 0].tolist()]
    [[0.75, 0.25], [0.5, 0.5]]
    >>> [round(number, 3) for number in output[0, 0].tolist()]
    [0.75, 0.25, 0.5, 0.5]

    If you know nn.MultiheadAttention: given the same weights this module
    computes the same output, but some habits differ.
    - Ours is always batch first; the built-in expects (T, B, D) unless you
      pass batch_first=True.
    - In our masks True means allowed; in the built-in's boolean masks it
      means blocked.
    - We return the weights of each head; the built-in averages them over the
      heads unless you pass average_attn_weights=False.
    - We start each layer with Xavier. The built-in draws its three input
      layers as one (3 D, D) matrix, which makes them smaller, and leaves its
      output layer at nn.Linear's own default.
    - A query with no allowed key gets zero weights here, NaN there.
    Compare with it as much as you like, in a file or a cell of its own. But a
    module that calls it gets no points, and neither does one that calls a
    function that does its work: torch.nn.functional.multi_head_attention_forward,
    for example.
    """

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ) -> None:
        """Create the layers and give them their starting values.

        Args:
            d_model: D, the number of features of a token, in and out.
            num_heads: H, the number of heads.
            dropout: probability with which a weight is dropped in training.
            bias: whether the four layers have a bias.

        Each layer of each module draws starting weights of its own:
        independent Xavier (Glorot) values, uniform or normal, gain 1. For a
        D x D layer their standard deviation is 1 / sqrt(D), so that signals
        neither grow nor fade on the way through. nn.Linear's own default is
        smaller, 0.58 / sqrt(D). Biases, if any, start at 0.

        Traps:
        - nn.Module must be set up before you assign layers to it.
        - With bias=False there is no bias to fill.
        - You know the sizes here, so refuse bad ones here, not at the first
          call. Raise a real exception: `python -O` removes an `assert`.

        Raises:
            ValueError: d_model is not a multiple of num_heads.
        """
        ### BEGIN SOLUTION
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"num_heads={num_heads} does not divide d_model={d_model}")
        self.num_heads = num_heads

        # One layer for each role, large enough for all heads at once.
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

        # Replace nn.Linear's default start by Xavier weights and zero biases.
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
        """Attend from the queries to the keys and fetch the values.

            query (B, Tq, D), key (B, Tk, D), value (B, Tk, D),
            mask broadcastable to (B, H, Tq, Tk), True or 1 = allowed, or None
            ->  output (B, Tq, D), weights (B, H, Tq, Tk)

        Typical masks: (1, 1, T, T) from causal_mask, (B, 1, 1, Tk) from
        padding_mask, and both joined with `&`. As in apply_mask, a mask is
        bool or holds 0 and 1 in any dtype, one with two axes is (Tq, Tk), and
        one with three is (H, Tq, Tk).
        A query with no allowed key gets zero weights, so its output is the
        bias of w_o, and no gradient is NaN.

        Dropout acts on the weights, once, in training mode only, with a new
        draw for each weight in each call: weights that stay are divided by
        1 - dropout (for 0.2 they grow by 1.25), so that the sum is right on
        average. In training mode you may return the weights from before
        dropout or from after it. After it their rows need not sum to 1; call
        mha.eval() before you look at them.

        After mha.to(torch.bfloat16) or mha.to("cuda") everything happens in
        that dtype or on that device, and both results have it. Inputs and mask
        may be strided views and are not changed. No call affects the next one.

        The last layer w_o is not decoration. Before it, every head writes only
        into its own d_k features of the output; w_o mixes what the heads have
        found.

        Traps:
        - Project first, then split. A head split off first could only ever
          use its own slice of the input.
        - query, key and value have a layer each, in this order, even when all
          three are the same tensor.
        - Take the number of query tokens from query and the number of key
          tokens from key. A self-attention test never shows a mix-up.
        - Return two things, as a tuple or a NamedTuple.
        """
        ### BEGIN SOLUTION
        # Project each input with its own layer, then split the features into heads.
        q = split_heads(self.w_q(query), self.num_heads)  # (B, H, Tq, d_k)
        k = split_heads(self.w_k(key), self.num_heads)  # (B, H, Tk, d_k)
        v = split_heads(self.w_v(value), self.num_heads)  # (B, H, Tk, d_k)

        # Score every pair and hide the pairs that the mask blocks.
        scores = apply_mask(scaled_scores(q, k), mask)  # (B, H, Tq, Tk)

        # Turn scores into shares and drop some of them in training.
        weights = self.dropout(attention_weights(scores))  # (B, H, Tq, Tk)

        # Each query takes the weighted sum of the values, head by head.
        context = weights @ v  # (B, H, Tq, d_k)

        # Lay the heads side by side and let the last layer mix them.
        output = self.w_o(concat_heads(context))  # (B, Tq, D)
        return output, weights
        ### END SOLUTION
