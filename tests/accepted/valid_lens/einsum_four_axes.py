import torch
from torch import Tensor, nn


def transpose_qkv(x: Tensor, num_heads: int) -> Tensor:
    return torch.stack(x.chunk(num_heads, dim=2), dim=1).flatten(0, 1)


def transpose_output(x: Tensor, num_heads: int) -> Tensor:
    return torch.cat(x.view(-1, num_heads, *x.shape[1:]).unbind(1), dim=-1)


class ValidLensAttention(nn.Module):
    """Folds and unfolds at once: the lengths then broadcast over an axis of heads."""

    def __init__(
        self, num_hiddens: int, num_heads: int, dropout: float = 0.0, bias: bool = False
    ) -> None:
        super().__init__()
        if num_hiddens % num_heads:
            raise ValueError(f"{num_hiddens} hidden units, {num_heads} heads")
        self.h = num_heads
        for name in ("w_q", "w_k", "w_v", "w_o"):
            setattr(self, name, nn.LazyLinear(num_hiddens, bias=bias))
        self.p = dropout

    def unfolded(self, layer: nn.Module, x: Tensor) -> Tensor:
        return transpose_qkv(layer(x), self.h).unflatten(0, (len(x), self.h))

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        q = self.unfolded(self.w_q, queries)
        k = self.unfolded(self.w_k, keys)
        v = self.unfolded(self.w_v, values)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k).div(q.size(-1) ** 0.5)
        if valid_lens is None:
            weights = scores.softmax(-1)
        else:
            lens = valid_lens.reshape(len(queries), 1, -1, 1)
            past_end = torch.arange(keys.shape[1], device=scores.device) >= lens
            top = scores.masked_fill(past_end, float("-inf")).amax(-1, keepdim=True)
            e = torch.exp(scores - top.nan_to_num(neginf=0.0)).masked_fill(past_end, 0.0)
            weights = e / e.sum(-1, keepdim=True).clamp(min=1e-6)
        weights = torch.dropout(weights, self.p, self.training)
        context = torch.einsum("bhqk,bhkd->bhqd", weights, v)
        return self.w_o(transpose_output(context.flatten(0, 1), self.h))
