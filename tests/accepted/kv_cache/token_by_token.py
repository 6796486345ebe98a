import math

import torch
from torch import nn


class CachedSelfAttention(nn.Module):
    # every new token is added to the cache and then looks at all of it: no mask needed

    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("heads must divide the features")
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model, bias)
        self.w_k = nn.Linear(d_model, d_model, bias)
        self.w_v = nn.Linear(d_model, d_model, bias)
        self.w_o = nn.Linear(d_model, d_model, bias)
        for m in self.children():
            nn.init.xavier_uniform_(m.weight)
            if m.bias is not None:
                nn.init.constant_(m.bias, 0)

    def step(self, token, keys, values):
        B = token.shape[0]
        q = self.w_q(token).view(B, self.num_heads, 1, self.d_k)
        k = self.w_k(token).view(B, self.num_heads, 1, self.d_k)
        v = self.w_v(token).view(B, self.num_heads, 1, self.d_k)
        keys = k if keys is None else torch.cat([keys, k], 2)
        values = v if values is None else torch.cat([values, v], 2)
        weights = (q @ keys.mT / math.sqrt(self.d_k)).softmax(-1)
        return self.w_o((weights @ values).reshape(B, -1)), keys, values

    def forward(self, x, cache=None):
        keys, values = cache or (None, None)
        outputs = []
        for token in x.unbind(1):
            y, keys, values = self.step(token, keys, values)
            outputs.append(y)
        return torch.stack(outputs, 1), (keys, values)
