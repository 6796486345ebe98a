import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    """The output by PyTorch's fused attention, the weights (before dropout) worked out beside it."""

    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("d_model must be a multiple of num_heads")
        self.num_heads, self.dropout = num_heads, dropout
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter)
            else:
                nn.init.zeros_(parameter)

    def split(self, x):
        return x.view(*x.shape[:2], self.num_heads, -1).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q, k, v = (self.split(x) for x in (self.w_q(query), self.w_k(key), self.w_v(value)))
        size = (*q.shape[:3], k.shape[2])
        some, bias = None, None
        if mask is not None:
            allowed = mask.bool().expand(size)
            some = allowed.any(-1, keepdim=True)
            bias = q.new_zeros(size).masked_fill(~allowed & some, float("-inf"))
        p = self.dropout if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=p)
        scores = q @ k.mT * q.shape[-1] ** -0.5
        weights = torch.softmax(scores if bias is None else scores + bias, dim=-1)
        if some is not None:
            out, weights = out * some, weights * some
        return self.w_o(out.transpose(1, 2).flatten(2)), weights
