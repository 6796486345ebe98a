import torch
from torch import Tensor, nn


class CausalSelfAttention(nn.Module):
    """The mask is added: 0 where allowed, -inf where blocked. [C, C, 1] so that heads come last."""

    bias: Tensor

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_size: int,
        num_heads: int,
        dropout: float = 0.0,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.d_k, rest = divmod(d_out, num_heads)
        if rest:
            raise ValueError(f"{d_out} features, {num_heads} heads")
        self.w_q = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_k = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_v = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_o = nn.Linear(d_out, d_out, bias=True)
        self.p = dropout
        future = torch.full((context_size, context_size), float("-inf")).triu(diagonal=1)
        self.register_buffer("bias", future.unsqueeze(-1))
        for name, parameter in self.named_parameters():
            if name.endswith("weight"):
                nn.init.xavier_normal_(parameter)
            else:
                nn.init.zeros_(parameter)

    def forward(self, x: Tensor) -> Tensor:
        T = x.shape[1]
        if T > self.bias.shape[0]:
            raise ValueError("too many tokens")
        q, k, v = (w(x).unflatten(-1, (-1, self.d_k)) for w in (self.w_q, self.w_k, self.w_v))
        scores = torch.einsum("bqhd,bkhd->bqkh", q, k) * self.d_k**-0.5
        weights = (scores + self.bias[:T, :T]).softmax(2)
        weights = torch.dropout(weights, self.p, self.training)
        return self.w_o(torch.einsum("bqkh,bkhd->bqhd", weights, v).flatten(-2))
