"""Bonus: tests for the module.

So far the course has tested your code. Now you test others' code: many modules
for multi-head attention, some right, most of them wrong. You never see them:
you write tests, and the grader runs them on each module.

A test is a function whose name begins with `test`. It takes the fixture
make_attention, which makes a module, and asserts what must hold:

    def test_keeps_the_shape(make_attention):
        mha = make_attention(12, 3).eval()
        x = torch.randn(2, 5, 12)
        output, weights = mha(x, x, x)
        assert output.shape == x.shape

    make_attention(d_model, num_heads, dropout=0.0, bias=True)  ->  the module

A module is what the stage multi_head_attention asks for, and you may rely only
on what it says there: four nn.Linear layers w_q, w_k, w_v and w_o, the sizes,
Xavier weights and zero biases, `forward(query, key, value, mask=None)` with a
mask in which True or 1 is allowed, two results, dropout on the weights in
training mode, a ValueError for sizes that don't fit. Everything else may
differ from module to module:

- the two results may be a tuple or a NamedTuple;
- in training mode the returned weights may be those from before dropout or
  those from after it, so their rows need not sum to 1;
- the starting weights may be Xavier uniform or Xavier normal;
- a module may have any other attributes, or none.

Two things count:

- On each right module all your tests pass. If one of them fails on a right
  module, no catch counts.
- On each wrong module at least one test fails. A test that is skipped catches
  nothing.

The wrong modules break one rule each: shapes, scale, weights that are shares,
masks, queries that may see nothing, heads, sequences and layers that must not
mix, equal heads, the layers and their starting values, sizes, dropout and its
average, gradients.

Below are the tests that courses and blogs usually have, with their names and
what they check. They are yours: change, delete and add what you like. You may
use all of pytest: parametrize, fixtures of your own, classes, pytest.raises,
torch.testing.assert_close. Only make_attention is given; don't write a fixture
of that name into this file.

To run the tests on your own module without `grade`, put this into a file
conftest.py beside it and type `pytest write_the_tests.py`:

    import pytest
    from multi_head_attention import MultiHeadAttention

    @pytest.fixture(scope="session")
    def make_attention():
        return MultiHeadAttention
"""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

Make = Callable[..., Any]  # what the fixture is: call it, and you have a module


def test_shapes(make_attention: Make) -> None:
    """Output [B, Tq, D] and weights [B, H, Tq, Tk], however long the two sequences are."""
    ### BEGIN SOLUTION
    for tq, tk in [(5, 5), (4, 7), (7, 4)]:
        mha, query, source = case(make_attention, tq, tk)
        output, weights = mha(query, source, source)
        assert output.shape == (3, tq, 12)
        assert weights.shape == (3, 4, tq, tk)
    ### END SOLUTION


def test_weights_are_shares(make_attention: Make) -> None:
    """No weight is negative, and those of a query sum to 1."""
    ### BEGIN SOLUTION
    mha, query, source = case(make_attention, 4, 7)
    _, weights = mha(query, source, source)
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4, 4))
    ### END SOLUTION


def test_causal_mask(make_attention: Make) -> None:
    """Under a causal mask no query looks ahead."""
    ### BEGIN SOLUTION
    mha, x, _ = case(make_attention, 6, 6)
    mask = torch.ones(6, 6).tril()
    _, weights = mha(x, x, x, mask)
    assert (weights[..., mask == 0] == 0).all()
    assert (weights[..., mask == 1] > 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4, 6))
    ### END SOLUTION


def test_gradients(make_attention: Make) -> None:
    """Each parameter gets a gradient, without NaN."""
    ### BEGIN SOLUTION
    mha, query, source = case(make_attention, 4, 7)
    mha(query, source, source)[0].square().sum().backward()
    for name, parameter in mha.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        if name != "w_k.bias":  # adds the same to all scores of a query
            assert parameter.grad.abs().max() > 1e-6, name
    ### END SOLUTION


