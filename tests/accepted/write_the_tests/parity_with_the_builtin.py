"""Against nn.MultiheadAttention, with the same numbers in both."""

import itertools

import pytest
import torch
from torch import nn

D, H = 12, 3


@pytest.fixture
def pair(make_attention):
    torch.manual_seed(1)
    mha = make_attention(D, H)
    theirs = nn.MultiheadAttention(D, H, batch_first=True)
    with torch.no_grad():
        for p in mha.parameters():
            p.uniform_(-0.8, 0.8)
        layers = (mha.w_q, mha.w_k, mha.w_v)
        theirs.in_proj_weight.copy_(torch.cat([l.weight for l in layers]))
        theirs.in_proj_bias.copy_(torch.cat([l.bias for l in layers]))
        theirs.out_proj.weight.copy_(mha.w_o.weight)
        theirs.out_proj.bias.copy_(mha.w_o.bias)
    return mha.eval(), theirs.eval()


@pytest.mark.parametrize("tq, tk, masked", list(itertools.product([3, 6], [4, 5], [False, True])))
def test_parity(pair, tq, tk, masked):
    mha, theirs = pair
    q, k, v = torch.randn(2, tq, D), torch.randn(2, tk, D), torch.randn(2, tk, D)
    mask = torch.rand(2, H, tq, tk) > 0.4
    mask[..., 0] = True
    given = mask if masked else None
    blocked = ~mask.flatten(0, 1) if masked else None
    out, weights = mha(q, k, v, given)
    expected = theirs(q, k, v, attn_mask=blocked, average_attn_weights=False)
    assert torch.allclose(out, expected[0], atol=1e-5)
    assert torch.allclose(weights, expected[1], atol=1e-5)


def test_gradients_are_theirs(pair):
    mha, theirs = pair
    x = torch.randn(2, 4, D)
    mha(x, x, x)[0].sin().sum().backward()
    theirs(x, x, x)[0].sin().sum().backward()
    own = torch.cat([mha.w_q.weight.grad, mha.w_k.weight.grad, mha.w_v.weight.grad])
    assert torch.allclose(own, theirs.in_proj_weight.grad, atol=1e-4)


def test_nothing_to_see(pair):
    mha, _ = pair
    q, k = torch.randn(2, 3, D), torch.randn(2, 4, D)
    mask = torch.tensor([True, False])[:, None, None, None]
    out, weights = mha(q, k, k, mask)
    assert not weights[1].any()
    assert torch.allclose(out[1], mha.w_o.bias.expand(3, D))


@pytest.mark.parametrize("sizes", [(10, 3), (7, 2), (5, 4)])
def test_bad_sizes(make_attention, sizes):
    with pytest.raises(ValueError):
        make_attention(*sizes)


@pytest.mark.parametrize("bias", [True, False])
def test_start(make_attention, bias):
    mha = make_attention(200, 4, 0.0, bias)
    names = {name for name, _ in mha.named_parameters()}
    wanted = {f"w_{x}.weight" for x in "qkvo"} | ({f"w_{x}.bias" for x in "qkvo"} if bias else set())
    assert names == wanted
    for name, p in mha.named_parameters():
        if name.endswith("bias"):
            assert not p.any()
        else:
            assert p.std().item() == pytest.approx(200**-0.5, rel=0.05)
            assert abs(p.mean().item()) < 0.01


def test_dropout(make_attention):
    torch.manual_seed(3)
    mha = make_attention(D, H, dropout=0.3)
    x = torch.randn(4, 6, D)
    mha.eval()
    with torch.no_grad():
        still = mha(x, x, x)[0]
        assert torch.equal(still, mha(x, x, x)[0])
        mha.train()
        many = torch.stack([mha(x, x, x)[0] for _ in range(300)])
    assert many.std(0).mean() > 1e-3
    ratio = (many.mean(0) * still).sum() / (still * still).sum()
    assert 0.9 < ratio < 1.1
