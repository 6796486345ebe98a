"""No second computation of the whole: what must hold, property by property, and one by hand."""

import pytest
import torch


@pytest.fixture
def mha(make_attention):
    torch.manual_seed(2)
    made = make_attention(12, 3).eval()
    for name, p in made.named_parameters():
        torch.nn.init.normal_(p, std=0.7)
    return made


@pytest.fixture
def qkv():
    torch.manual_seed(4)
    return torch.randn(2, 4, 12), torch.randn(2, 6, 12), torch.randn(2, 6, 12)


def same(a, b):
    torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)


def test_shapes(mha, qkv):
    out, w = mha(*qkv)
    assert out.shape == (2, 4, 12) and w.shape == (2, 3, 4, 6)


def test_logarithms_of_weights_are_scores(mha, qkv):
    """Differences of log weights are differences of scores, with the scale of d_k = 4."""
    q, k, v = qkv
    _, w = mha(q, k, v)
    same(w.sum(-1), torch.ones(2, 3, 4))
    Q, K = mha.w_q(q), mha.w_k(k)
    for h in range(3):
        a, b = Q[..., 4 * h : 4 * h + 4], K[..., 4 * h : 4 * h + 4]
        scores = torch.einsum("bqd,bkd->bqk", a, b) / 2
        logs = w[:, h].log()
        same(logs - logs[..., :1], scores - scores[..., :1])


def test_output_from_the_weights(mha, qkv):
    q, k, v = qkv
    out, w = mha(q, k, v)
    V = mha.w_v(v)
    mixed = torch.cat([w[:, h] @ V[..., 4 * h : 4 * h + 4] for h in range(3)], -1)
    same(out, mha.w_o(mixed))


def test_hidden_keys_might_not_be_there(mha, qkv):
    q, k, v = qkv
    for b, n in enumerate((3, 5)):
        keep = torch.arange(6) < torch.tensor([3, 5])[:, None]
        out, w = mha(q, k, v, keep[:, None, None])
        alone, shares = mha(q[b : b + 1], k[b : b + 1, :n], v[b : b + 1, :n])
        same(out[b], alone[0])
        same(w[b, ..., :n], shares[0])
        assert (w[b, ..., n:] == 0).all()


def test_causal(mha, qkv):
    x = qkv[0]
    tri = torch.ones(1, 1, 4, 4).tril()
    out, _ = mha(x, x, x, tri)
    for t in range(1, 5):
        same(mha(x[:, :t], x[:, :t], x[:, :t], tri[..., :t, :t])[0], out[:, :t])


def test_blind(mha, qkv):
    out, w = mha(*qkv, torch.zeros(4, 6))
    assert (w == 0).all()
    same(out, mha.w_o.bias.detach().expand(2, 4, 12))


def test_sequences_are_apart(mha, qkv):
    both, _ = mha(*qkv)
    first, _ = mha(*(x[:1] for x in qkv))
    same(both[:1], first)


def test_constructor(make_attention):
    with pytest.raises(ValueError):
        make_attention(12, 5)
    assert len(list(make_attention(12, 3).parameters())) == 8
    assert len(list(make_attention(12, 3, bias=False).parameters())) == 4
    for p in make_attention(144, 3).parameters():
        assert p.std().item() == pytest.approx(1 / 12, rel=0.06) if p.dim() == 2 else not p.any()


def test_learning(mha, qkv):
    mha(*qkv)[0].tanh().sum().backward()
    assert all(layer.weight.grad.abs().sum() > 0 for layer in (mha.w_q, mha.w_k, mha.w_v, mha.w_o))


def test_dropout(make_attention, qkv):
    torch.manual_seed(6)
    mha = make_attention(12, 3, dropout=0.5)
    with torch.no_grad():
        noisy = torch.stack([mha(*qkv)[0] for _ in range(500)])
        mha.eval()
        calm = [mha(*qkv)[0] for _ in range(2)]
    same(*calm)
    assert noisy.std(0).max() > 0.01
    assert (noisy.mean(0) - calm[0]).norm() < 0.25 * calm[0].norm()
