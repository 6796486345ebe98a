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
    raise NotImplementedError("test_shapes is not written yet")


def test_weights_are_shares(make_attention: Make) -> None:
    """No weight is negative, and those of a query sum to 1."""
    raise NotImplementedError("test_weights_are_shares is not written yet")


def test_causal_mask(make_attention: Make) -> None:
    """Under a causal mask no query looks ahead."""
    raise NotImplementedError("test_causal_mask is not written yet")


def test_gradients(make_attention: Make) -> None:
    """Each parameter gets a gradient, without NaN."""
    raise NotImplementedError("test_gradients is not written yet")


def test_parameters(make_attention: Make) -> None:
    """4 D^2 + 4 D numbers, or 4 D^2 without biases, with their starting values."""
    raise NotImplementedError("test_parameters is not written yet")


def test_heads_are_equal(make_attention: Make) -> None:
    """No head is special: with the heads in another order nothing else changes."""
    raise NotImplementedError("test_heads_are_equal is not written yet")
