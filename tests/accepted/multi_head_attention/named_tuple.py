from typing import NamedTuple, Optional

import torch
from torch import Tensor, nn


class Attention(NamedTuple):
    output: Tensor
    weights: Tensor


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{num_heads} heads for {d_model} features")
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout) if dropout > 0 else nn.Identity()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for name in "qkvo":
            layer = self.get_submodule(f"w_{name}")
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Optional[Tensor] = None
    ) -> Attention:
        q = torch.stack(self.w_q(query).chunk(self.num_heads, dim=-1), dim=1)
        k = torch.stack(self.w_k(key).chunk(self.num_heads, dim=-1), dim=1)
        v = torch.stack(self.w_v(value).chunk(self.num_heads, dim=-1), dim=1)
        scores = (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-1) / self.d_k**0.5
        weights = self._softmax(scores, mask)
        weights = self.dropout(weights)
        heads = (weights.unsqueeze(-1) * v.unsqueeze(2)).sum(dim=3)
        return Attention(self.w_o(torch.cat(heads.unbind(1), dim=-1)), weights)

    @staticmethod
    def _softmax(scores: Tensor, mask: Optional[Tensor]) -> Tensor:
        if mask is None:
            return torch.softmax(scores, -1)
        keep = mask.bool()
        top = scores.masked_fill(~keep, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
        e = (scores - top).masked_fill(~keep, -torch.inf).exp()
        return e / e.sum(-1, keepdim=True).clamp(min=1e-6)
