import torch
import torch.nn.functional as F
from torch import nn

from softmax import attention_weights


class FusedMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.w_qkv = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.apply(self.start)

    @staticmethod
    def start(layer):
        if isinstance(layer, nn.Linear):
            for part in layer.weight.data.split(layer.in_features):
                nn.init.xavier_uniform_(part)
            if layer.bias is not None:
                layer.bias.data.zero_()

    def forward(self, x, mask=None):
        q, k, v = self.w_qkv(x).unflatten(-1, (3, self.num_heads, -1)).movedim((2, 3), (0, 2))
        scores = q @ k.mT * q.shape[-1] ** -0.5
        some = 1.0
        if mask is not None:
            allowed = mask.bool().expand_as(scores)
            scores = scores.masked_fill(~allowed, float("-inf"))
            some = allowed.any(-1, keepdim=True)
            mask = allowed | ~some
        weights = attention_weights(scores)  # before dropout
        p = self.dropout if self.training else 0.0
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p) * some
        return self.w_o(context.transpose(1, 2).flatten(2)), weights


@torch.no_grad()
def fuse(mha, num_heads):
    parts = [mha.w_q, mha.w_k, mha.w_v]
    bias = all(part.bias is not None for part in parts)
    fused = FusedMultiHeadAttention(parts[0].weight.shape[1], num_heads, bias=bias)
    fused = fused.to(parts[0].weight.device).to(parts[0].weight.dtype)
    for new, old in zip(fused.w_qkv.weight.chunk(3), parts):
        new.copy_(old.weight)
    if bias:
        torch.cat([part.bias for part in parts], out=fused.w_qkv.bias)
    fused.w_o.load_state_dict(mha.w_o.state_dict())
    return fused
