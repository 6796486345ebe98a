from __future__ import annotations

import functools

import torch
from torch import nn

import concat_heads as joining
import split_heads as splitting
from masking import apply_mask, padding_mask
from scaled_scores import scaled_scores
from softmax import attention_weights


def transpose_qkv(x, num_heads):
    return torch.cat(list(splitting.split_heads(x, num_heads)), dim=0)


def transpose_output(x, num_heads):
    return joining.concat_heads(torch.stack(x.split(num_heads)))


class ValidLensAttention(nn.Module):
    def __init__(self, num_hiddens, num_heads, dropout=0.0, bias=False):
        super().__init__()
        if num_hiddens % num_heads > 0:
            raise ValueError(num_hiddens, num_heads)
        make = functools.partial(nn.LazyLinear, num_hiddens, bias=bias)
        self.w_q, self.w_k, self.w_v = make(), make(), make()
        self.w_o = make()
        self.heads = num_heads
        self.drop = nn.Dropout(dropout) if dropout else nn.Identity()

    def mask(self, lens, Tk):
        match lens:
            case None:
                return None
            case _ if lens.dim() == 1:
                return padding_mask(lens, Tk)
            case _:
                rows = padding_mask(lens.flatten(), Tk)
                return rows.view(lens.shape[0], 1, lens.shape[1], Tk)

    def forward(self, queries, keys, values, valid_lens=None):
        B = queries.shape[0]
        q, k, v = [
            transpose_qkv(layer(x), self.heads).unflatten(0, (B, self.heads))
            for layer, x in zip((self.w_q, self.w_k, self.w_v), (queries, keys, values))
        ]
        masked = apply_mask(scaled_scores(q, k), self.mask(valid_lens, keys.shape[1]))
        context = self.drop(attention_weights(masked)) @ v
        return self.w_o(transpose_output(context.flatten(0, 1), self.heads))
