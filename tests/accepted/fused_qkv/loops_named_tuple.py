import math
from collections import namedtuple

import torch
from torch import nn

Attended = namedtuple("Attended", ["output", "weights"])


class FusedMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model < num_heads or d_model % num_heads != 0:
            raise ValueError("each head needs the same number of features")
        self.num_heads, self.d_model = num_heads, d_model
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.w_qkv = nn.Linear(d_model, 3 * d_model, bias=bias)
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            else:
                nn.init.xavier_uniform_(parameter)
        self.drop = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(self, x, mask=None):
        packed = self.w_qkv(x)
        size = self.d_model // self.num_heads
        outs, maps = [], []
        for head in range(self.num_heads):
            start = head * size
            q = packed[:, :, start : start + size]
            k = packed[:, :, self.d_model + start : self.d_model + start + size]
            v = packed[:, :, 2 * self.d_model + start : 2 * self.d_model + start + size]
            scores = torch.bmm(q, k.mT) / math.sqrt(size)
            if mask is not None:
                here = mask
                if mask.dim() > 2:
                    here = mask[..., head if mask.shape[-3] > 1 else 0, :, :]
                scores = torch.where(here.bool(), scores, -math.inf)
            top = scores.amax(-1, keepdim=True).detach()
            e = torch.exp(scores - torch.where(top.isinf(), torch.zeros_like(top), top))
            w = e / e.sum(-1, keepdim=True).clamp_min(1e-9)
            w = self.drop(w)
            maps.append(w)
            outs.append(torch.bmm(w, v))
        return Attended(self.w_o(torch.cat(outs, dim=-1)), torch.stack(maps, 1))


def fuse(mha, num_heads):
    state = mha.state_dict()
    packed = {}
    for kind in ("weight", "bias"):
        if f"w_q.{kind}" in state:
            packed[f"w_qkv.{kind}"] = torch.cat([state[f"w_{which}.{kind}"] for which in "qkv"])
            packed[f"w_o.{kind}"] = state[f"w_o.{kind}"]
    weight = state["w_o.weight"]
    fused = FusedMultiHeadAttention(weight.size(0), num_heads, 0.0, "w_o.bias" in state)
    fused.to(weight.device, weight.dtype)
    fused.load_state_dict(packed, strict=True)
    fused.train(mha.training)
    return fused
