"""Baut auf den früheren Stufen auf – alles mit Schlüsselwörtern."""

import concat_heads as ch
import masking
import scaled_scores as sc
import softmax
import split_heads as sp
import torch
import torch.nn as nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True):
        if d_model % num_heads:
            raise ValueError(f"{d_model=} / {num_heads=}")
        super().__init__()
        self.h, self.p = num_heads, dropout
        for name in ("w_q", "w_k", "w_v", "w_o"):
            layer = nn.Linear(d_model, d_model, bias)
            nn.init.xavier_normal_(layer.weight)
            if layer.bias is not None:
                layer.bias.data.fill_(0)
            setattr(self, name, layer)

    def forward(self, query, key, value, mask=None):
        projected = {}
        for name, x in {"w_q": query, "w_k": key, "w_v": value}.items():
            projected[name] = sp.split_heads(x=getattr(self, name)(x), num_heads=self.h)
        scores = sc.scaled_scores(q=projected["w_q"], k=projected["w_k"])
        scores = masking.apply_mask(scores=scores, mask=mask)
        weights = softmax.attention_weights(scores=scores)
        weights = torch.nn.functional.dropout(weights, p=self.p, training=self.training)
        together = ch.concat_heads(x=torch.matmul(weights, projected["w_v"]))
        return self.w_o(together), weights
