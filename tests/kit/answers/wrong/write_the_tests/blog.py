# Shape, sums and one entry
import torch

def test_shape(make_attention):
    x = torch.randn(2, 10, 64)
    out, attn = make_attention(64, 4).eval()(x, x, x)
    assert out.shape == (2, 10, 64)

def test_sums(make_attention):
    x = torch.randn(2, 10, 64)
    out, attn = make_attention(64, 4).eval()(x, x, x)
    assert torch.allclose(attn.sum(dim=-1), torch.ones_like(attn.sum(dim=-1)), atol=1e-5)

def test_causal(make_attention):
    x = torch.randn(1, 5, 64)
    out, attn = make_attention(64, 4).eval()(x, x, x, torch.tril(torch.ones(1, 1, 5, 5)))
    assert attn[0, :, 0, 1].max() < 1e-5
