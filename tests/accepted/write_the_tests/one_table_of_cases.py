"""One test function over a table of named properties."""
import math

import pytest
import torch
from torch.nn.functional import softmax

CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


def filled(make, D=12, H=4, **kw):
    m = make(D, H, **kw)
    g = torch.Generator().manual_seed(D + H)
    m.load_state_dict({n: torch.randn(p.shape, generator=g) * 0.5 for n, p in m.state_dict().items()})
    return m.eval()


def x(*s, seed=0):
    return torch.randn(*s, generator=torch.Generator().manual_seed(seed))


@case
def formula(make):
    m = filled(make)
    q, k, v = x(3, 5, 12), x(3, 7, 12, seed=1), x(3, 7, 12, seed=2)
    cut = lambda t: t.unflatten(-1, (4, 3)).transpose(1, 2)
    for mask in (None, x(3, 4, 5, 7, seed=3) > 0.5, x(3, 1, 1, 7, seed=4) > 0, x(5, 7, seed=5) > 1):
        s = cut(m.w_q(q)) @ cut(m.w_k(k)).mT / math.sqrt(3)
        w = softmax(s if mask is None else s.where(mask, torch.tensor(-1e9)), -1)
        w = w if mask is None else w * mask
        o = m.w_o((w @ cut(m.w_v(v))).transpose(1, 2).flatten(2))
        got = m(q, k, v) if mask is None else m(q, k, v, mask)
        assert torch.allclose(got[0], o, atol=1e-4) and torch.allclose(got[1], w, atol=1e-5)


@case
def equal_heads(make):
    m = filled(make)
    before = m(x(2, 3, 12), x(2, 5, 12), x(2, 5, 12))
    turn = torch.arange(12).roll(3)
    s = {n: (p[:, turn] if n == "w_o.weight" else p if n == "w_o.bias" else p[turn]) for n, p in m.state_dict().items()}
    m.load_state_dict(s)
    after = m(x(2, 3, 12), x(2, 5, 12), x(2, 5, 12))
    assert torch.allclose(before[0], after[0], atol=1e-4)
    assert torch.allclose(before[1].roll(1, 1), after[1], atol=1e-5)


@case
def numbers(make):
    for b in (True, False):
        m = make(160, 4, bias=b)
        assert sorted(m.state_dict()) == sorted(f"w_{c}.{t}" for c in "qkvo" for t in ("weight", "bias")[: 1 + b])
        assert all(abs(p.std() * 160**0.5 - 1) < 0.05 for p in m.parameters() if p.dim() > 1)
        assert all((p == 0).all() for p in m.parameters() if p.dim() == 1)


@case
def refuses(make):
    for d, h in ((5, 2), (12, 5), (16, 3)):
        try:
            make(d, h)
        except ValueError:
            continue
        pytest.fail(f"{h} heads for {d}")


@case
def drops(make):
    m = filled(make, dropout=0.4)
    a = x(2, 6, 12)
    still, again = m(a, a, a)[0], m(a, a, a)[0]
    assert (still == again).all()
    torch.manual_seed(0)
    m.train()
    runs = torch.stack([m(a, a, a)[0].detach() - m.w_o.bias.detach() for _ in range(256)])
    base = still - m.w_o.bias
    assert runs.var(0).sum() > 0.01
    assert abs((runs.mean(0) * base).sum() / (base * base).sum() - 1) < 0.15


@case
def learns(make):
    m = filled(make)
    a = x(2, 6, 12)
    m(a, a, a)[0].cos().sum().backward()
    assert min(m.get_submodule(f"w_{c}").weight.grad.abs().max() for c in "qkvo") > 1e-6


@pytest.mark.parametrize("name", sorted(CASES))
def test(name, make_attention):
    CASES[name](make_attention)
