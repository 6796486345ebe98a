"""Hidden checks of causal_self_attention: the module against a float64 reference without a mask.

`reference` gives each token the slice of tokens that it may see. d_in, d_out, T and context_size
are all different; each check builds its own module and gives it weights and biases that matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from grader.checking import (
    CheckFailed,
    Rand,
    Submission,
    draw_state,
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
    expect_shape,
    expect_unchanged,
    expect_xavier_start,
    gpu_or_skip,
    linear_shapes,
    skip_unless_supported,
    trained_parameters,
    with_state,
)

LAYERS = ("w_q", "w_k", "w_v", "w_o")
OUTPUT = "B T d_out"
ALONG = {"B": "sequences", "H": "heads", "T": "queries", "Tk": "keys"}

State = Mapping[str, Tensor]


# --- the reference ---------------------------------------------------------------------------


def shares(state: State, num_heads: int, x: Tensor, token: int) -> tuple[Tensor, Tensor]:
    """A token's weights [B, H, token + 1] and the values that it sees, in float64 on the CPU."""
    exact = {name: tensor.cpu().double() for name, tensor in state.items()}
    none = torch.zeros((), dtype=torch.float64)

    def heads(layer: str) -> Tensor:
        seen = x[:, : token + 1].cpu().double()
        rows = seen @ exact[f"{layer}.weight"].T + exact.get(f"{layer}.bias", none)
        return rows.reshape(*rows.shape[:2], num_heads, -1).movedim(1, 2)

    q, k, v = heads("w_q")[:, :, -1:], heads("w_k"), heads("w_v")
    scores = (q * k).sum(-1) / k.shape[-1] ** 0.5
    return (scores - torch.logsumexp(scores, -1, keepdim=True)).exp(), v


def reference(state: State, num_heads: int, x: Tensor) -> Tensor:
    """The output, one token after the other, in float64 on the CPU."""
    found = []
    for token in range(x.shape[1]):
        weights, values = shares(state, num_heads, x, token)
        found.append((weights[..., None] * values).sum(2).flatten(1))
    joined = torch.stack(found, dim=1)
    return joined @ state["w_o.weight"].cpu().double().T + state["w_o.bias"].cpu().double()


# --- building modules ------------------------------------------------------------------------


