import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-6):
        super().__init__()
        self.d_model, self.eps = d_model, eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        length = torch.linalg.vector_norm(x.float(), dim=-1, keepdim=True)
        scale = (length.square() / self.d_model + self.eps).rsqrt()
        return (x.float() * scale).to(x.dtype) * self.weight
