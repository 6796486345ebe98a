import torch
from torch import nn

import concat_heads as last
from masking import apply_mask
from softmax import attention_weights
from split_heads import split_heads


class FusedMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        self.w_qkv = nn.Linear(d_model, 3 * d_model, bias)
        self.w_o = nn.Linear(d_model, d_model, bias)
        if d_model % num_heads:
            raise ValueError("uneven")
        self.num_heads = num_heads
        self.dropout = nn.Dropout(dropout)
        for layer in self.children():
            if hasattr(layer, "weight"):
                nn.init.xavier_uniform_(layer.weight, gain=1.0)
                if bias:
                    nn.init.constant_(layer.bias, 0.0)

    def forward(self, x, mask=None):
        D = x.shape[-1]
        packed = torch.stack([self.w_qkv(x[:, t]) for t in range(x.shape[1])], dim=1)
        q, k, v = (split_heads(part.contiguous(), self.num_heads) for part in packed.split(D, -1))
        scores = (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-1) / (D / self.num_heads) ** 0.5
        weights = self.dropout(attention_weights(apply_mask(scores, mask)))
        mixed = (weights.unsqueeze(-1) * v.unsqueeze(2)).sum(3)
        return self.w_o(last.concat_heads(mixed)), weights


def fuse(mha, num_heads):
    layer = mha.w_q
    fused = FusedMultiHeadAttention(layer.weight.shape[1], num_heads, bias=layer.bias is not None)
    fused.type(layer.weight.dtype).to(layer.weight.device)
    own = dict(fused.named_parameters())
    for name, target in own.items():
        kind = name.split(".")[1]
        sources = ["w_q", "w_k", "w_v"] if name.startswith("w_qkv") else ["w_o"]
        stacked = torch.cat([mha.get_parameter(f"{source}.{kind}") for source in sources])
        target.data = stacked.detach().clone()
    return fused
