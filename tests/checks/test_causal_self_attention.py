"""Hidden checks of causal_self_attention: the module against a float64 reference without a mask.

`reference` gives each token the slice of tokens that it may see. d_in, d_out, T and context_size
are all different; each check builds its own module and gives it weights and biases that matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from grader.checking import (
    CheckFailed,
    are_close,
    expect_all_different,
    expect_close,
    expect_device,
    expect_dtype,
    expect_equal,
    expect_gradients_close,
    expect_raises,
    expect_shape,
    expect_unchanged,
    is_between,
    skip_unless_supported,
)

LAYERS = ("w_q", "w_k", "w_v", "w_o")
OUTPUT = "B T d_out"

State = Mapping[str, Tensor]
Rand = Callable[..., Tensor]


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


def shapes(d_in: int, d_out: int, qkv_bias: bool) -> dict[str, tuple[int, ...]]:
    """The shapes of the parameters by their names."""
    wanted: dict[str, tuple[int, ...]] = {}
    for layer in LAYERS:
        wanted[f"{layer}.weight"] = (d_out, d_out if layer == "w_o" else d_in)
        if qkv_bias or layer == "w_o":
            wanted[f"{layer}.bias"] = (d_out,)
    return wanted


def random_state(
    rand: Rand, d_in: int, d_out: int, qkv_bias: bool = True, dtype: torch.dtype = torch.float32
) -> dict[str, Tensor]:
    """Weights that keep the size of their input, and biases that matter."""
    state = {}
    for name, shape in shapes(d_in, d_out, qkv_bias).items():
        if len(shape) == 2:
            row, column = shape
            state[name] = rand(row=row, column=column, scale=column**-0.5, dtype=dtype)
        else:
            state[name] = rand(row=shape[0], scale=0.5, dtype=dtype)
    return state


def module(submission: Any, state: State, context_size: int, num_heads: int, **options: Any) -> Any:
    """The learner's module with this state, in evaluation mode and on the state's device."""
    weight = state["w_q.weight"]
    d_out, d_in = weight.shape
    attention = submission.CausalSelfAttention(
        d_in=d_in,
        d_out=d_out,
        context_size=context_size,
        num_heads=num_heads,
        qkv_bias="w_q.bias" in state,
        **options,
    )
    load(attention, state)
    if weight.device.type != "cpu":
        attention.to(weight.device)
    attention.eval()
    return attention


def load(attention: Any, state: State) -> None:
    """Load the state of the layers; their names and shapes say better than torch what is wrong.

    The mask may be in the module's state too, and stays as it is.
    """
    expect_parameters(dict(attention.named_parameters()), state, others=True)
    attention.load_state_dict(dict(state), strict=False)


# --- judging ---------------------------------------------------------------------------------


def expect_parameters(found: State, wanted: Mapping[str, Any], others: bool = False) -> None:
    """Expect parameters of these names and shapes, and no others unless admitted."""
    missing = [name for name in wanted if name not in found]
    unexpected = [name for name in found if name not in wanted]
    if missing or (unexpected and not others):
        raise CheckFailed(
            "The names in named_parameters() are wrong"
            + (f"\n  missing     {listed(missing)}" if missing else "")
            + (f"\n  unexpected  {listed(unexpected)}" if unexpected else "")
        )
    for name, shape in wanted.items():
        sizes = list(getattr(shape, "shape", shape))
        if list(found[name].shape) != sizes:
            raise CheckFailed(
                f"The shape of {name} is wrong\n"
                f"  expected  {sizes}\n"
                f"  got       {list(found[name].shape)}"
            )


def listed(names: list[str]) -> str:
    """The first names of a list that may be long."""
    shown = ", ".join(f"{name:.24}" for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def expect_output(
    actual: Tensor,
    expected: Tensor,
    when: str = "",
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Expect this output."""
    sizes = dict(zip(OUTPUT.split(), expected.shape, strict=True))
    try:
        expect_shape(actual, **sizes)
    except CheckFailed as failure:
        message = str(failure).replace("The shape", f"The shape of the output{when}", 1)
        raise CheckFailed(message) from None
    expect_close(actual, expected, axes=OUTPUT, what=f"the output{when}", rtol=rtol, atol=atol)


