# It reads attributes that are no contract
import torch

def test_it(make_attention):
    m = make_attention(8, 2)
    assert m.num_heads == 2 and m.d_k == 4
    x = torch.randn(2, 3, 8)
    assert m(x, x, x)[0].shape == x.shape
