import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    """Every head has its own rows of w_q, w_k, w_v and its own columns of w_o; the heads are added."""

    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("d_model % num_heads")
        self.num_heads = num_heads
        self.dropout_p = dropout
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        with torch.no_grad():
            for layer in self.children():
                layer.weight.normal_(0.0, d_model**-0.5)
                if bias:
                    layer.bias.zero_()

    def _project(self, layer, x, rows):
        bias = None if layer.bias is None else layer.bias[rows]
        return F.linear(x, layer.weight[rows], bias)

    def forward(self, query, key, value, mask=None):
        d_k = query.shape[-1] // self.num_heads
        shape = (query.shape[0], self.num_heads, query.shape[1], key.shape[1])
        out = 0
        all_weights = []
        for h in range(self.num_heads):
            rows = slice(h * d_k, (h + 1) * d_k)
            q = self._project(self.w_q, query, rows) / d_k**0.5
            k = self._project(self.w_k, key, rows)
            v = self._project(self.w_v, value, rows)
            scores = q @ k.mT
            alive = torch.ones_like(scores, dtype=torch.bool)
            if mask is not None:
                alive = mask.bool().expand(shape)[:, h]
            top = scores.detach().masked_fill(~alive, float("-inf")).amax(-1, keepdim=True)
            top = top.masked_fill(top.isneginf(), 0.0)
            e = torch.exp((scores - top).masked_fill(~alive, float("-inf")))
            total = e.sum(-1, keepdim=True)
            weights = e / (total + (total == 0))
            weights = F.dropout(weights, self.dropout_p, self.training)
            out = out + (weights @ v) @ self.w_o.weight[:, rows].T
            all_weights.append(weights)
        if self.w_o.bias is not None:
            out = out + self.w_o.bias
        return out, torch.stack(all_weights, dim=1)