def shapes(d_in: int, d_out: int, qkv_bias: bool = True) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the parameters."""
    first = linear_shapes(dict.fromkeys(LAYERS[:3], (d_out, d_in)), qkv_bias)
    return first | linear_shapes({"w_o": (d_out, d_out)})


def module(
    submission: Submission, state: State, context_size: int, num_heads: int, **options: Any
) -> Any:
    """The learner's module with this state, in evaluation mode and on the state's device.

    The mask may be in the module's state too, and stays as it is.
    """
    d_out, d_in = state["w_q.weight"].shape
    attention = submission.CausalSelfAttention(
        d_in=d_in,
        d_out=d_out,
        context_size=context_size,
        num_heads=num_heads,
        qkv_bias="w_q.bias" in state,
        **options,
    )
    return with_state(attention, state)


# --- judging ---------------------------------------------------------------------------------


def expect_output(actual: Tensor, expected: Tensor, when: str = "", **room: float) -> None:
    """Expect this output."""
    expect_close(actual, expected, axes=OUTPUT, what=f"the output{when}", **room)


def mask_buffer(attention: Any, context_size: int) -> str:
    """The name of the buffer that is large enough for the mask."""
    sizes = {name: buffer.numel() for name, buffer in attention.named_buffers()}
    found = [name for name, size in sizes.items() if size == context_size**2]
    if len(found) != 1:
        got = ", ".join(f"{name:.24} of {size}" for name, size in sizes.items()) or "no buffer"
        raise CheckFailed(
            f"The mask is not among the module's buffers, for context_size={context_size}\n"
            f"  expected  one buffer of {context_size**2} elements, by any name\n"
            f"  got       {got}"
        )
    return found[0]


# --- the output ------------------------------------------------------------------------------


@pytest.mark.points(1, hint=1)
@pytest.mark.pays("zeros", "ones", because="only the shape, dtype and device are checked")
@pytest.mark.parametrize(
    ("B", "T", "d_in", "d_out", "C", "H"), [(2, 5, 7, 12, 9, 3), (3, 6, 10, 8, 7, 4)]
)
@torch.no_grad()
def test_shape(
    submission: Submission,
    rand: Rand,
    device: torch.device,
    B: int,
    T: int,
    d_in: int,
    d_out: int,
    C: int,
    H: int,
) -> None:
    """Tokens [B, T, d_in] become tokens [B, T, d_out]"""
    output = module(submission, draw_state(rand, shapes(d_in, d_out)), C, H)(
        rand(B=B, T=T, d_in=d_in)
    )
    expect_shape(output, B=B, T=T, d_out=d_out)
    expect_dtype(output, torch.float32)
    expect_device(output, device)


@pytest.mark.points(2, hint=5)
@pytest.mark.parametrize(
    ("B", "T", "d_in", "d_out", "C", "H"),
    [
        (2, 2, 3, 4, 2, 2),
        (2, 5, 7, 12, 5, 3),
        (3, 6, 10, 8, 6, 4),
        pytest.param(2, 4, 7, 12, 4, 3, marks=pytest.mark.random),
    ],
)
@pytest.mark.parametrize("spread", [1.0, 30.0, 300.0, 0.0])
@torch.no_grad()
def test_full_length(
    submission: Submission,
    rand: Rand,
    B: int,
    T: int,
    d_in: int,
    d_out: int,
    C: int,
    H: int,
    spread: float,
) -> None:
    """A text of context_size tokens gives the output of the formula"""
    state = draw_state(rand, shapes(d_in, d_out))
    for name in ("w_q.weight", "w_q.bias"):
        state[name] = state[name] * spread
    x = rand(B=B, T=T, d_in=d_in)
    expected = reference(state, H, x)
    # A score of several hundred has an error of about 1e-4 in float32, and so do its weights.
    tolerance = 5e-3 if spread > 1 else None
    when = " for large scores" if spread > 1 else ""
    attention = module(submission, state, C, H)
    attention.train(spread > 1)  # in which nothing is dropped
    expect_output(attention(x), expected, when, rtol=tolerance, atol=tolerance)


@pytest.mark.points(2, hint=3)
@pytest.mark.parametrize(
    ("B", "T", "d_in", "d_out", "C", "H"),
    [(2, 1, 3, 4, 2, 2), (2, 5, 7, 12, 6, 3), (3, 4, 10, 8, 30, 2), (2, 4, 6, 6, 5, 3)],
)
@torch.no_grad()
def test_shorter(
    submission: Submission, rand: Rand, B: int, T: int, d_in: int, d_out: int, C: int, H: int
) -> None:
    """A text with fewer than context_size tokens gives the right output"""
    state = draw_state(rand, shapes(d_in, d_out))
    x = rand(B=B, T=T, d_in=d_in)
    expected = reference(state, H, x)
    when = f" for {T} tokens with context_size={C}"
    expect_output(module(submission, state, C, H)(x), expected, when)


@pytest.mark.points(1, hint=3)
@torch.no_grad()
def test_many_lengths(submission: Submission, rand: Rand) -> None:
    """One module takes texts of many lengths, in any order"""
    d_in, d_out, C, H = 7, 12, 8, 3
    state = draw_state(rand, shapes(d_in, d_out))
    attention = module(submission, state, C, H)
    mask_buffer(attention, C)  # now, so that the report shows the constructor
    for number, (B, T) in enumerate(((2, 5), (2, 8), (3, 1), (1, 7), (2, 5)), start=1):
        x = rand(B=B, T=T, d_in=d_in)
        expected = reference(state, H, x)
        expect_output(attention(x), expected, f" of call {number}, with {T} tokens,")
    mask_buffer(attention, C)  # no call replaces it
    submission.CausalSelfAttention(d_in, d_out, C // 2, 2 * H)
    expect_output(attention(x), expected, " after another module was made")


@pytest.mark.points(1, hint=4)
@pytest.mark.parametrize(("T", "C"), [(4, 3), (9, 4)])
@torch.no_grad()
def test_too_long(submission: Submission, rand: Rand, T: int, C: int) -> None:
    """A text with more than context_size tokens raises ValueError"""
    B, d_in, d_out, H = 2, 7, 12, 3
    state = draw_state(rand, shapes(d_in, d_out))
    attention = module(submission, state, C, H)
    x = rand(B=B, T=T, d_in=d_in)
    with expect_raises(ValueError, f"{T} tokens are too many for context_size={C}"):
        attention(x)
    fits = x[:, :C]
    expect_output(attention(fits), reference(state, H, fits), " after a text that was refused")


@pytest.mark.points(1, hint=2)
@torch.no_grad()
def test_no_future(submission: Submission, rand: Rand) -> None:
    """No token sees a later one, not even in training mode"""
    B, T, d_in, d_out, C, H = 2, 6, 7, 12, 9, 3
    attention = module(submission, draw_state(rand, shapes(d_in, d_out)), C, H)
    x = rand(B=B, T=T, d_in=d_in)
    changed = x.clone()
    changed[:, T // 2 :] = rand(B=B, T=T - T // 2, d_in=d_in, scale=3.0)
    for mode in ("eval()", "train()"):
        if mode == "train()":
            attention.train()
        output, again = attention(x), attention(changed)
        for result in (output, again):
            expect_shape(result, B=B, T=T, d_out=d_out)
        expect_no_constant(output)
        expect_close(
            again[:, : T // 2],
            output[:, : T // 2],
            axes=OUTPUT,
            what=f"the output after {mode}, when later tokens change,",
        )


@pytest.mark.points(1, hint=3)
@pytest.mark.parametrize(
    ("B", "T", "d_in", "d_out", "C", "H"),
    [
        pytest.param(1, 5, 7, 12, 8, 3, id="one sequence"),
        pytest.param(2, 1, 7, 12, 8, 3, id="one token"),
        pytest.param(2, 5, 7, 12, 8, 1, id="one head"),
        pytest.param(2, 5, 7, 6, 8, 6, id="a head per feature"),
        pytest.param(2, 1, 7, 12, 1, 3, id="a context of one"),
        pytest.param(2, 5, 1, 4, 8, 2, id="one feature in"),
    ],
)
@torch.no_grad()
def test_edges(
    submission: Submission, rand: Rand, B: int, T: int, d_in: int, d_out: int, C: int, H: int
) -> None:
    """It works for a single sequence, token, head or feature"""
    state = draw_state(rand, shapes(d_in, d_out))
    x = rand(B=B, T=T, d_in=d_in)
    expected = reference(state, H, x)
    expect_output(module(submission, state, C, H)(x), expected)


@pytest.mark.points(1)
@torch.no_grad()
def test_arguments(submission: Submission, rand: Rand) -> None:
    """Arguments work by name and by position, and dropout is 0 by default"""
    B, T, d_in, d_out, C, H = 2, 5, 7, 12, 9, 3
    for qkv_bias, given in ((False, ()), (True, (0.0, True))):
        state = draw_state(rand, shapes(d_in, d_out, qkv_bias))
        x = rand(B=B, T=T, d_in=d_in)
        attention = submission.CausalSelfAttention(d_in, d_out, C, H, *given)
        with_state(attention, state, evaluate=False)  # a module starts in training mode
        expect_output(attention(x=x), reference(state, H, x), " with the default dropout")


@pytest.mark.points(1)
@torch.no_grad()
def test_inputs_unchanged(submission: Submission, rand: Rand) -> None:
    """The input may be a strided view and is not changed"""
    B, T, d_in, d_out, C, H = 2, 5, 7, 12, 9, 3
    state = draw_state(rand, shapes(d_in, d_out))
    attention = module(submission, state, C, H)
    for x in (rand(T=T, B=B, d_in=d_in).transpose(0, 1), rand(B=B, T=2 * T, d_in=d_in)[:, ::2]):
        expected = reference(state, H, x)
        with expect_unchanged(x=x):
            output = attention(x)
        expect_output(output, expected)


# --- gradients, dtypes, devices --------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.parametrize(("T", "C"), [(5, 5), (4, 9)])
def test_gradients(submission: Submission, rand: Rand, T: int, C: int) -> None:
    """Gradients reach the input and all four layers"""
    B, d_in, d_out, H = 2, 7, 12, 3
    state = draw_state(rand, shapes(d_in, d_out))
    attention = module(submission, state, C, H)
    trained = trained_parameters(attention, state)
    x = rand(B=B, T=T, d_in=d_in, grad=True)
    expect_gradients_close(attention(x), reference(trained, H, x), {"x": x, **trained})


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@torch.no_grad()
def test_dtypes(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """After .to(dtype) the module computes and answers in that dtype"""
    skip_unless_supported(dtype, device)
    B, T, d_in, d_out, C, H = 2, 5, 7, 12, 9, 3
    rounded = draw_state(rand, shapes(d_in, d_out), dtype=dtype)
    attention = module(submission, {name: t.float() for name, t in rounded.items()}, C, H)
    x = rand(B=B, T=T, d_in=d_in, dtype=dtype)
    attention(x.float())  # of which nothing in float32 may stay
    attention.to(dtype)
    with expect_unchanged(x=x):
        output = attention(x)
    expect_dtype(output, dtype)
    # Loose, because only the dtype matters here: bfloat16 rounds at every step (right answers are
    # off by up to 0.014), and a softmax in float32 is not a mistake, not even in float64 (2.9e-7).
    tolerance = 0.08 if dtype == torch.bfloat16 else 1e-5
    expect_output(output, reference(rounded, H, x), f" in {dtype}", rtol=tolerance, atol=tolerance)
    dropping = module(submission, rounded, C, H, dropout=0.5).to(dtype).train()
    expect_dtype(dropping(x), dtype, "the output with dropout")


@pytest.mark.points(1, stand_in="buffer", hint=2)
@torch.no_grad()
def test_gpu(submission: Submission, rand: Rand, device: torch.device) -> None:
    """The mask moves to the GPU with the module"""
    gpu = gpu_or_skip(device)
    B, T, d_in, d_out, C, H = 2, 5, 7, 12, 9, 3
    state = draw_state(rand, shapes(d_in, d_out))
    attention = module(submission, {name: tensor.cpu() for name, tensor in state.items()}, C, H)
    attention.to(gpu)
    name = mask_buffer(attention, C)
    expect_device(dict(attention.named_buffers())[name], gpu)
    x = rand(B=B, T=T, d_in=d_in).to(gpu)
    output = attention(x)
    expect_device(output, gpu)
    expect_output(output, reference(state, H, x), " on the GPU")


# --- the layers and the mask -----------------------------------------------------------------


@pytest.mark.points(1, hint=1)
@pytest.mark.parametrize("qkv_bias", [False, True])
@pytest.mark.parametrize(("d_in", "d_out", "H"), [(7, 12, 3), (10, 8, 4)])
def test_layers(submission: Submission, d_in: int, d_out: int, H: int, qkv_bias: bool) -> None:
    """The four layers have the right sizes, and biases where they should"""
    options = {"qkv_bias": True} if qkv_bias else {}
    attention = submission.CausalSelfAttention(
        d_in=d_in, d_out=d_out, context_size=5, num_heads=H, **options
    )
    found = dict(attention.named_parameters())
    expect_parameters(found, shapes(d_in, d_out, qkv_bias))
    count = 3 * d_in * d_out + d_out**2 + d_out + (3 * d_out if qkv_bias else 0)
    what = f"the number of parameters for qkv_bias={qkv_bias}"
    expect_equal(sum(parameter.numel() for parameter in found.values()), count, what)
    frozen = [name for name, parameter in found.items() if not parameter.requires_grad]
    expect_equal(frozen, [], "the list of parameters that cannot learn")


@pytest.mark.points(1, hint=2)
@pytest.mark.parametrize(("C", "H"), [(6, 2), (11, 3)])
def test_buffer(submission: Submission, C: int, H: int) -> None:
    """The mask is one registered buffer of context_size² elements"""
    d_in, d_out = 7, 12
    attention = submission.CausalSelfAttention(d_in=d_in, d_out=d_out, context_size=C, num_heads=H)
    name = mask_buffer(attention, C)
    layers = shapes(d_in, d_out, qkv_bias=False)
    saved = list(attention.state_dict())
    unexpected = [other for other in saved if other not in layers and other != name]
    if unexpected:
        raise CheckFailed(
            f"More is saved than the four layers and the mask\n  unexpected  {unexpected[0]:.60}"
        )


@pytest.mark.points(1, hint=2)
@torch.no_grad()
def test_state_dict(submission: Submission, rand: Rand) -> None:
    """A saved state makes another module compute the same"""
    B, T, d_in, d_out, C, H = 2, 5, 7, 12, 9, 3
    x = rand(B=B, T=T, d_in=d_in)
    states = [draw_state(rand, shapes(d_in, d_out)) for _ in range(2)]
    one, other = (module(submission, state, C, H) for state in states)
    expected = reference(states[0], H, x)
    other(x)  # anything that it remembers of its old state must go
    # Not strict: replayed on a module whose mask is not saved, the load must not fail.
    other.load_state_dict({name: t.clone() for name, t in one.state_dict().items()}, strict=False)
    expect_output(other(x), expected, " with the saved state")


@pytest.mark.points(1)
@pytest.mark.parametrize(("d_in", "d_out"), [(64, 192), (320, 128)])
def test_start(submission: Submission, d_in: int, d_out: int) -> None:
    """Weights start with Xavier values for each layer's sizes, biases at 0"""
    start, other = (
        dict(
            submission.CausalSelfAttention(
                d_in=d_in, d_out=d_out, context_size=4, num_heads=4, qkv_bias=True
            ).named_parameters()
        )
        for _ in range(2)
    )
    expect_xavier_start(start, other, shapes(d_in, d_out), where="named_parameters()")


