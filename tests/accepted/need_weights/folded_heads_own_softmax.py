import torch
from torch import nn


class OptionalWeightsAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("no")
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model, bias)
        self.w_k = nn.Linear(d_model, d_model, bias)
        self.w_v = nn.Linear(d_model, d_model, bias)
        self.w_o = nn.Linear(d_model, d_model, bias)
        self.dropout = nn.Dropout(dropout)
        self.apply(lambda m: isinstance(m, nn.Linear) and self.start(m))
        self.sizes = None

    @staticmethod
    def start(layer):
        nn.init.xavier_uniform_(layer.weight)
        if layer.bias is not None:
            nn.init.constant_(layer.bias, 0)

    def fold(self, x):
        B, T, D = x.shape
        x = x.view(B, T, self.num_heads, -1).transpose(1, 2)
        return x.reshape(B * self.num_heads, T, -1)

    def forward(self, query, key, value, mask=None, need_weights=True):
        self.sizes = (query.shape[1], key.shape[1])  # numbers, no tensor
        B, H = query.shape[0], self.num_heads
        q, k, v = self.fold(self.w_q(query)), self.fold(self.w_k(key)), self.fold(self.w_v(value))
        self.last_keys = key.detach()  # not forbidden
        weights = torch.baddbmm(torch.zeros(1, dtype=q.dtype, device=q.device), q, k.mT, beta=0)
        weights = (weights / q.shape[-1] ** 0.5).unflatten(0, (B, H))
        if mask is not None:
            weights = torch.where(mask.bool(), weights, float("-inf"))
        top = weights.amax(-1, keepdim=True).detach().nan_to_num(neginf=0.0)
        e = (weights - top).exp()
        weights = self.dropout(e / e.sum(-1, keepdim=True).clamp(min=1e-12))
        out = torch.bmm(weights.flatten(0, 1), v).unflatten(0, (B, H)).transpose(1, 2).flatten(2)
        out = self.w_o(out)
        if need_weights:
            return out, weights
        del weights
        return out, None
