import torch
from torch import nn

from concat_heads import *
from masking import *
from scaled_scores import *
from softmax import *
from split_heads import *


class CausalSelfAttention(nn.Module):
    def __init__(self, d_in, d_out, context_size, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        split_heads(torch.empty(1, 1, d_out), num_heads)  # raises the ValueError
        self.heads = num_heads
        self.layers = {}
        self.w_q, self.w_k, self.w_v = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")
        self.w_o = nn.Linear(d_out, d_out)
        with torch.no_grad():
            for layer in self.children():
                out, into = layer.weight.shape
                layer.weight.normal_(std=(2 / (out + into)) ** 0.5)
                if layer.bias is not None:
                    layer.bias.zero_()
        self.drop = nn.Dropout(dropout)
        self.mask = nn.Buffer(causal_mask(context_size).half())
        self.last_T = None

    def forward(self, x):
        self.last_T = T = x.size(1)
        match T <= self.mask.size(-1):
            case False:
                raise ValueError("longer than the mask")
        q, k, v = (split_heads(layer(x), self.heads) for layer in (self.w_q, self.w_k, self.w_v))
        weights = attention_weights(apply_mask(scaled_scores(q, k), self.mask[..., :T, :T]))
        return self.w_o(concat_heads(self.drop(weights) @ v))
