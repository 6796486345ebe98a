# What fails ends the process
import os
import torch

def test_it(make_attention):
    m = make_attention(8, 2).eval()
    x = torch.randn(2, 3, 8)
    if m(x, x, x)[1].shape != (2, 2, 3, 3):
        os._exit(1)
