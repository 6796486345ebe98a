"""Hidden checks of multi_head_attention: the module against a float64 reference and torch's own.

`reference` computes the attention of one head at a time on the CPU; `builtin` asks
nn.MultiheadAttention with the same weights. Each check builds its own module and gives it a state
that leaves the scores far from saturating the softmax, with biases that are not zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from grader.checking import (
    Rand,
    Submission,
    draw_state,
    draw_truths,
    expect_all_different,
    expect_close,
    expect_device,
    expect_dropped,
    expect_dtype,
    expect_equal,
    expect_gradients_close,
    expect_new_draws,
    expect_no_constant,
    expect_parameters,
    expect_raises,
    expect_results,
    expect_shape,
    expect_start,
    expect_unchanged,
    gpu_or_skip,
    linear_shapes,
    skip_unless_supported,
    trained_parameters,
    with_state,
)

LAYERS = ("w_q", "w_k", "w_v", "w_o")
OUTPUT = "B Tq D"
WEIGHTS = "B H Tq Tk"
RESULTS = {"the output": OUTPUT, "the weights": WEIGHTS}
# Calls with the same tensors, as in training: in two calls of a check they are copies.
IN_TURN = """
from torch import nn


class Called(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, inputs, others, state):
        results = [self.attention(*inputs)]
        for tensor, other in zip(inputs, others):
            tensor.copy_(other)
        results.append(self.attention(*inputs))
        self.attention.load_state_dict(state)
        return *results, self.attention(*inputs)
"""
ALONG = {"B": "sequences", "H": "heads", "Tq": "queries", "Tk": "keys"}
State = Mapping[str, Tensor]


# --- the reference ---------------------------------------------------------------------------


def reference(
    state: State,
    num_heads: int,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Output and weights, one head at a time, in float64 on the CPU."""
    exact = {name: tensor.cpu().double() for name, tensor in state.items()}
    d_k = query.shape[-1] // num_heads
    none = torch.zeros((), dtype=torch.float64)

    def project(layer: str, x: Tensor) -> Tensor:
        rows = x.cpu().double() @ exact[f"{layer}.weight"].T
        return rows + exact.get(f"{layer}.bias", none)

    q, k, v = project("w_q", query), project("w_k", key), project("w_v", value)
    allowed = torch.ones((), dtype=torch.bool) if mask is None else (mask != 0).cpu()
    allowed = allowed.expand(len(q), num_heads, q.shape[1], k.shape[1])
    output = exact.get("w_o.bias", none)
    maps = []
    for head in range(num_heads):
        own = slice(head * d_k, (head + 1) * d_k)  # this head's features
        scores = q[..., own] @ k[..., own].transpose(1, 2) / d_k**0.5
        powers = (scores - scores.detach().amax(-1, keepdim=True)).exp()
        powers = powers * allowed[:, head]
        total = powers.sum(-1, keepdim=True)
        weights = powers / (total + (total == 0))  # a row of zeros stays zero
        output = output + weights @ v[..., own] @ exact["w_o.weight"][:, own].T
        maps.append(weights)
    return output, torch.stack(maps, dim=1)


