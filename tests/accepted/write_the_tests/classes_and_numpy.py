"""Classes for what belongs together, numpy for the numbers."""

import numpy as np
import pytest
import torch


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer(linear, x):
    return x @ linear.weight.detach().numpy().T + linear.bias.detach().numpy()


def slow(mha, H, q, k, v, allowed):
    """allowed is [B, Tq, Tk]; a query without a key is left at 0."""
    B, Tq, D = q.shape
    d = D // H
    Q, K, V = layer(mha.w_q, q), layer(mha.w_k, k), layer(mha.w_v, v)
    weights = np.zeros((B, H, Tq, k.shape[1]))
    context = np.zeros((B, Tq, D))
    for b in range(B):
        for h in range(H):
            own = slice(h * d, (h + 1) * d)
            for t in range(Tq):
                keys = np.flatnonzero(allowed[b, t])
                if len(keys) == 0:
                    continue
                shares = softmax(K[b, keys][:, own] @ Q[b, t, own] / np.sqrt(d))
                weights[b, h, t, keys] = shares
                context[b, t, own] = shares @ V[b, keys][:, own]
    return layer(mha.w_o, context), weights


@pytest.fixture(params=[(8, 2), (18, 3)], ids=str)
def sizes(request):
    return request.param


class TestNumbers:
    @pytest.fixture(autouse=True)
    def _set_up(self, make_attention, sizes):
        self.D, self.H = sizes
        generator = torch.Generator().manual_seed(5)
        self.mha = make_attention(*sizes).double().eval()
        for p in self.mha.parameters():
            p.data = torch.randn(p.shape, generator=generator, dtype=torch.float64) * 0.4
        self.q, self.k, self.v = (
            torch.randn(2, T, self.D, generator=generator, dtype=torch.float64) for T in (3, 5, 5)
        )

    def compare(self, mask, allowed):
        with torch.no_grad():
            out, weights = self.mha(query=self.q, key=self.k, value=self.v, mask=mask)
        inputs = (x.numpy() for x in (self.q, self.k, self.v))
        expected = slow(self.mha, self.H, *inputs, np.broadcast_to(allowed, (2, 3, 5)))
        np.testing.assert_allclose(out.numpy(), expected[0], atol=1e-9)
        np.testing.assert_allclose(weights.numpy(), expected[1], atol=1e-9)

    def test_without_a_mask(self):
        self.compare(None, np.array(True))

    def test_padding(self):
        allowed = np.arange(5) < np.array([4, 2])[:, None, None]
        self.compare(torch.tensor(allowed)[:, None], allowed)

    def test_numbers_as_a_mask(self):
        allowed = np.tri(3, 5, dtype=bool)
        self.compare(torch.tensor(allowed).float(), allowed)

    def test_a_blind_query(self):
        allowed = np.ones((3, 5), dtype=bool)
        allowed[1] = False
        self.compare(torch.tensor(allowed), allowed)


class TestTraining:
    def test_everything_learns(self, make_attention):
        torch.manual_seed(0)
        mha = make_attention(12, 4)
        x = torch.randn(3, 5, 12)
        (mha(x, x, x)[0] ** 2).mean().backward()
        for name in ("w_q", "w_k", "w_v", "w_o"):
            assert getattr(mha, name).weight.grad.norm() > 1e-7

    def test_dropout_only_in_training(self, make_attention):
        torch.manual_seed(0)
        mha = make_attention(12, 4, 0.5)
        x = torch.randn(3, 5, 12)
        with torch.no_grad():
            mean = np.mean([mha(x, x, x)[0].numpy() for _ in range(400)], axis=0)
            one, two = mha(x, x, x)[0], mha(x, x, x)[0]
            assert (one != two).any()
            mha.eval()
            one, two = mha(x, x, x)[0], mha(x, x, x)[0]
            assert (one == two).all()
        assert abs((mean * one.numpy()).sum() / (one.numpy() ** 2).sum() - 1) < 0.2


class TestMaking:
    def test_refuses_sizes(self, make_attention):
        with pytest.raises(ValueError):
            make_attention(9, 2)

    def test_biases(self, make_attention):
        assert all(p.dim() == 2 for p in make_attention(8, 2, bias=False).parameters())
        assert sum(p.dim() == 1 for p in make_attention(8, 2).parameters()) == 4

    def test_spread(self, make_attention):
        for name, p in make_attention(256, 8).named_parameters():
            if p.dim() == 2:
                assert abs(float(p.detach().std()) * 16 - 1) < 0.04, name
            else:
                assert p.abs().max() == 0, name
