# It wants a tuple and nothing like it
import torch

def test_it(make_attention):
    x = torch.randn(2, 3, 8)
    assert type(make_attention(8, 2)(x, x, x)) is tuple
