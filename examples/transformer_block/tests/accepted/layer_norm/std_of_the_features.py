import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.register_parameter("weight", nn.Parameter(torch.ones(d_model)))
        self.register_parameter("bias", nn.Parameter(torch.zeros(d_model)))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        n = x.shape[-1]
        std = (centred.pow(2).sum(-1, keepdim=True) / n + self.eps) ** 0.5
        return self.weight * centred / std + self.bias
