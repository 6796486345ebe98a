import torch
import torch.nn.functional as F
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, d_in, d_out, context_size, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads")
        self.num_heads, self.context_size, self.dropout = num_heads, context_size, dropout
        self.w_q = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_k = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_v = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_o = nn.Linear(d_out, d_out)
        allowed = torch.tril(torch.ones(context_size, context_size, dtype=torch.bool))
        self.register_buffer("allowed", allowed, persistent=False)
        self.apply(self.start)

    def start(self, layer):
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                layer.bias.data.zero_()

    def forward(self, x):
        *_, T, _ = x.shape
        if T > self.context_size:
            raise ValueError(f"at most {self.context_size} tokens, not {T}")
        q, k, v = [
            torch.stack(w(x).chunk(self.num_heads, dim=-1), dim=1)
            for w in (self.w_q, self.w_k, self.w_v)
        ]
        p = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, self.allowed[:T, :T], dropout_p=p)
        return self.w_o(torch.cat(y.unbind(1), dim=-1))