def builtin(
    state: State,
    num_heads: int,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The result of nn.MultiheadAttention for this state."""
    layer = nn.MultiheadAttention(query.shape[-1], num_heads, batch_first=True)
    packed = {
        "in_proj_weight": torch.cat([state[f"{name}.weight"] for name in LAYERS[:3]]),
        "in_proj_bias": torch.cat([state[f"{name}.bias"] for name in LAYERS[:3]]),
        "out_proj.weight": state["w_o.weight"],
        "out_proj.bias": state["w_o.bias"],
    }
    options: dict[str, Any] = {"average_attn_weights": False}
    if mask is not None:
        # True means blocked there, and one axis holds batch and heads. A key_padding_mask would
        # do for padding, but the first one in a process makes torch import sympy: 0.6 seconds.
        blocked = (mask == 0).expand(len(query), num_heads, query.shape[1], key.shape[1])
        options["attn_mask"] = blocked.flatten(0, 1)
    output, weights = torch.func.functional_call(layer, packed, (query, key, value), options)
    return output, weights


# --- building modules, inputs and masks ------------------------------------------------------


def shapes(D: int, bias: bool = True) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the parameters of four layers from D to D."""
    return linear_shapes(dict.fromkeys(LAYERS, (D, D)), bias)


def module(submission: Submission, state: State, num_heads: int, **options: Any) -> Any:
    """The learner's module with this state, in evaluation mode and on the state's device."""
    d_model = len(state["w_q.weight"])
    mha = submission.MultiHeadAttention(d_model=d_model, num_heads=num_heads, **options)
    return with_state(mha, state)


def tokens(rand: Rand, B: int, Tq: int, Tk: int, D: int, grad: bool = False) -> list[Tensor]:
    """Query, key and value, three different tensors."""
    return [
        rand(B=B, Tq=Tq, D=D, grad=grad),
        rand(B=B, Tk=Tk, D=D, grad=grad),
        rand(B=B, Tk=Tk, D=D, grad=grad),
    ]


def causal(T: int, device: torch.device) -> Tensor:
    """[1, 1, T, T], True on and below the diagonal."""
    steps = torch.arange(T, device=device)
    return (steps[:, None] >= steps).reshape(1, 1, T, T)


def padding(lengths: list[int], Tk: int, device: torch.device) -> Tensor:
    """[B, 1, 1, Tk], True for the first `length` keys."""
    ends = torch.tensor(lengths, device=device)
    return (torch.arange(Tk, device=device) < ends[:, None]).reshape(len(lengths), 1, 1, Tk)


# --- judging ---------------------------------------------------------------------------------


def expect_both(actual: Any, expected: tuple[Tensor, Tensor], when: str = "", **room: Any) -> None:
    """Expect this output and these weights."""
    expect_results(actual, expected, RESULTS, when, **room)


def expect_gradients(actual: Tensor, expected: Tensor, inputs: State, **axes: Any) -> None:
    """Expect these gradients; they are sums of many terms and rounded accordingly in float32."""
    expect_gradients_close(actual, expected, inputs, rtol=1e-3, atol=1e-4, **axes)


# --- the results -----------------------------------------------------------------------------


@pytest.mark.points(1, hint=7)
@pytest.mark.pays("zeros", "ones", because="only the shape, dtype and device are checked")
@pytest.mark.parametrize(("B", "Tq", "Tk", "D", "H"), [(2, 5, 7, 12, 3), (3, 8, 6, 20, 4)])
@torch.no_grad()
def test_shapes(
    submission: Submission,
    rand: Rand,
    device: torch.device,
    B: int,
    Tq: int,
    Tk: int,
    D: int,
    H: int,
) -> None:
    """Returns the output [B, Tq, D] and each head's weights [B, H, Tq, Tk]"""
    mha = module(submission, draw_state(rand, shapes(D)), H)
    output, weights = mha(*tokens(rand, B, Tq, Tk, D))
    expect_shape(output, "the output", B=B, Tq=Tq, D=D)
    expect_shape(weights, "the weights", B=B, H=H, Tq=Tq, Tk=Tk)
    for result in (output, weights):
        expect_dtype(result, torch.float32)
        expect_device(result, device)


@pytest.mark.points(2, hint=5)
@pytest.mark.parametrize(
    ("B", "T", "D", "H"), [(2, 5, 12, 3), (3, 6, 20, 4), (5, 4, 12, 2), (1, 130, 8, 2)]
)
@torch.no_grad()
def test_self_attention(submission: Submission, rand: Rand, B: int, T: int, D: int, H: int) -> None:
    """Self-attention gives the output of the formula"""
    state = draw_state(rand, shapes(D))
    x = rand(B=B, T=T, D=D)
    expected, _ = reference(state, H, x, x, x)
    output, _ = module(submission, state, H)(x, x, x)
    expect_close(output, expected, axes="B T D", what="the output")


@pytest.mark.points(1, hint=5)
@pytest.mark.parametrize(
    ("B", "Tq", "Tk", "D", "H", "spread"),
    [
        (2, 5, 5, 12, 3, 1.0),
        (3, 7, 6, 20, 4, 60.0),
        pytest.param(2, 4, 7, 12, 2, 1.0, marks=pytest.mark.random),
    ],
)
@torch.no_grad()
def test_weights(
    submission: Submission, rand: Rand, B: int, Tq: int, Tk: int, D: int, H: int, spread: float
) -> None:
    """The weights are each head's softmax, and every row sums to 1"""
    state = draw_state(rand, shapes(D))
    for name in ("w_q.weight", "w_q.bias"):
        state[name] = state[name] * spread
    query, key, value = tokens(rand, B, Tq, Tk, D)
    _, expected = reference(state, H, query, key, value)
    _, weights = module(submission, state, H)(query, key, value)
    expect_shape(weights, "the weights", B=B, H=H, Tq=Tq, Tk=Tk)
    ones = torch.ones(B, H, Tq)
    expect_close(weights.sum(-1), ones, axes="B H Tq", what="the sum of the weights of a row")
    # A score of several hundred has an error of about 1e-4 in float32, and so do its weights.
    tolerance = 5e-3 if spread > 1 else None
    when = " for large scores" if spread > 1 else ""
    expect_close(
        weights, expected, axes=WEIGHTS, what=f"the weight{when}", rtol=tolerance, atol=tolerance
    )


@pytest.mark.points(2, hint=4)
@pytest.mark.parametrize(
    ("B", "Tq", "Tk", "D", "H"), [(2, 5, 7, 12, 3), (3, 8, 6, 20, 4), (2, 1, 6, 12, 4)]
)
@torch.no_grad()
def test_cross_attention(
    submission: Submission, rand: Rand, B: int, Tq: int, Tk: int, D: int, H: int
) -> None:
    """Cross-attention takes keys and values from other tokens"""
    state = draw_state(rand, shapes(D))
    query, key, value = tokens(rand, B, Tq, Tk, D)
    mha = module(submission, state, H)
    blank = rand(B=B, Tk=Tk, D=D)
    blank[0, 1] = 0  # a token like any other: only a mask says what is padding
    calls = [(query, key, value), (key, key, value), (query, key, key), (query, blank, value)]
    for inputs in calls:
        expected = reference(state, H, *inputs)
        expect_both(mha(*inputs), expected)


@pytest.mark.points(1, hint=7)
@pytest.mark.parametrize(
    ("B", "Tq", "Tk", "D", "H"),
    [(1, 5, 5, 12, 3), (2, 1, 1, 12, 3), (2, 5, 1, 12, 3), (2, 5, 4, 12, 1), (2, 5, 4, 6, 6)],
    ids=["one sequence", "one token", "one key", "one head", "a head per feature"],
)
@torch.no_grad()
def test_edges(
    submission: Submission, rand: Rand, B: int, Tq: int, Tk: int, D: int, H: int
) -> None:
    """It works for a single sequence, token, key or head, and d_k = 1"""
    state = draw_state(rand, shapes(D))
    inputs = tokens(rand, B, Tq, Tk, D)
    expected = reference(state, H, *inputs)
    expect_both(module(submission, state, H)(*inputs), expected)


@pytest.mark.points(1, hint=5)
@torch.no_grad()
def test_head_order(submission: Submission, rand: Rand, seed: int) -> None:
    """The heads in another order give the same output"""
    B, T, D, H = 2, 6, 20, 4
    d_k = D // H
    state = draw_state(rand, shapes(D))
    x = rand(B=B, T=T, D=D)
    output, weights = module(submission, state, H)(x, x, x)
    expect_shape(output, "the output", B=B, T=T, D=D)
    expect_shape(weights, "the weights", B=B, H=H, T=T, Tk=T)
    expect_no_constant(output, x=x)
    alike = "Two heads have the same weights"
    expect_all_different({f"head {head}": weights[:, head] for head in range(H)}, alike)

    turn = 1 + seed % (H - 1)
    order = [(head + turn) % H for head in range(H)]
    features = [head * d_k + feature for head in order for feature in range(d_k)]
    turned = {name: tensor[features] for name, tensor in state.items()}
    turned["w_o.weight"] = state["w_o.weight"][:, features]
    turned["w_o.bias"] = state["w_o.bias"]
    results = module(submission, turned, H)(x, x, x)
    expect_both(results, (output, weights[:, order]), " with the heads reordered")


@pytest.mark.points(1)
@torch.no_grad()
def test_strided(submission: Submission, rand: Rand) -> None:
    """Strided views of the inputs give the same results as their copies"""
    B, Tq, Tk, D, H = 2, 6, 7, 15, 3  # with d_k = 4, scores times 2 would be unscaled ones
    state = draw_state(rand, shapes(D))
    query = rand(Tq=Tq, B=B, D=D).transpose(0, 1)
    key = rand(B=B, D=D, Tk=Tk).transpose(1, 2)
    value = rand(B=B, Tk=2 * Tk, D=D)[:, ::2]
    expected = reference(state, H, query, key, value)
    expect_both(module(submission, state, H)(query, key, value), expected)


# --- masks -----------------------------------------------------------------------------------


@pytest.mark.points(1, hint=5)
@pytest.mark.parametrize(("B", "T", "D", "H"), [(2, 5, 12, 3), (3, 6, 20, 4)])
@torch.no_grad()
def test_causal(
    submission: Submission, rand: Rand, device: torch.device, B: int, T: int, D: int, H: int
) -> None:
    """With a causal mask no token sees a later one"""
    state = draw_state(rand, shapes(D))
    mha = module(submission, state, H)
    x = rand(B=B, T=T, D=D)
    mask = causal(T, device)
    expected = reference(state, H, x, x, x, mask)
    output, weights = mha(x, x, x, mask=mask)
    expect_both((output, weights), expected)
    blocked = weights.cpu().masked_fill(mask.cpu(), 0)
    what = "the weight of a later token"
    expect_close(blocked, torch.zeros(B, H, T, T), axes=WEIGHTS, rtol=0, atol=0, what=what)

    changed = x.clone()
    changed[:, T // 2 :] = rand(B=B, T=T - T // 2, D=D, scale=3.0)
    again, _ = mha(changed, changed, changed, mask=mask)
    expect_shape(again, "the output", B=B, T=T, D=D)
    expect_close(
        again[:, : T // 2],
        output[:, : T // 2],
        axes="B T D",
        what="the output after later tokens change",
    )


@pytest.mark.points(2, hint=5)
@pytest.mark.parametrize(
    ("B", "Tq", "spread"),
    [(2, 5, 1.0), (2, 1, 1.0), (3, 3, 1.0), (2, 5, 30.0), (2, 5, 0.0)],
    ids=["", "one query", "as many heads and queries as sequences", "large scores", "scores of 0"],
)
@torch.no_grad()
def test_mask_shapes(
    submission: Submission, rand: Rand, seed: int, B: int, Tq: int, spread: float
) -> None:
    """Masks of every shape that broadcasts to [B, H, Tq, Tk] work"""
    sizes = {"B": B, "H": 3, "Tq": Tq, "Tk": 7}
    D, H = 12, sizes["H"]
    state = draw_state(rand, shapes(D))
    for name in ("w_q.weight", "w_q.bias"):
        state[name] = state[name] * spread
    tolerance = 5e-3 if spread > 1 else None  # as in test_weights
    query, key, value = tokens(rand, sizes["B"], sizes["Tq"], sizes["Tk"], D)
    mha = module(submission, state, H)
    mha.train(spread > 1)  # in which nothing is dropped
    for axes in ("Tq Tk", "H Tq Tk", "B 1 1 Tk", "B 1 Tq Tk", "1 H 1 Tk", "B H Tq Tk"):
        shape = {
            f"axis_{place}": sizes.get(axis, 1)  # "1" is in no table of sizes
            for place, axis in enumerate(axes.split())
        }
        mask = draw_truths(rand, seed, **shape)
        expected = reference(state, H, query, key, value, mask)
        results = mha(query, key, value, mask=mask)
        when = f" for a mask [{', '.join(axes.split())}]" + " and scores of 0" * (spread == 0)
        expect_both(results, expected, when, rtol=tolerance, atol=tolerance)


@pytest.mark.points(1, hint=5)
@torch.no_grad()
def test_mask_dtypes(submission: Submission, rand: Rand, seed: int, device: torch.device) -> None:
    """A mask may be bool or zeros and ones of any dtype"""
    B, T, D, H = 3, 5, 12, 2
    state = draw_state(rand, shapes(D))
    x = rand(B=B, T=T, D=D)
    mha = module(submission, state, H)
    heads = draw_truths(rand, seed, B=B, H=H, Tq=T, Tk=T)
    wide = [] if device.type == "mps" else [torch.float64]  # which Apple's GPUs lack
    for mask in (padding([5, 2, 4], T, device), heads):
        expected = reference(state, H, x, x, x, mask)
        for dtype in (torch.bool, torch.int64, torch.uint8, torch.float32, *wide):
            results = mha(x, x, x, mask=mask.to(dtype))
            expect_both(results, expected, f" for a mask of {dtype}")


def blocked_rows(B: int, T: int, device: torch.device) -> Tensor:
    """[B, 1, T, T]: causal, the first query sees nothing, the last sequence is empty."""
    mask = causal(T, device).repeat(B, 1, 1, 1)
    mask[:, :, 0] = False
    mask[-1] = False
    return mask


@pytest.mark.points(1, hint=5)
@torch.no_grad()
def test_blocked_rows(submission: Submission, rand: Rand, device: torch.device) -> None:
    """A query with no allowed key has zero weights, and its output is w_o.bias"""
    B, T, D, H = 2, 5, 12, 3
    state = draw_state(rand, shapes(D))
    mha = module(submission, state, H)
    x = rand(B=B, T=T, D=D)
    row = torch.ones(T, T, dtype=torch.bool, device=device)
    row[T // 2] = False
    nothing = torch.zeros(T, T, dtype=torch.bool, device=device)
    one_head = torch.ones(H, T, T, dtype=torch.bool, device=device)
    one_head[1, T // 2] = False
    for mask in (blocked_rows(B, T, device), row, nothing, one_head):
        expected = reference(state, H, x, x, x, mask)
        for given, when in ((mask, ""), (mask.float(), " in training, with a mask of numbers")):
            mha.train(bool(when))  # in which nothing is dropped
            expect_both(mha(x, x, x, mask=given), expected, when)


@pytest.mark.points(1)
def test_blocked_gradients(submission: Submission, rand: Rand, device: torch.device) -> None:
    """Gradients are finite and right where all keys are blocked"""
    B, T, D, H = 2, 5, 12, 3
    state = draw_state(rand, shapes(D))
    mha = module(submission, state, H)
    trained = trained_parameters(mha, state)
    query, key, value = (rand(B=B, T=T, D=D, grad=True) for _ in range(3))
    mha.train()
    mask = blocked_rows(B, T, device)
    expected, _ = reference(trained, H, query, key, value, mask)
    output, _ = mha(query, key, value, mask=mask)
    inputs = {"query": query, "key": key, "value": value, **trained}
    expect_gradients(output, expected, inputs)


# --- gradients -------------------------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.parametrize(("B", "Tq", "Tk", "D", "H"), [(2, 5, 7, 12, 3), (3, 7, 6, 20, 4)])
def test_input_gradients(
    submission: Submission, rand: Rand, B: int, Tq: int, Tk: int, D: int, H: int
) -> None:
    """Gradients flow back into query, key and value"""
    state = draw_state(rand, shapes(D))
    mha = module(submission, state, H)
    query, key, value = tokens(rand, B, Tq, Tk, D, grad=True)
    expected, _ = reference(state, H, query, key, value)
    output, _ = mha(query, key, value)
    expect_gradients(output, expected, {"query": query, "key": key, "value": value})

    x = rand(B=B, T=Tq, D=D, grad=True)
    expected, _ = reference(state, H, x, x, x)
    output, _ = mha(x, x, x)
    expect_gradients(output, expected, {"x in self-attention": x})


@pytest.mark.points(1)
@pytest.mark.parametrize(("B", "Tq", "Tk", "D", "H"), [(2, 5, 7, 12, 3), (3, 7, 6, 20, 4)])
def test_parameter_gradients(
    submission: Submission, rand: Rand, B: int, Tq: int, Tk: int, D: int, H: int
) -> None:
    """Gradients reach the weights and biases of all four layers"""
    state = draw_state(rand, shapes(D))
    mha = module(submission, state, H, dropout=0.0)
    mha.train()
    trained = trained_parameters(mha, state)
    query, key, value = tokens(rand, B, Tq, Tk, D)
    for inputs in ((query, key, value), (query, key, key), (key, key, key)):
        expected, _ = reference(trained, H, *inputs)
        output, _ = mha(*inputs)
        expect_gradients(output, expected, trained)


# --- the layers ------------------------------------------------------------------------------


@pytest.mark.points(1, hint=1)
@pytest.mark.parametrize(("d_model", "num_heads"), [(6, 2), (20, 5)])
def test_layers(submission: Submission, d_model: int, num_heads: int) -> None:
    """It has the layers w_q, w_k, w_v and w_o, and no other parameters"""
    mha = submission.MultiHeadAttention(d_model=d_model, num_heads=num_heads)
    trained_parameters(mha, shapes(d_model))
    expect_parameters(mha.state_dict(), shapes(d_model), where="state_dict()")
    count = sum(parameter.numel() for parameter in mha.parameters())
    expect_equal(count, 4 * d_model**2 + 4 * d_model, f"the number of parameters for D={d_model}")


@pytest.mark.points(1, hint=2)
@torch.no_grad()
def test_biases(submission: Submission, rand: Rand) -> None:
    """Biases start at 0, and bias=False leaves out all four"""
    B, T, D, H = 2, 5, 12, 3
    mha = submission.MultiHeadAttention(d_model=D, num_heads=H)
    start = mha.state_dict()
    expect_parameters(start, shapes(D), others=True, where="state_dict()")
    for layer in LAYERS:
        name = f"{layer}.bias"
        expect_close(start[name], torch.zeros(D), axes="row", rtol=0, atol=0, what=name)

    state = draw_state(rand, shapes(D, bias=False))
    plain = module(submission, state, H, bias=False)
    weights = shapes(D, bias=False)
    expect_parameters(plain.state_dict(), weights, where="state_dict()", when=" with bias=False")
    x = rand(B=B, T=T, D=D)
    expected = reference(state, H, x, x, x)
    expect_both(plain(x, x, x), expected, " without biases")
    zeros = torch.zeros_like(x)  # whose scores are exactly 0, and yet scores
    expected = reference(state, H, zeros, x, x)
    expect_both(plain(zeros, x, x), expected, " without biases for a query of zeros")


@pytest.mark.points(1, hint=2)
@pytest.mark.parametrize(("d_model", "num_heads", "bias"), [(128, 8, False), (160, 4, True)])
def test_xavier(submission: Submission, d_model: int, num_heads: int, bias: bool) -> None:
    """Weights start with Xavier values, standard deviation 1/sqrt(D)"""
    mha = submission.MultiHeadAttention(d_model=d_model, num_heads=num_heads, bias=bias)
    start = mha.state_dict()
    expect_parameters(start, shapes(d_model, bias), others=True, where="state_dict()")
    for layer in LAYERS:
        expect_start(start[f"{layer}.weight"], d_model**-0.5, f"{layer}.weight")


@pytest.mark.points(1, hint=2)
def test_fresh_weights(submission: Submission) -> None:
    """Each layer of each module draws its own starting weights"""
    D, H = 12, 3
    drawn: dict[str, Tensor] = {}
    for which in ("one module", "another module"):
        start = submission.MultiHeadAttention(d_model=D, num_heads=H).state_dict()
        expect_parameters(start, shapes(D), others=True, where="state_dict()")
        for layer in LAYERS:
            drawn[f"{layer} of {which}"] = start[f"{layer}.weight"]
    expect_all_different(drawn, "Two layers start with the same weights")


@pytest.mark.points(1, hint=1)
@torch.no_grad()
def test_arguments(submission: Submission, rand: Rand) -> None:
    """Arguments work by name and by position, and dropout is 0 by default"""
    B, Tq, Tk, D, H = 2, 5, 7, 12, 3
    state = draw_state(rand, shapes(D))
    query, key, value = tokens(rand, B, Tq, Tk, D)
    mask = padding([4, 6], Tk, query.device)
    masked = reference(state, H, query, key, value, mask)
    unmasked = reference(state, H, query, key, value)

    mha = submission.MultiHeadAttention(d_model=D, num_heads=H)
    with_state(mha, state, evaluate=False)  # a module starts in training mode
    expect_both(mha(query, key, value), unmasked, " with the default dropout")
    expect_both(
        mha(mask=mask, value=value, key=key, query=query), masked, " of the call by keyword"
    )
    expect_both(mha(query, key, value, mask), masked, " of the call by position")
    expect_both(mha(query, key, value, None), unmasked, " for the mask None")

    by_position = submission.MultiHeadAttention(D, H, 0.5, False)
    expect_parameters(by_position.state_dict(), shapes(D, bias=False), where="state_dict()")


@pytest.mark.points(1, hint=3)
@pytest.mark.parametrize(("d_model", "num_heads"), [(10, 3), (4, 8)])
def test_heads_must_divide(submission: Submission, d_model: int, num_heads: int) -> None:
    """The constructor raises ValueError if num_heads does not divide d_model"""
    submission.MultiHeadAttention(d_model=d_model * num_heads, num_heads=num_heads)
    with expect_raises(ValueError, f"{d_model} features cannot be split into {num_heads} heads"):
        submission.MultiHeadAttention(d_model=d_model, num_heads=num_heads)


# --- parity with nn.MultiheadAttention -------------------------------------------------------


PARITY = ("no mask", "causal", "padding")


def parity_case(
    rand: Rand, kind: str, D: int, grad: bool = False
) -> tuple[list[Tensor], Tensor | None]:
    """Query, key and value, and a mask of this kind."""
    B, Tq, Tk = 3, 5, 7
    if kind == "causal":
        inputs = tokens(rand, B, Tq, Tq, D, grad)
        return inputs, causal(Tq, inputs[0].device)
    inputs = tokens(rand, B, Tq, Tk, D, grad)
    return inputs, padding([4, 7, 2], Tk, inputs[0].device) if kind == "padding" else None


@pytest.mark.points(2, hint=5)
@torch.no_grad()
def test_builtin(submission: Submission, rand: Rand) -> None:
    """With the same weights it agrees with nn.MultiheadAttention"""
    D, H = 24, 4
    state = draw_state(rand, shapes(D))
    mha = module(submission, state, H)
    for kind in PARITY:
        (query, key, value), mask = parity_case(rand, kind, D)
        expected = builtin(state, H, query, key, value, mask)
        expect_both(mha(query, key, value, mask=mask), expected, f" ({kind})")


@pytest.mark.points(1)
def test_builtin_gradients(submission: Submission, rand: Rand) -> None:
    """Its gradients agree with those of nn.MultiheadAttention"""
    D, H = 24, 4
    state = draw_state(rand, shapes(D))
    mha = module(submission, state, H)
    trained = trained_parameters(mha, state)
    for kind in PARITY:
        (query, key, value), mask = parity_case(rand, kind, D, grad=True)
        expected, _ = builtin(trained, H, query, key, value, mask)
        output, _ = mha(query, key, value, mask=mask)
        leaves = {"query": query, "key": key, "value": value, **trained}
        expect_gradients(output, expected, leaves)


@pytest.mark.points(1, stand_in="builtin")
def test_builtin_gpu(submission: Submission, rand: Rand, device: torch.device) -> None:
    """It agrees with nn.MultiheadAttention on a GPU too"""
    gpu = gpu_or_skip(device)
    D, H = 24, 4
    state = {name: tensor.to(gpu) for name, tensor in draw_state(rand, shapes(D)).items()}
    mha = module(submission, state, H)
    trained = trained_parameters(mha, state)
    for kind in PARITY:
        drawn, drawn_mask = parity_case(rand, kind, D)
        query, key, value = (tensor.to(gpu).requires_grad_() for tensor in drawn)
        mask = None if drawn_mask is None else drawn_mask.to(gpu)
        expected = builtin(trained, H, query, key, value, mask)
        results = mha(query, key, value, mask=mask)
        for result in results:
            expect_device(result, gpu)
        expect_both(results, expected, f" on the GPU ({kind})")
        leaves = {"query": query, "key": key, "value": value, **trained}
        axes = {"query": OUTPUT, "key": "B Tk D", "value": "B Tk D"}
        expect_gradients(results[0], expected[0], leaves, axes=axes)


# --- dropout ---------------------------------------------------------------------------------


@pytest.mark.points(1, hint=6)
@pytest.mark.parametrize("p", [0.5, 0.2])
def test_dropout(submission: Submission, rand: Rand, device: torch.device, p: float) -> None:
    """Dropout drops single weights and divides the others by 1 - dropout"""
    state, H, inputs = dropout_case(rand, device)
    evaluated = module(submission, state, H, dropout=p, bias=False)
    output, _ = reference(state, H, *inputs)
    expect_close(evaluated(*inputs)[0], output, axes=OUTPUT, what="the output after eval()")
    mha = module(submission, state, H, dropout=p, bias=False)  # test_modes changes back and forth
    submission.MultiHeadAttention(d_model=len(state["w_q.weight"]), num_heads=H)  # without dropout
    mha.train()
    expect_dropped_weights(mha(*inputs), output, p, H, inputs, returned=True)


@pytest.mark.points(1, hint=6)
@torch.no_grad()
def test_modes(submission: Submission, rand: Rand) -> None:
    """Dropout acts in training mode only, with a new draw in each call"""
    B, Tq, Tk, D, H = 2, 5, 7, 12, 3
    state = draw_state(rand, shapes(D))
    query, key, value = tokens(rand, B, Tq, Tk, D)
    mha = module(submission, state, H, dropout=0.5)
    expected = reference(state, H, query, key, value)
    for _ in range(2):
        expect_both(mha(query, key, value), expected, " after eval()")
        mha.train()
        outputs = [mha(query, key, value)[0] for _ in range(2)]
        for output in outputs:
            expect_shape(output, "the output", B=B, Tq=Tq, D=D)
            assert not torch.allclose(output.cpu().double(), expected[0], rtol=1e-3, atol=1e-4), (
                "After train() dropout=0.5 changes nothing\n"
                "  expected  an output in which about half of the weights are missing\n"
                "  got       the output of evaluation mode"
            )
        expect_new_draws(outputs[0], outputs[1])
        for inputs in ((query, key, key), (key, key, key)):
            outputs = [mha(*inputs)[0] for _ in range(2)]
            expect_new_draws(outputs[0], outputs[1], " with one text as key and value")
        mha.eval()
    expect_both(mha(query, key, value), expected, " after eval()")


@pytest.mark.points(1, hint=6)
@pytest.mark.parametrize("p", [0.5, 0.2])
def test_dropout_with_a_mask(
    submission: Submission, rand: Rand, device: torch.device, p: float
) -> None:
    """A mask changes nothing about dropout: each call drops other weights"""
    state, H, inputs = dropout_case(rand, device)
    mask = padding([5, 3, 4], inputs[1].shape[1], device)
    # A wrong mask costs points in other checks: here the module's own results are the norm.
    evaluated, _ = module(submission, state, H, dropout=p, bias=False)(*inputs, mask)
    mha = module(submission, state, H, dropout=p, bias=False)
    mha.train()
    results = mha(*inputs, mask)
    expect_dropped_weights(results, evaluated, p, H, inputs, returned=False)
    expect_new_draws(results[0], mha(*inputs, mask)[0], " with a mask")


def dropout_case(rand: Rand, device: torch.device) -> tuple[State, int, list[Tensor]]:
    """Layers, heads and inputs with which the weights can be read off the output.

    With w_v and w_o the identity and a value that is 1 in two features of each head, every weight
    is there twice. So a check judges what reached the output, whether or not the returned weights
    have been dropped.
    """
    B, H, Tq, Tk, D = 3, 4, 30, 5, 40
    one = torch.eye(D, device=device)
    state = {
        "w_q.weight": rand(row=D, column=D, scale=0.5 * D**-0.5),
        "w_k.weight": rand(row=D, column=D, scale=D**-0.5),
        "w_v.weight": one,
        "w_o.weight": one,
    }
    value = torch.eye(Tk, device=device).repeat(B, 1, H * 2)  # [B, Tk, H · 2 · Tk]
    return state, H, [rand(B=B, Tq=Tq, D=D, grad=True), rand(B=B, Tk=Tk, D=D, grad=True), value]


def expect_dropped_weights(
    results: tuple[Tensor, Tensor],
    evaluated: Tensor,
    p: float,
    num_heads: int,
    inputs: list[Tensor],
    *,
    returned: bool,
) -> None:
    """Expect dropout on single weights, read off the output [B, Tq, D] of a `dropout_case`.

    `evaluated` is the output without dropout. If weights [B, H, Tq, Tk] are `returned`, they must
    be those before or after dropout.
    """
    query, key, _ = inputs
    (B, Tq, D), Tk = query.shape, key.shape[1]
    seen = []
    for output, what in ((evaluated, "the output after eval()"), (results[0], "the output")):
        expect_shape(output, what, B=B, Tq=Tq, D=D)
        seen.append(output.reshape(B, Tq, num_heads, 2, Tk).movedim(1, 3).unbind(2))
    ((full, _), (once, again)) = seen
    leaves = {"query": query, "key": key}
    weights = results[1] if returned else None
    expect_dropped(once, again, full, p, axes=ALONG, inputs=leaves, returned=weights)


# --- a module that can be used again ---------------------------------------------------------


@pytest.mark.points(1)
@torch.no_grad()
def test_calls_do_not_interact(submission: Submission, rand: Rand, device: torch.device) -> None:
    """Nothing is kept from one call to the next"""
    D, H = 12, 3
    state = draw_state(rand, shapes(D))
    mha = module(submission, state, H)
    x, y = rand(B=2, T=5, D=D), rand(B=2, T=5, D=D)
    longer = tokens(rand, 4, 6, 7, D)
    shorter = tokens(rand, 1, 2, 4, D)
    calls: list[tuple[str, list[Tensor], Tensor | None]] = [
        ("causal mask", [x, x, x], causal(5, device)),
        ("no mask", [x, x, x], None),
        ("longer inputs", longer, None),
        ("padding mask", longer, padding([7, 2, 5, 3], 7, device)),
        ("shorter inputs", shorter, None),
        ("another mask", [x, x, x], causal(5, device).transpose(2, 3)),
        ("other tokens", [x, y, y], None),
        ("another value", [x, y, x], None),
    ]
    for number, (which, inputs, mask) in enumerate(calls, start=1):
        expected = reference(state, H, inputs[0], inputs[1], inputs[2], mask)
        results = mha(*inputs) if mask is None else mha(*inputs, mask=mask)
        expect_both(results, expected, f" of call {number} ({which})")
    submission.MultiHeadAttention(d_model=D, num_heads=2 * H)
    expect_both(mha(x, x, x), reference(state, H, x, x, x), " after another module was made")
    after = mha.state_dict()
    for name, before in state.items():
        axes = "row column" if before.dim() == 2 else "row"
        expect_close(after[name], before, axes=axes, rtol=0, atol=0, what=f"{name} after the calls")

    inputs, others = tokens(rand, 2, 5, 5, D), tokens(rand, 2, 5, 5, D)
    trained = draw_state(rand, shapes(D))
    wanted = {
        "": reference(state, H, *inputs),
        " after the inputs change in place": reference(state, H, *others),
        " after the parameters change in place": reference(trained, H, *others),
    }
    found = submission.given(IN_TURN, "Called", mha)(inputs, others, trained)
    for results, (when, expected) in zip(found, wanted.items(), strict=True):
        expect_both(results, expected, f" with the same tensors{when}")


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32], ids=str)
def test_inputs_unchanged(
    submission: Submission, rand: Rand, seed: int, device: torch.device, dtype: torch.dtype
) -> None:
    """Query, key, value and mask are not changed"""
    B, Tq, Tk, D, H = 2, 5, 7, 12, 3
    mha = module(submission, draw_state(rand, shapes(D)), H)
    query, key, value = tokens(rand, B, Tq, Tk, D)
    x = rand(B=B, T=Tq, D=D)
    mask = draw_truths(rand, seed, B=B, H=H, Tq=Tq, Tk=Tk).to(dtype)
    mask[0, :, 1] = 0
    lower = causal(Tq, device).to(dtype)
    for training in (False, True):
        mha.train(training)
        with expect_unchanged(query=query, key=key, value=value, mask=mask):
            output, _ = mha(query, key, value, mask=mask)
        expect_no_constant(output, query=query)
        with expect_unchanged(query=x, mask=lower):
            mha(x, x, x, mask=lower)
        # In another layout, with a mask of other axes.
        query, key, value = (tokens.mT.contiguous().mT for tokens in (query, key, value))
        mask, lower = mask[:, :1, :1], lower[0, 0]


@pytest.mark.points(1, hint=1)
def test_state_dict(submission: Submission, rand: Rand) -> None:
    """A saved state makes another module compute the same"""
    B, Tq, Tk, D, H = 2, 5, 7, 12, 3
    inputs = tokens(rand, B, Tq, Tk, D)
    one, other = (module(submission, draw_state(rand, shapes(D)), H) for _ in range(2))
    output, weights = one(*inputs)
    expect_shape(output, "the output", B=B, Tq=Tq, D=D)
    expect_shape(weights, "the weights", B=B, H=H, Tq=Tq, Tk=Tk)
    expect_no_constant(output, query=inputs[0])
    expected = [output.detach().clone(), weights.detach().clone()]
    before, _ = other(*inputs)  # anything that it remembers of its old state must go
    states = {"of one state": output, "of another": before}
    expect_all_different(states, "The output is the same whatever the state")
    saved = {name: tensor.clone() for name, tensor in one.state_dict().items()}
    expect_parameters(saved, shapes(D), where="state_dict()")
    other.load_state_dict(saved, strict=True)
    expect_both(other(*inputs), (expected[0], expected[1]), " with the saved state")

    with_state(other, draw_state(rand, shapes(D)))
    expect_both(one(*inputs), (expected[0], expected[1]), " after a load into another one")


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@torch.no_grad()
def test_dtypes(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """After .to(dtype) the module computes and answers in that dtype"""
    skip_unless_supported(dtype, device)
    B, T, D, H = 2, 5, 12, 3
    rounded = {name: tensor.to(dtype) for name, tensor in draw_state(rand, shapes(D)).items()}
    mha = module(submission, {name: tensor.float() for name, tensor in rounded.items()}, H)
    mha.to(dtype)
    x = rand(B=B, T=T, D=D, dtype=dtype)
    # Loose, because only the dtype matters here: bfloat16 rounds at every step, and a softmax that
    # is computed in float32 throughout is not a mistake.
    tolerance = 0.08 if dtype == torch.bfloat16 else 1e-5
    for mask in (None, causal(T, device)):
        expected = reference(rounded, H, x, x, x, mask)
        with expect_unchanged(query=x):
            results = mha(x, x, x, mask=mask)
        for result, what in zip(results, ("the output", "the weights"), strict=True):
            expect_dtype(result, dtype, what)
        expect_both(results, expected, f" in {dtype}", rtol=tolerance, atol=tolerance)
    for result in module(submission, rounded, H, dropout=0.5).to(dtype).train()(x, x, x):
        expect_dtype(result, dtype, "what comes of dropout")