@pytest.mark.points(1, hint=1)
@pytest.mark.parametrize(("d_in", "d_out", "H"), [(6, 10, 3), (8, 4, 8)])
def test_heads_must_divide(submission: Submission, d_in: int, d_out: int, H: int) -> None:
    """The constructor raises ValueError if num_heads does not divide d_out"""
    submission.CausalSelfAttention(d_in=d_in, d_out=d_out * H, context_size=5, num_heads=H)
    with expect_raises(ValueError, f"{d_out} features cannot be split into {H} heads"):
        submission.CausalSelfAttention(d_in=d_in, d_out=d_out, context_size=5, num_heads=H)


# --- dropout ---------------------------------------------------------------------------------


@pytest.mark.points(1, hint=5)
@pytest.mark.parametrize("p", [0.5, 0.2])
def test_dropout(submission: Submission, rand: Rand, device: torch.device, p: float) -> None:
    """Dropout drops single weights in training and scales the others up"""
    # A token's features say which token it is, w_v writes that twice into each head and w_o is the
    # identity: so every weight can be read off the output twice.
    B, T, H, others = 14, 7, 3, 6
    d_in, d_out = T + others, H * 2 * T
    state = {
        "w_q.weight": rand(row=d_out, column=d_in, scale=0.5 * d_in**-0.5),
        "w_k.weight": rand(row=d_out, column=d_in, scale=d_in**-0.5),
        "w_v.weight": torch.eye(T, d_in, device=device).repeat(2 * H, 1),
        "w_o.weight": torch.eye(d_out, device=device),
        "w_o.bias": torch.zeros(d_out, device=device),
    }
    which = torch.eye(T, device=device).expand(B, T, T)
    rest = rand(B=B, T=T, others=others, grad=True)
    x = torch.cat([which, rest], dim=2)
    weights = torch.zeros(B, H, T, T, dtype=torch.float64)
    for token in range(T):
        weights[:, :, token, : token + 1], _ = shares(state, H, x, token)

    attention = module(submission, state, T + 2, H, dropout=p)
    submission.CausalSelfAttention(d_in, d_out, T + 2, H)  # without dropout
    for _ in range(2):
        attention.train()
        output = attention(x)
        expect_shape(output, B=B, T=T, d_out=d_out)
        once, again = output.reshape(B, T, H, 2, T).movedim(1, 3).unbind(2)
        expect_dropped(once, again, weights, p, axes=ALONG, inputs={"x": rest})
        with torch.no_grad():
            expect_new_draws(attention(x), attention(x))
        attention.eval()
        expect_output(attention(x), reference(state, H, x), " after eval()")
