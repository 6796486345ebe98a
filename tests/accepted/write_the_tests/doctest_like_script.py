# Short, flat, float64, everything in a few functions; async and helpers that look like tests.
from functools import partial
import torch, pytest
T64 = torch.float64

def attention(m, h, q, k, v, keep):
    heads = lambda t: torch.stack(t.split(t.size(-1) // h, -1), 1)
    a, b, c = heads(m.w_q(q)), heads(m.w_k(k)), heads(m.w_v(v))
    e = torch.exp(torch.einsum('bhqd,bhkd->bhqk', a, b) * a.size(-1) ** -.5) * keep
    w = torch.nan_to_num(e / e.sum(-1, keepdim=True))
    return m.w_o(torch.cat(list((w @ c).unbind(1)), -1)), w

@pytest.fixture(params=[(6, 1), (6, 2), (20, 5)])
def made(request, make_attention):
    D, H = request.param
    m = make_attention(D, H, bias=True).to(T64).eval()
    for i, p in enumerate(m.parameters()):
        p.data = torch.linspace(-1, 1, p.numel(), dtype=T64).mul(7 + i).sin().reshape(p.shape)
    return m, D, H

@pytest.mark.parametrize('lens', [(3, 3), (1, 2), (0, 3)])
def test_everything(made, lens):
    m, D, H = made
    q, k, v = (torch.rand(2, n, D, dtype=T64) - .5 for n in (5, 3, 3))
    keep = (torch.arange(3)[None] < torch.tensor(lens)[:, None])[:, None, None]
    for got, want in zip(m(q, k, v, keep.int()), attention(m, H, q, k, v, keep)):
        assert got.dtype == T64 and got.shape == want.shape
        assert (got - want).abs().max() < 1e-8

def test_no_mask_is_all_ones(made):
    m, D, H = made
    q, k, v = (torch.rand(2, n, D, dtype=T64) - .5 for n in (2, 3, 3))
    for got, want in zip(m(q, k, v), attention(m, H, q, k, v, 1)):
        assert got.shape == want.shape and (got - want).abs().max() < 1e-8

def test_grads(made):
    m, D, H = made
    x = torch.rand(2, 4, D, dtype=T64)
    want = torch.autograd.grad(attention(m, H, x, x, x, 1)[0].square().sum(), list(m.parameters()))
    got = torch.autograd.grad(m(x, x, x)[0].square().sum(), list(m.parameters()), allow_unused=True)
    for g, w in zip(got, want):
        assert g is not None and torch.allclose(g, w, atol=1e-7)

def test_constructor(make_attention):
    bad = partial(pytest.raises, ValueError)
    with bad(): make_attention(3, 2)
    with bad(): make_attention(16, 6)
    torch.manual_seed(0)
    for flag, n in ((False, 4), (True, 8)):
        ps = list(make_attention(100, 5, bias=flag).parameters())
        assert len(ps) == n
        assert all(.09 < p.std() < .11 for p in ps if p.ndim == 2)
        assert not any(p.any() for p in ps if p.ndim == 1)

def test_random(make_attention):
    torch.manual_seed(0)
    m = make_attention(8, 2, .5); x = torch.randn(8, 4, 8)
    f = lambda: m(x, x, x)[0].detach()
    t = torch.stack([f() for _ in range(200)]); m.eval(); e = f()
    assert (f() == e).all() and not (t[0] == t[1]).all()
    assert (t.mean(0) - e).pow(2).mean() < .06 * e.pow(2).mean()
