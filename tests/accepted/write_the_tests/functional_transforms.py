"""One head of one sequence as a plain function; torch.func does the rest."""

import copy
import io
import pickle
from unittest import mock

import pytest
import torch
from torch.func import functional_call, hessian, jacfwd, jacrev, jvp, vmap
from torch.profiler import profile
from torch.testing import assert_close, make_tensor

LAYERS = ("w_q", "w_k", "w_v", "w_o")


def one_head(q, k, v, allowed):
    """[Tq, d], [Tk, d], [Tk, d], [Tq, Tk]"""
    powers = torch.where(allowed, torch.exp(q @ k.T / q.shape[-1] ** 0.5), 0.0)
    weights = powers / powers.sum(-1, keepdim=True).clamp_min(1e-30)
    return weights @ v, weights


def expected(mha, query, key, value, allowed):
    heads = vmap(one_head, in_dims=(1, 1, 1, None), out_dims=(1, 0))
    q, k, v = (
        getattr(mha, layer)(x).unflatten(-1, (4, -1))
        for layer, x in zip(LAYERS, (query, key, value), strict=False)
    )
    mixed, weights = vmap(heads)(q, k, v, allowed)
    return mha.w_o(mixed.flatten(-2)), weights


def made(make_attention, dtype=torch.double, **options):
    torch.manual_seed(0)
    mha = make_attention(12, 4, **options).to(dtype)
    for parameter in mha.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return mha.eval()


def tokens(count):
    return make_tensor((2, count, 12), dtype=torch.double, device="cpu", low=-2, high=2)


@pytest.mark.parametrize("lengths", [(6, 6), (4, 1), (3, 0)])
@pytest.mark.parametrize("count", [3, 7])
def test_values(make_attention, count, lengths):
    mha = made(make_attention)
    x = tokens(count), tokens(6), tokens(6)
    allowed = vmap(lambda n: torch.arange(6) < n)(torch.tensor(lengths))[:, None, None]
    got = tuple(mha(*x, allowed))
    assert_close(got, expected(mha, *x, allowed[:, 0].expand(2, count, 6)))
    assert_close(got, tuple(mha(*x, allowed.float())))


def test_no_mask(make_attention):
    mha, x = made(make_attention), (tokens(5), tokens(6), tokens(6))
    assert_close(tuple(mha(*x)), expected(mha, *x, torch.ones(2, 5, 6).bool()))


def test_causality(make_attention):
    """No output depends on a later token."""
    mha, x = made(make_attention), tokens(4)[:1]
    causal = torch.ones(4, 4).tril()
    slope = jacrev(lambda x: mha(x, x, x, causal)[0][0])(x)[:, :, 0].abs().sum((1, 3))
    assert_close(slope > 0, causal.bool())


def test_both_ways_to_differentiate(make_attention):
    mha, x = made(make_attention), tokens(3)
    plain = lambda q: mha(q, x, x)[0]  # noqa: E731
    back = jacrev(plain)(x)
    assert_close(back, torch.autograd.functional.jacobian(plain, x))
    everything = torch.ones(2, 3, 3).bool()
    assert_close(back, jacrev(lambda q: expected(mha, q, x, x, everything)[0])(x))


def test_gradcheck(make_attention):
    mha = made(make_attention)
    query, key = tokens(2).requires_grad_(), tokens(3).requires_grad_()
    torch.autograd.gradcheck(lambda q, k: mha(q, k, k)[0], (query, key), check_batched_grad=True)


def test_heads_in_another_order(make_attention):
    mha, x = made(make_attention), tokens(5)
    order = torch.tensor([3, 1, 0, 2])
    state = {name: each.detach().clone() for name, each in mha.named_parameters()}
    for name, each in state.items():
        if name == "w_o.weight":
            state[name] = each.unflatten(1, (4, 3))[:, order].flatten(1)
        elif name != "w_o.bias":
            state[name] = each.unflatten(0, (4, 3))[order].flatten(0, 1)
    output, weights = functional_call(mha, state, (x, x, x))
    assert_close((output, weights[:, order.argsort()]), tuple(mha(x, x, x)))


def test_a_step_of_an_optimizer(make_attention):
    mha, x = made(make_attention), tokens(5)
    optimizer = torch.optim.Adam(mha.parameters(), lr=1e-3)
    before = {name: each.detach().clone() for name, each in mha.named_parameters()}
    with profile() as profiled:
        loss = mha(x, x, x)[0].square().mean()
        loss.backward()
    assert profiled.key_averages()
    optimizer.step()
    assert mha(x, x, x)[0].square().mean() < loss
    for name, each in mha.named_parameters():
        assert name == "w_k.bias" or not torch.equal(each, before[name])


def test_copies(make_attention):
    mha, x = made(make_attention, torch.float), tokens(3).float()
    file = io.BytesIO()
    torch.save(mha.state_dict(), file)
    file.seek(0)
    other = make_attention(12, 4)
    other.load_state_dict(torch.load(file))
    for again in (other.eval(), copy.deepcopy(mha), pickle.loads(pickle.dumps(mha))):
        assert_close(tuple(again(x, x, x)), tuple(mha(x, x, x)))


def test_sizes(make_attention):
    fits = {n: n not in (5, 8) for n in (1, 2, 3, 4, 5, 8)}
    for heads, is_right in fits.items():
        if is_right:
            make_attention(12, heads)
            continue
        with pytest.raises(ValueError):
            make_attention(12, heads)


def test_beginning(make_attention):
    for bias in (True, False):
        mha = make_attention(128, 2, bias=bias)
        assert {name.split(".")[0] for name, _ in mha.named_parameters()} == set(LAYERS)
        for layer in (getattr(mha, name) for name in LAYERS):
            assert layer.weight.std().item() == pytest.approx(128**-0.5, rel=0.06)
            assert layer.bias is None if not bias else not layer.bias.any()


def test_dropout(make_attention):
    mha, x = made(make_attention, dropout=0.5), tokens(4)
    calm = mha(x, x, x)[0]
    with mock.patch.object(mha, "training", True), torch.no_grad():
        mha.train()
        noisy = torch.stack([mha(x, x, x)[0] for _ in range(300)])
        mha.eval()
    assert_close(mha(x, x, x)[0], calm)
    assert noisy.std(0).mean() > 0.01
    assert (noisy.mean(0) - calm).norm() < 0.25 * calm.norm()


def test_of_the_tests():
    """Forward mode and second derivatives of a head are there too."""
    q, allowed = torch.rand(2, 3), torch.ones(2, 2).bool()
    head = lambda q: one_head(q, q, q, allowed)[0]  # noqa: E731
    assert_close(jvp(head, (q,), (q,))[1], (jacfwd(head)(q) * q).sum((-1, -2)))
    assert hessian(lambda q: head(q).sum())(q).shape == (2, 3, 2, 3)