def expect_gradients(actual: Tensor, expected: Tensor, inputs: Mapping[str, Tensor]) -> None:
    """Expect these gradients."""
    axes = {
        name: "row column" if tensor.dim() == 2 else "row"
        for name, tensor in inputs.items()
        if name != "x"
    }
    expect_gradients_close(actual, expected, inputs, axes=axes)


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


@pytest.mark.points(1)
@pytest.mark.parametrize(
    ("B", "T", "d_in", "d_out", "C", "H"), [(2, 5, 7, 12, 9, 3), (3, 6, 10, 8, 7, 4)]
)
@torch.no_grad()
def test_shape(
    submission: Any,
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
    output = module(submission, random_state(rand, d_in, d_out), C, H)(rand(B=B, T=T, d_in=d_in))
    expect_shape(output, B=B, T=T, d_out=d_out)
    expect_dtype(output, torch.float32)
    expect_device(output, device)


@pytest.mark.points(2)
@pytest.mark.parametrize(
    ("B", "T", "d_in", "d_out", "C", "H"),
    [(2, 2, 3, 4, 2, 2), (2, 5, 7, 12, 5, 3), (3, 6, 10, 8, 6, 4)],
)
@pytest.mark.parametrize("spread", [1.0, 30.0])
@torch.no_grad()
def test_full_length(
    submission: Any,
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
    state = random_state(rand, d_in, d_out)
    for name in ("w_q.weight", "w_q.bias"):
        state[name] = state[name] * spread
    x = rand(B=B, T=T, d_in=d_in)
    expected = reference(state, H, x)
    # A score of some hundred has an error of some 1e-4 in float32, and so have its weights.
    tolerance = 5e-3 if spread > 1 else None
    when = " for large scores" if spread > 1 else ""
    expect_output(
        module(submission, state, C, H)(x), expected, when, rtol=tolerance, atol=tolerance
    )


@pytest.mark.points(2)
@pytest.mark.parametrize(
    ("B", "T", "d_in", "d_out", "C", "H"),
    [(2, 1, 3, 4, 2, 2), (2, 5, 7, 12, 6, 3), (3, 4, 10, 8, 30, 2)],
)
@torch.no_grad()
def test_shorter(
    submission: Any, rand: Rand, B: int, T: int, d_in: int, d_out: int, C: int, H: int
) -> None:
    """So does a text with fewer than context_size tokens"""
    state = random_state(rand, d_in, d_out)
    x = rand(B=B, T=T, d_in=d_in)
    expected = reference(state, H, x)
    when = f" for {T} tokens with context_size={C}"
    expect_output(module(submission, state, C, H)(x), expected, when)


@pytest.mark.points(1)
@torch.no_grad()
def test_many_lengths(submission: Any, rand: Rand) -> None:
    """One module takes texts of many lengths, in any order"""
    d_in, d_out, C, H = 7, 12, 8, 3
    state = random_state(rand, d_in, d_out)
    attention = module(submission, state, C, H)
    for number, (B, T) in enumerate(((2, 5), (2, 8), (3, 1), (1, 7), (2, 5)), start=1):
        x = rand(B=B, T=T, d_in=d_in)
        expected = reference(state, H, x)
        expect_output(attention(x), expected, f" of call {number}, with {T} tokens,")
    mask_buffer(attention, C)


@pytest.mark.points(1)
@pytest.mark.parametrize(("T", "C"), [(4, 3), (9, 4)])
@torch.no_grad()
def test_too_long(submission: Any, rand: Rand, T: int, C: int) -> None:
    """A text with more than context_size tokens is refused"""
    B, d_in, d_out, H = 2, 7, 12, 3
    state = random_state(rand, d_in, d_out)
    attention = module(submission, state, C, H)
    x = rand(B=B, T=T, d_in=d_in)
    with expect_raises(ValueError, f"{T} tokens are too many for context_size={C}"):
        attention(x)
    fits = x[:, :C]
    expect_output(attention(fits), reference(state, H, fits), " after a text that was refused")


@pytest.mark.points(1)
@torch.no_grad()
def test_no_future(submission: Any, rand: Rand) -> None:
    """No token sees a later one, in training mode neither"""
    B, T, d_in, d_out, C, H = 2, 6, 7, 12, 9, 3
    attention = module(submission, random_state(rand, d_in, d_out), C, H)
    x = rand(B=B, T=T, d_in=d_in)
    changed = x.clone()
    changed[:, T // 2 :] = rand(B=B, T=T - T // 2, d_in=d_in, scale=3.0)
    for mode in ("eval()", "train()"):
        if mode == "train()":
            attention.train()
        output, again = attention(x), attention(changed)
        for result in (output, again):
            expect_shape(result, B=B, T=T, d_out=d_out)
        expect_close(
            again[:, : T // 2],
            output[:, : T // 2],
            axes=OUTPUT,
            what=f"the output after {mode}, when later tokens change,",
        )


@pytest.mark.points(1)
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
    submission: Any, rand: Rand, B: int, T: int, d_in: int, d_out: int, C: int, H: int
) -> None:
    """One sequence, token, head or feature is no exception"""
    state = random_state(rand, d_in, d_out)
    x = rand(B=B, T=T, d_in=d_in)
    expected = reference(state, H, x)
    expect_output(module(submission, state, C, H)(x), expected)


@pytest.mark.points(1)
@torch.no_grad()
def test_arguments(submission: Any, rand: Rand) -> None:
    """All arguments work by position and by name; dropout is 0 by default"""
    B, T, d_in, d_out, C, H = 2, 5, 7, 12, 9, 3
    for qkv_bias, given in ((False, ()), (True, (0.0, True))):
        state = random_state(rand, d_in, d_out, qkv_bias)
        x = rand(B=B, T=T, d_in=d_in)
        attention = submission.CausalSelfAttention(d_in, d_out, C, H, *given)
        load(attention, state)
        attention.to(x.device)  # and not evaluation mode: a module starts in training mode
        expect_output(attention(x=x), reference(state, H, x), " with the default dropout")


@pytest.mark.points(1)
@torch.no_grad()
def test_inputs_unchanged(submission: Any, rand: Rand) -> None:
    """The input may lie in memory in any way and stays as it was"""
    B, T, d_in, d_out, C, H = 2, 5, 7, 12, 9, 3
    state = random_state(rand, d_in, d_out)
    attention = module(submission, state, C, H)
    for x in (rand(T=T, B=B, d_in=d_in).transpose(0, 1), rand(B=B, T=2 * T, d_in=d_in)[:, ::2]):
        expected = reference(state, H, x)
        with expect_unchanged(x=x):
            output = attention(x)
        expect_output(output, expected)


# --- gradients, dtypes, devices --------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.parametrize(("T", "C"), [(5, 5), (4, 9)])
def test_gradients(submission: Any, rand: Rand, T: int, C: int) -> None:
    """Gradients reach the input and all four layers"""
    B, d_in, d_out, H = 2, 7, 12, 3
    state = random_state(rand, d_in, d_out)
    attention = module(submission, state, C, H)
    trained = {name: p for name, p in attention.named_parameters() if name in state}
    x = rand(B=B, T=T, d_in=d_in, grad=True)
    expect_gradients(attention(x), reference(trained, H, x), {"x": x, **trained})


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@torch.no_grad()
def test_dtypes(submission: Any, rand: Rand, device: torch.device, dtype: torch.dtype) -> None:
    """Moved to another dtype, it computes and answers in that dtype"""
    skip_unless_supported(dtype, device)
    B, T, d_in, d_out, C, H = 2, 5, 7, 12, 9, 3
    rounded = random_state(rand, d_in, d_out, dtype=dtype)
    attention = module(submission, {name: t.float() for name, t in rounded.items()}, C, H)
    attention.to(dtype)
    x = rand(B=B, T=T, d_in=d_in, dtype=dtype)
    with expect_unchanged(x=x):
        output = attention(x)
    expect_dtype(output, dtype)
    # Loose, for what is asked is the dtype: bfloat16 rounds at every step (right answers are off by
    # up to 0.014), and a softmax in float32 is no mistake, not even in float64 (2.9e-7).
    tolerance = 0.08 if dtype == torch.bfloat16 else 1e-5
    expect_output(output, reference(rounded, H, x), f" in {dtype}", tolerance, tolerance)


@pytest.mark.points(1, stand_in="buffer")
@torch.no_grad()
def test_gpu(submission: Any, rand: Rand) -> None:
    """The mask goes along when the module moves to a GPU"""
    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
    B, T, d_in, d_out, C, H = 2, 5, 7, 12, 9, 3
    gpu = torch.device("cuda")
    state = random_state(rand, d_in, d_out)
    attention = module(submission, {name: tensor.cpu() for name, tensor in state.items()}, C, H)
    attention.to(gpu)
    name = mask_buffer(attention, C)
    expect_device(dict(attention.named_buffers())[name], gpu)
    x = rand(B=B, T=T, d_in=d_in).to(gpu)
    output = attention(x)
    expect_device(output, gpu)
    expect_output(output, reference(state, H, x), " on the GPU")


# --- the layers and the mask -----------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.parametrize("qkv_bias", [False, True])
@pytest.mark.parametrize(("d_in", "d_out", "H"), [(7, 12, 3), (10, 8, 4)])
def test_layers(submission: Any, d_in: int, d_out: int, H: int, qkv_bias: bool) -> None:
    """w_q, w_k, w_v: d_in to d_out, qkv_bias; w_o: d_out to d_out, a bias"""
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


@pytest.mark.points(1)
@pytest.mark.parametrize(("C", "H"), [(6, 2), (11, 3)])
def test_buffer(submission: Any, C: int, H: int) -> None:
    """The mask is one registered buffer of context_size² elements"""
    d_in, d_out = 7, 12
    attention = submission.CausalSelfAttention(d_in=d_in, d_out=d_out, context_size=C, num_heads=H)
    name = mask_buffer(attention, C)
    layers = shapes(d_in, d_out, qkv_bias=False)
    saved = list(attention.state_dict())
    unexpected = [other for other in saved if other not in layers and other != name]
    if unexpected:
        raise CheckFailed(
            f"More is saved than the four layers and the mask\n  unexpected  {listed(unexpected)}"
        )


@pytest.mark.points(1)
@torch.no_grad()
def test_state_dict(submission: Any, rand: Rand) -> None:
    """A state saved from one module makes another one its equal"""
    B, T, d_in, d_out, C, H = 2, 5, 7, 12, 9, 3
    x = rand(B=B, T=T, d_in=d_in)
    states = [random_state(rand, d_in, d_out) for _ in range(2)]
    one, other = (module(submission, state, C, H) for state in states)
    expected = reference(states[0], H, x)
    other(x)  # whatever it may remember of its old state must go
    # Not strict: replayed on a module whose mask is not saved, the load must not fail.
    other.load_state_dict({name: t.clone() for name, t in one.state_dict().items()}, strict=False)
    expect_output(other(x), expected, " with the saved state")


@pytest.mark.points(1)
@pytest.mark.parametrize(("d_in", "d_out"), [(64, 192), (320, 128)])
def test_start(submission: Any, d_in: int, d_out: int) -> None:
    """Weights start as Xavier says for each layer's sizes, biases at zero"""
    start, other = (
        dict(
            submission.CausalSelfAttention(
                d_in=d_in, d_out=d_out, context_size=4, num_heads=4, qkv_bias=True
            ).named_parameters()
        )
        for _ in range(2)
    )
    expect_parameters(start, shapes(d_in, d_out, qkv_bias=True), others=True)
    for layer in LAYERS:
        bias = f"{layer}.bias"
        expect_close(start[bias], torch.zeros(d_out), axes="row", rtol=0, atol=0, what=bias)
        weight = start[f"{layer}.weight"].detach().double()
        # Of n entries a right spread has a standard error of 0.45 to 0.71 / sqrt(n), 0.64 % for
        # the 12,288 of the smallest layer; the mean one of 0.9 %. Admitted are six of them.
        spread = (2 / sum(weight.shape)) ** 0.5
        assert is_between(weight.std().item() / spread, 0.96, 1.04), (
            f"The weights of {layer} start with the wrong spread, d_in={d_in}, d_out={d_out}\n"
            f"  expected  a standard deviation of {spread:.4f}, give or take 4 %\n"
            f"  got       {weight.std().item():.4f}"
        )
        assert is_between(weight.mean().item(), -0.055 * spread, 0.055 * spread), (
            f"The weights of {layer} are not centred at zero\n"
            f"  expected  a mean of 0, give or take {0.055 * spread:.4f}\n"
            f"  got       {weight.mean().item():.4f}"
        )
    drawn = {
        f"{layer}{of}": each[f"{layer}.weight"]
        for of, each in (("", start), (" of another module", other))
        for layer in LAYERS
    }
    expect_all_different(drawn, "Two layers start with the same weights")


@pytest.mark.points(1)
@pytest.mark.parametrize(("d_in", "d_out", "H"), [(6, 10, 3), (8, 4, 8)])
def test_heads_must_divide(submission: Any, d_in: int, d_out: int, H: int) -> None:
    """The constructor refuses a d_out that the heads do not divide"""
    with expect_raises(ValueError, f"{d_out} features cannot be split into {H} heads"):
        submission.CausalSelfAttention(d_in=d_in, d_out=d_out, context_size=5, num_heads=H)


# --- dropout ---------------------------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.parametrize("p", [0.5, 0.2])
@torch.no_grad()
def test_dropout(submission: Any, rand: Rand, device: torch.device, p: float) -> None:
    """Dropout falls on single weights in training; those kept grow"""
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
    x = torch.cat([which, rand(B=B, T=T, others=others)], dim=2)
    weights = torch.zeros(B, H, T, T, dtype=torch.float64)
    for token in range(T):
        weights[:, :, token, : token + 1], _ = shares(state, H, x, token)

    attention = module(submission, state, T + 2, H, dropout=p)
    for _ in range(2):
        expect_output(attention(x), reference(state, H, x), " after eval()")
        attention.train()
        outputs = [attention(x) for _ in range(2)]
        for output in outputs:
            expect_shape(output, B=B, T=T, d_out=d_out)
        assert not torch.equal(*outputs), (
            f"In training mode with dropout={p} two calls give the same output\n"
            "  expected  a new draw in each call\n"
            "  got       the same output twice"
        )
        twice = outputs[0].cpu().double().reshape(B, T, H, 2, T).movedim(1, 3)
        judge_dropout(twice[:, :, 0], twice[:, :, 1], weights, p)
        attention.eval()


def judge_dropout(seen: Tensor, again: Tensor, weights: Tensor, p: float) -> None:
    """Expect each weight, read off twice, to be dropped or divided by 1 - p."""
    off = seen.abs() < 1e-6
    wrong = ~are_close(seen, weights / (1 - p), rtol=1e-3, atol=1e-6, where=~off)
    if wrong.any():
        where = tuple(int(index) for index in wrong.nonzero()[0])
        place = ", ".join(f"{axis}={at}" for axis, at in zip("BHTT", where, strict=True))
        weight = weights[where].item()
        raise CheckFailed(
            f"dropout={p} leaves a wrong weight at {place}\n"
            f"  expected  0 if dropped or {weight / (1 - p):.6g} if kept, for {weight:.6g}\n"
            f"  got       {seen[where].item():.6g}\n"
            f"  where     in the output, which was made to show the weights"
        )
    assert are_close(seen, again, rtol=1e-3, atol=1e-6).all(), (
        "Dropout falls on something else than the attention weights\n"
        "  expected  a weight that is dropped for all features of its value\n"
        "  got       a weight that is dropped for some features and kept for others"
    )
    drawn = weights > 0
    share = off[drawn].double().mean().item()
    leeway = 8 * (p * (1 - p) / int(drawn.sum())) ** 0.5  # eight standard deviations
    assert is_between(share, p - leeway, p + leeway), (
        f"dropout={p} drops the wrong share of the weights\n"
        f"  expected  {p:.0%}, give or take {leeway:.0%}\n"
        f"  got       {share:.0%}"
    )
    for axis, name in enumerate(("sequences", "heads", "queries", "keys")):
        count = off.shape[axis] - 1
        both = drawn.narrow(axis, 0, count) & drawn.narrow(axis, 1, count)
        differ = off.narrow(axis, 0, count) != off.narrow(axis, 1, count)
        # Two independent weights differ with probability 2 p (1-p), 0.32 at least.
        assert differ[both].double().mean().item() > 0.5 * p * (1 - p), (
            f"Dropout treats all {name} alike\n"
            f"  expected  a draw for each weight\n"
            f"  got       the same draw for all {name}"
        )