def test_parameters(make_attention: Make) -> None:
    """4 D^2 + 4 D numbers, or 4 D^2 without biases, with their starting values."""
    ### BEGIN SOLUTION
    for bias, count in [(True, 4 * 128**2 + 4 * 128), (False, 4 * 128**2)]:
        mha = make_attention(128, 4, bias=bias)
        assert sum(parameter.numel() for parameter in mha.parameters()) == count
        for layer in (mha.w_q, mha.w_k, mha.w_v, mha.w_o):
            assert abs(layer.weight.std().item() * math.sqrt(128) - 1) < 0.05
            assert (layer.bias is None) == (not bias)
            assert not bias or (layer.bias == 0).all()
    with pytest.raises(ValueError):  # noqa: PT011 - what it says is free
        make_attention(10, 3)
    ### END SOLUTION


def test_heads_are_equal(make_attention: Make) -> None:
    """No head is special: with the heads in another order nothing else changes."""
    ### BEGIN SOLUTION
    mha, query, source = case(make_attention, 4, 7)
    before, weights = mha(query, source, source)
    order = torch.tensor([2, 0, 3, 1])
    rows = torch.arange(12).view(4, 3)[order].flatten()  # each head's features, in that order
    with torch.no_grad():
        for layer in (mha.w_q, mha.w_k, mha.w_v):
            layer.weight.copy_(layer.weight[rows])
            layer.bias.copy_(layer.bias[rows])
        mha.w_o.weight.copy_(mha.w_o.weight[:, rows])
    after, permuted = mha(query, source, source)
    torch.testing.assert_close(after, before)
    torch.testing.assert_close(permuted, weights[:, order])


def case(make_attention: Make, tq: int, tk: int, **options: Any) -> tuple[Any, Tensor, Tensor]:
    """A module with biases that are not 0, and tokens for it."""
    torch.manual_seed(tq * 10 + tk)
    mha = make_attention(12, 4, **options).eval()
    with torch.no_grad():
        for parameter in mha.parameters():
            parameter.normal_(0, 0.5)
    return mha, torch.randn(3, tq, 12), torch.randn(3, tk, 12)


def by_hand(mha: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Any:
    """One number after the other, as the formula has it."""
    output, weights = torch.zeros(3, query.shape[1], 12), []
    q, k, v = mha.w_q(query), mha.w_k(key), mha.w_v(value)
    for head in range(4):
        own = slice(3 * head, 3 * head + 3)
        shares = torch.exp(q[..., own] @ k[..., own].transpose(1, 2) / math.sqrt(3)) * mask
        shares = shares / shares.sum(-1, keepdim=True).clamp(min=1e-30)
        output[..., own] = shares @ v[..., own]
        weights.append(shares)
    return mha.w_o(output), torch.stack(weights, dim=1)


@pytest.mark.parametrize("lengths", [[7, 7, 7], [7, 3, 1], [2, 0, 5]])
def test_it_is_the_formula(make_attention: Make, lengths: list[int]) -> None:
    mha, query, key = case(make_attention, 4, 7)
    value = torch.randn(3, 7, 12)
    mask = torch.arange(7) < torch.tensor(lengths)[:, None, None]  # (B, 1, Tk)
    expected = by_hand(mha, query, key, value, mask)
    actual = mha(query, key, value, mask[:, None])
    torch.testing.assert_close(tuple(actual), expected)


def test_keys_and_values_may_differ(make_attention: Make) -> None:
    mha, query, key = case(make_attention, 4, 7)
    value = torch.randn(3, 7, 12)
    expected = by_hand(mha, query, key, value, torch.ones(3, 4, 7))
    torch.testing.assert_close(tuple(mha(query, key, value)), expected)


def test_dropout_is_for_training(make_attention: Make) -> None:
    mha, query, source = case(make_attention, 4, 7, dropout=0.5)
    plain, _ = mha(query, source, source)
    torch.testing.assert_close(mha(query, source, source)[0], plain)
    mha.train()
    assert not torch.allclose(mha(query, source, source)[0], plain)
    many = source.repeat(100, 1, 1)
    with torch.no_grad():
        mean = mha(query.repeat(100, 1, 1), many, many)[0].unflatten(0, (100, -1)).mean(0)
    # It is off by about a tenth; a module that forgets to divide by 1/2 is off by half.
    assert (mean - plain).abs().mean() < 0.25 * plain.abs().mean()
    ### END SOLUTION
