import torch
from torch import nn


class LayerNorm(nn.Module):
    """Computes in double precision, and the variance as a difference of means."""

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        wide = x.float() if x.device.type == "mps" else x.double()
        mean = wide.mean(-1, keepdim=True)
        var = wide.var(-1, correction=0, keepdim=True)
        return ((wide - mean) / (var + self.eps).sqrt()).to(x.dtype) * self.weight + self.bias
