from masking import *
from masking import causal_mask
import torch.nn as nn
import torch

import concat_heads as join
from scaled_scores import scaled_scores
from softmax import attention_weights
from split_heads import split_heads
from multi_head_attention import MultiHeadAttention


class CachedSelfAttention(MultiHeadAttention):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__(d_model, num_heads, bias=bias)
        self.heads = num_heads

    def forward(self, x, cache=None):
        q, k, v = (split_heads(w(x), self.heads) for w in (self.w_q, self.w_k, self.w_v))
        match cache:
            case None:
                pass
            case (before_k, before_v):
                k, v = torch.cat([before_k, k], -2), torch.cat([before_v, v], -2)
        mask = causal_mask(k.shape[-2])[:, :, -x.shape[1] :].to(k.device)
        shares = attention_weights(apply_mask(scaled_scores(q, k), mask))
        return self.w_o(join.concat_heads(shares @ v)), (k, v)
