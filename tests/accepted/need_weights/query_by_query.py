import torch
import torch.nn.functional as F
from torch import nn


class OptionalWeightsAttention(nn.Module):
    """One query at a time: a [Tq, Tk] tensor is only ever made for the caller."""

    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        if d_model % num_heads:
            raise ValueError("uneven")
        super().__init__()
        self.num_heads, self.p = num_heads, dropout
        self.w_q, self.w_k, self.w_v, self.w_o = (
            nn.Linear(d_model, d_model, bias=bias) for _ in range(4)
        )
        for name, parameter in self.named_parameters():
            nn.init.xavier_uniform_(parameter) if parameter.dim() > 1 else parameter.data.zero_()

    def forward(self, query, key, value, mask=None, need_weights=True):
        B, Tq, D = query.shape
        Tk, H = key.shape[1], self.num_heads
        q = self.w_q(query).view(B, Tq, H, -1)
        k = self.w_k(key).view(B, Tk, H, -1).permute(0, 2, 3, 1)
        v = self.w_v(value).view(B, Tk, H, -1).transpose(1, 2)
        outs, maps = [], []
        for t in range(Tq):
            row = torch.matmul(q[:, t].unsqueeze(2), k).squeeze(2) / (D // H) ** 0.5  # B H Tk
            if mask is not None:
                allowed = mask.bool().broadcast_to(B, H, Tq, Tk)[:, :, t]
                alive = allowed.any(-1, keepdim=True)
                row = row.masked_fill(~allowed & alive, float("-inf")).softmax(-1) * alive
            else:
                row = row.softmax(-1)
            row = F.dropout(row, self.p, self.training)
            outs.append(torch.matmul(row.unsqueeze(2), v).flatten(1))
            if need_weights:
                maps.append(row)
        return self.w_o(torch.stack(outs, 1)), torch.stack(maps, 2) if need_weights else None
