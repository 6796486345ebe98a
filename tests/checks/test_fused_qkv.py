"""Hidden checks of fused_qkv: the fused module against a float64 reference, and what fuse makes.

`reference` computes the attention of one head at a time on the CPU. `CORE` is a module with the
four layers of the core's; its forward lets every layer, and the mode, be seen in the output.
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
    expect_close,
    expect_device,
    expect_dtype,
    expect_equal,
    expect_gradients_close,
    expect_raises,
    expect_shape,
    expect_unchanged,
    is_between,
)

OUTPUT = "B T D"
WEIGHTS = "B H T Tk"
LAYERS = {"w_qkv": 3, "w_o": 1}  # and how many times D outputs each has
CORE_LAYERS = ("w_q", "w_k", "w_v", "w_o")
CORE = """
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, bias=True):
        super().__init__()
        for name in ("w_q", "w_k", "w_v", "w_o"):
            self.add_module(name, nn.Linear(d_model, d_model, bias=bias))

    def forward(self, x):
        mixed = self.w_q(x) - 2 * self.w_k(x) + 3 * self.w_v(x)
        return self.w_o(mixed) * (2 if self.training else 1)
"""

State = Mapping[str, Tensor]
Rand = Callable[..., Tensor]


# --- the reference ---------------------------------------------------------------------------


def reference(
    state: State, num_heads: int, x: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Output and weights, one head at a time, in float64 on the CPU."""
    exact = {name: tensor.cpu().double() for name, tensor in state.items()}
    D = x.shape[-1]
    d_k = D // num_heads
    none = torch.zeros((), dtype=torch.float64)
    packed = x.cpu().double() @ exact["w_qkv.weight"].T + exact.get("w_qkv.bias", none)
    allowed = torch.ones((), dtype=torch.bool) if mask is None else (mask != 0).cpu()
    allowed = allowed.expand(len(x), num_heads, x.shape[1], x.shape[1])
    output = exact.get("w_o.bias", none)
    maps = []
    for head in range(num_heads):
        q, k, v = (packed[..., at : at + d_k] for at in range(head * d_k, 3 * D, D))
        scores = q @ k.transpose(1, 2) / d_k**0.5
        powers = (scores - scores.detach().amax(-1, keepdim=True)).exp() * allowed[:, head]
        total = powers.sum(-1, keepdim=True)
        weights = powers / (total + (total == 0))  # a row of zeros stays one
        own = slice(head * d_k, (head + 1) * d_k)
        output = output + weights @ v @ exact["w_o.weight"][:, own].T
        maps.append(weights)
    return output, torch.stack(maps, dim=1)


# --- building modules and masks --------------------------------------------------------------


def random_state(
    rand: Rand, d_model: int, bias: bool = True, dtype: torch.dtype = torch.float32
) -> dict[str, Tensor]:
    """Weights that keep the size of their input, and biases that matter, by the fused names."""
    state = {}
    for layer, times in LAYERS.items():
        rows = times * d_model
        state[f"{layer}.weight"] = rand(row=rows, column=d_model, scale=d_model**-0.5, dtype=dtype)
        if bias:
            state[f"{layer}.bias"] = rand(row=rows, scale=0.5, dtype=dtype)
    return state


def unfused(state: State) -> dict[str, Tensor]:
    """The same numbers by the names of the core module."""
    parts = {}
    for kind in ("weight", "bias"):
        if f"w_o.{kind}" in state:
            thirds = state[f"w_qkv.{kind}"].chunk(3)
            parts.update(
                {
                    f"{name}.{kind}": third
                    for name, third in zip(CORE_LAYERS[:3], thirds, strict=True)
                }
            )
            parts[f"w_o.{kind}"] = state[f"w_o.{kind}"]
    return parts


def module(submission: Any, state: State, num_heads: int, **options: Any) -> Any:
    """The learner's module with this state, in evaluation mode and on the state's device."""
    weight = state["w_o.weight"]
    fused = submission.FusedMultiHeadAttention(d_model=len(weight), num_heads=num_heads, **options)
    missing: list[str] = ["?"]
    try:
        missing = fused.load_state_dict(dict(state), strict=False)
    finally:
        if missing:  # the names and shapes say why, better than torch does
            expect_layers(dict(fused.named_parameters()), len(weight), "w_o.bias" in state)
    if weight.device.type != "cpu":
        fused.to(weight.device)
    fused.eval()
    return fused


def core(submission: Any, state: State) -> Any:
    """A core module with the numbers of this fused state, in their dtype and on their device."""
    weight = state["w_o.weight"]
    mha = submission.given(CORE, "MultiHeadAttention", len(weight), bias="w_o.bias" in state)
    mha.to(weight.dtype)
    mha.load_state_dict(unfused(state))
    if weight.device.type != "cpu":
        mha.to(weight.device)
    return mha


def causal(T: int, device: torch.device) -> Tensor:
    """[1, 1, T, T], True on and below the diagonal."""
    steps = torch.arange(T, device=device)
    return (steps[:, None] >= steps).reshape(1, 1, T, T)


def scattered(rand: Rand, seed: int, *shape: int) -> Tensor:
    """A mask at random, with an allowed and a blocked key in every row."""
    mask = rand(**{f"axis_{place}": size for place, size in enumerate(shape)}) > 0
    mask[..., seed % mask.shape[-1]] = True
    mask[..., (seed + 1) % mask.shape[-1]] = False
    return mask


# --- judging ---------------------------------------------------------------------------------


def expect_layers(found: State, d_model: int, bias: bool) -> None:
    """Expect the names and shapes of w_qkv and w_o, and no others."""
    wanted: dict[str, tuple[int, ...]] = {}
    for layer, times in LAYERS.items():
        wanted[f"{layer}.weight"] = (times * d_model, d_model)
        if bias:
            wanted[f"{layer}.bias"] = (times * d_model,)
    missing = [name for name in wanted if name not in found]
    unexpected = [name for name in found if name not in wanted]
    if missing or unexpected:
        raise CheckFailed(
            f"The names of the parameters are wrong{'' if bias else ' without biases'}"
            + (f"\n  missing     {listed(missing)}" if missing else "")
            + (f"\n  unexpected  {listed(unexpected)}" if unexpected else "")
        )
    for name, shape in wanted.items():
        if tuple(found[name].shape) != shape:
            raise CheckFailed(
                f"The shape of {name} is wrong\n"
                f"  expected  {list(shape)}\n"
                f"  got       {list(found[name].shape)}"
            )


def listed(names: list[str]) -> str:
    """The first names of a list that may be long."""
    shown = ", ".join(f"{name:.24}" for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def expect_sizes(actual: Tensor, what: str, **axes: int) -> None:
    """expect_shape for one of the two results, with its name in the message."""
    try:
        expect_shape(actual, **axes)
    except CheckFailed as failure:
        message = str(failure).replace("The shape", f"The shape of {what}", 1)
        raise CheckFailed(message) from None


def expect_results(
    actual: tuple[Tensor, Tensor],
    expected: tuple[Tensor, Tensor],
    when: str = "",
    tolerance: float | None = None,
) -> None:
    """Expect these outputs and these weights."""
    for got, want, axes, what in zip(
        actual, expected, (OUTPUT, WEIGHTS), ("the output", "the weights"), strict=True
    ):
        expect_sizes(got, what + when, **dict(zip(axes.split(), want.shape, strict=True)))
        one = what.removesuffix("s")
        expect_close(got, want, axes=axes, what=one + when, rtol=tolerance, atol=tolerance)


def expect_gradients(actual: Tensor, expected: Tensor, inputs: State) -> None:
    """Expect these gradients; they are sums of many terms and rounded accordingly in float32."""
    axes = {name: "row column" if t.dim() == 2 else "row" for name, t in inputs.items()}
    axes["x"] = OUTPUT
    expect_gradients_close(actual, expected, inputs, axes=axes, rtol=1e-3, atol=1e-4)


def trained(fused: Any, d_model: int, bias: bool = True) -> dict[str, Tensor]:
    """The parameters of a fused module."""
    found = dict(fused.named_parameters())
    expect_layers(found, d_model, bias)
    return found


# --- the module ------------------------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.parametrize(("B", "T", "D", "H"), [(2, 5, 12, 3), (3, 6, 20, 4)])
@torch.no_grad()
def test_shapes(
    submission: Any, rand: Rand, device: torch.device, B: int, T: int, D: int, H: int
) -> None:
    """Returns the output [B, T, D] and each head's weights [B, H, T, T]"""
    fused = submission.FusedMultiHeadAttention(d_model=D, num_heads=H)
    if device.type != "cpu":
        fused.to(device)
    output, weights = fused(rand(B=B, T=T, D=D))
    expect_sizes(output, "the output", B=B, T=T, D=D)
    expect_sizes(weights, "the weights", B=B, H=H, T=T, Tk=T)
    for result in (output, weights):
        expect_dtype(result, torch.float32)
        expect_device(result, device)


@pytest.mark.points(1)
@pytest.mark.parametrize("bias", [True, False])
def test_layers(submission: Any, bias: bool) -> None:
    """It owns w_qkv from D to 3 D and w_o, 4 D² + 4 D parameters, no more"""
    D, H = 12, 3
    fused = submission.FusedMultiHeadAttention(d_model=D, num_heads=H, bias=bias)
    expect_layers(dict(fused.named_parameters()), D, bias)
    expect_layers(fused.state_dict(), D, bias)
    count = sum(parameter.numel() for parameter in fused.parameters())
    expect_equal(count, 4 * D**2 + 4 * D * bias, f"the number of parameters for D={D}")


@pytest.mark.points(1)
@pytest.mark.parametrize(("d_model", "num_heads"), [(10, 3), (4, 8)])
def test_heads_must_divide(submission: Any, d_model: int, num_heads: int) -> None:
    """The constructor refuses a d_model that the heads do not divide"""
    with expect_raises(ValueError, f"{d_model} features cannot be split into {num_heads} heads"):
        submission.FusedMultiHeadAttention(d_model=d_model, num_heads=num_heads)


@pytest.mark.points(2)
@pytest.mark.parametrize(
    ("B", "T", "D", "H"), [(2, 3, 4, 2), (2, 5, 12, 3), (3, 6, 20, 4), (1, 1, 6, 3), (2, 4, 6, 1)]
)
@torch.no_grad()
def test_values(submission: Any, rand: Rand, B: int, T: int, D: int, H: int) -> None:
    """Output and weights are those of attention with rows q, then k, then v"""
    state = random_state(rand, D)
    x = rand(B=B, T=T, D=D)
    expect_results(module(submission, state, H)(x), reference(state, H, x))


@pytest.mark.points(1)
@torch.no_grad()
def test_without_biases(submission: Any, rand: Rand) -> None:
    """With bias=False it computes the same without biases"""
    B, T, D, H = 2, 5, 12, 3
    state = random_state(rand, D, bias=False)
    x = rand(B=B, T=T, D=D)
    results = module(submission, state, H, bias=False)(x)
    expect_results(results, reference(state, H, x), " without biases")


@pytest.mark.points(1)
@pytest.mark.parametrize(
    ("axes", "dtype"),
    [
        ("1 1 T T", torch.bool),
        ("B 1 1 T", torch.bool),
        ("T T", torch.int64),
        ("B H T T", torch.float32),
        ("1 H 1 T", torch.bool),
    ],
    ids=str,
)
@pytest.mark.parametrize(("B", "spread"), [(2, 1.0), (5, 1.0), (2, 30.0)])
@torch.no_grad()
def test_masks(
    submission: Any,
    rand: Rand,
    seed: int,
    axes: str,
    dtype: torch.dtype,
    B: int,
    spread: float,
) -> None:
    """Masks of every shape, bool or zeros and ones, hide what they block"""
    sizes = {"B": B, "H": 3, "T": 5, "1": 1}
    state = random_state(rand, 12)
    for kind in ("weight", "bias"):  # the queries' third
        third = state[f"w_qkv.{kind}"].chunk(3)[0]
        state[f"w_qkv.{kind}"] = torch.cat([third * spread, state[f"w_qkv.{kind}"][12:]])
    # A score of some hundred has an error of some 1e-4 in float32, and so have its weights.
    tolerance = 5e-3 if spread > 1 else None
    x = rand(B=sizes["B"], T=sizes["T"], D=12)
    mask = scattered(rand, seed, *(sizes[axis] for axis in axes.split())).to(dtype)
    expected = reference(state, sizes["H"], x, mask)
    fused = module(submission, state, sizes["H"], dropout=0.0)
    for tokens in (x, x.mT.contiguous().mT):
        with expect_unchanged(x=tokens, mask=mask):
            results = fused(tokens, mask=mask)
        when = f" for a mask [{', '.join(axes.split())}]"
        expect_results(results, expected, when, tolerance)
        fused.train()  # in which nothing is dropped either


@pytest.mark.points(1)
def test_gradients(submission: Any, rand: Rand) -> None:
    """Gradients reach x and all weights and biases"""
    B, T, D, H = 2, 5, 12, 3
    fused = module(submission, random_state(rand, D), H)
    own = trained(fused, D)
    x = rand(B=B, T=T, D=D, grad=True)
    expected, _ = reference(own, H, x)
    expect_gradients(fused(x)[0], expected, {"x": x, **own})


@pytest.mark.points(1)
def test_blocked_rows(submission: Any, rand: Rand, device: torch.device) -> None:
    """A query with no allowed key: zero weights, finite and right gradients"""
    B, T, D, H = 2, 5, 12, 3
    fused = module(submission, random_state(rand, D), H)
    own = trained(fused, D)
    x = rand(B=B, T=T, D=D, grad=True)
    mask = causal(T, device).repeat(B, 1, 1, 1)
    mask[:, :, 2] = False
    mask[-1] = False
    expected = reference(own, H, x, mask)
    with expect_unchanged(mask=mask):
        results = fused(x, mask)
    expect_results(results, expected)
    expect_gradients(results[0], expected[0], {"x": x, **own})
    for tokens in (x, x[:, :1]):
        nothing = torch.zeros(B, 1, 1, tokens.shape[1], dtype=torch.bool, device=device)
        expect_results(fused(tokens, nothing), reference(own, H, tokens, nothing))


@pytest.mark.points(1)
def test_start(submission: Any) -> None:
    """Weights start as Xavier says, biases at zero, and no two alike"""
    D, H = 192, 6
    fused = submission.FusedMultiHeadAttention(d_model=D, num_heads=H)
    start = {name: tensor.double() for name, tensor in fused.state_dict().items()}
    expect_layers(start, D, bias=True)
    # Xavier over [3 D, D] or over each third, and over [D, D]. Over D² entries a right spread is
    # within 0.4 % (one standard error): what is admitted is eight of them.
    whole, third = (2 / (4 * D)) ** 0.5, D**-0.5
    parts = dict(zip("qkv", start["w_qkv.weight"].chunk(3), strict=True))
    spreads = {name: part.std().item() for name, part in parts.items()}
    for name, spread in spreads.items():
        near = [wanted for wanted in (whole, third) if abs(spread / wanted - 1) < 0.03]
        assert near and all(
            is_between(other / near[0], 0.97, 1.03) for other in spreads.values()
        ), (
            f"The part of w_qkv for {name} starts with the wrong spread for D={D}\n"
            f"  expected  a standard deviation of {whole:.4f} or {third:.4f} in all three parts\n"
            f"  got       {', '.join(f'{part} {value:.4f}' for part, value in spreads.items())}"
        )
    spread = start["w_o.weight"].std().item()
    assert is_between(spread / third, 0.97, 1.03), (
        f"The weights of w_o start with the wrong spread for D={D}\n"
        f"  expected  a standard deviation of {third:.4f}, give or take 3 %\n"
        f"  got       {spread:.4f}"
    )
    # Each row has a weight beyond nn.Linear's own start, which ends at 1 / sqrt(D): that a Xavier
    # row of 192 has none happens once in 10^14 times.
    for name in ("w_qkv.weight", "w_o.weight"):
        left = (start[name].abs() <= D**-0.5).all(dim=1).nonzero().flatten().tolist()
        assert not left, (
            f"Not all rows of {name} start as Xavier says, for D={D}\n"
            f"  expected  in each row some weights beyond {D**-0.5:.4f}\n"
            f"  got       none in {len(left)} of the rows, such as row {left[0]}"
        )
    second = submission.FusedMultiHeadAttention(d_model=D, num_heads=H).state_dict()
    for name in ("w_qkv.weight", "w_o.weight"):
        assert not torch.equal(start[name].float(), second[name].float()), (
            f"Two modules start with the same weights\n  in both  {name}"
        )
    for one, other in ("qk", "kv", "qv"):
        assert not torch.equal(parts[one], parts[other]), (
            f"Two parts of w_qkv start with the same weights\n  first   {one}\n  second  {other}"
        )
    for name in ("w_qkv.bias", "w_o.bias"):
        zeros = torch.zeros_like(start[name])
        expect_close(start[name], zeros, axes="row", rtol=0, atol=0, what=name)


@pytest.mark.points(1)
@pytest.mark.parametrize("p", [0.5, 0.2])
@torch.no_grad()
def test_dropout(submission: Any, rand: Rand, device: torch.device, p: float) -> None:
    """In training, dropout falls on single weights, those kept grow"""
    # Of every token two features in each head's values say which token it is, and w_o is the
    # identity: a weight can be read off the output twice, whether or not the weights that are
    # returned have been dropped.
    B, H, T = 6, 2, 10
    D = H * 2 * T
    x = torch.cat([torch.eye(T, device=device).repeat(B, 1, 1), rand(B=B, T=T, D=D - T)], dim=-1)
    state = random_state(rand, D, bias=False)
    values = torch.eye(T, D, device=device).repeat(2 * H, 1)
    state["w_qkv.weight"] = torch.cat([0.5 * state["w_qkv.weight"][: 2 * D], values])
    state["w_o.weight"] = torch.eye(D, device=device)
    output, weights = reference(state, H, x)
    fused = module(submission, state, H, dropout=p, bias=False)
    expect_close(fused(x)[0], output, axes=OUTPUT, what="the output after eval()")
    fused.train()
    with expect_unchanged(x=x):
        dropped = fused(x)[0]
    expect_sizes(dropped, "the output", B=B, T=T, D=D)
    twice = dropped.cpu().double().reshape(B, T, H, 2, T).movedim(1, 3)
    seen = twice[:, :, 0]
    off = seen.abs() < 1e-6
    right = are_close(seen, weights / (1 - p), rtol=1e-3, atol=1e-6, where=~off)
    share = off.double().mean().item()
    leeway = 8 * (p * (1 - p) / off.numel()) ** 0.5  # eight standard deviations
    assert bool(right.all()) and is_between(share, p - leeway, p + leeway), (
        f"dropout={p} does something else in training mode\n"
        f"  expected  about {p:.0%} of the weights 0, the others divided by {1 - p:g}\n"
        f"  got       {share:.0%} of them 0, {(~right).double().mean().item():.0%} wrong"
    )
    assert are_close(seen, twice[:, :, 1], rtol=1e-3, atol=1e-6).all(), (
        "Dropout falls on something else than the attention weights\n"
        "  expected  a weight that is dropped for all features of its value\n"
        "  got       a weight that is dropped for some features and kept for others"
    )
    axes = ("sequences", "heads", "queries", "keys")
    alike = [name for axis, name in enumerate(axes) if bool((off == off.narrow(axis, 0, 1)).all())]
    assert not alike, (
        f"Dropout treats all {alike[0]} alike\n"
        f"  expected  a draw for each weight\n"
        f"  got       the same draw for all {alike[0]}"
    )


@pytest.mark.points(1)
@torch.no_grad()
def test_calls(submission: Any, rand: Rand, device: torch.device) -> None:
    """Arguments by name or position, dropout 0 by default, no call remembered"""
    D, H = 12, 3
    state = random_state(rand, D)
    by_position = submission.FusedMultiHeadAttention(D, H, 0.5, False)
    expect_layers(by_position.state_dict(), D, bias=False)
    fused = submission.FusedMultiHeadAttention(d_model=D, num_heads=H)
    fused.load_state_dict(state)
    fused.to(device)  # and not evaluation mode: a module starts in training mode
    x, y = rand(B=2, T=5, D=D), rand(B=3, T=4, D=D)
    later = x.transpose(0, 1).contiguous().transpose(0, 1)  # in another layout
    calls: list[tuple[Tensor, Tensor | None]] = [
        *((x, causal(5, device)), (x, None), (y, None), (y, causal(4, device)), (later, None)),
    ]
    for number, (each, mask) in enumerate(calls, start=1):
        expected = reference(state, H, each, mask)
        results = fused(each, mask) if number % 2 else fused(x=each, mask=mask)
        expect_results(results, expected, f" of call {number}")


# --- fuse ------------------------------------------------------------------------------------


@pytest.mark.points(2)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("D", "H"), [(4, 2), (12, 3), (20, 1)])
@torch.no_grad()
def test_fuse_values(
    submission: Any, rand: Rand, device: torch.device, D: int, H: int, bias: bool
) -> None:
    """fuse gives a module with the core module's output and weights"""
    state = random_state(rand, D, bias=bias)
    fused = submission.fuse(core(submission, state), H)
    expect_layers(dict(fused.named_parameters()), D, bias)
    x = rand(B=2, T=5, D=D)
    for mask in (None, causal(5, device)):
        fused.eval()
        expect_results(fused(x, mask), reference(state, H, x, mask), " of the fused module")
        fused.train()  # in which nothing is dropped either
        results = fused(x, mask)
        expect_results(results, reference(state, H, x, mask), " of the fused module in training")


@pytest.mark.points(1)
def test_fuse_gradients(submission: Any, rand: Rand) -> None:
    """The fused module learns: its gradients are the core module's, stacked"""
    D, H = 12, 3
    mha = core(submission, random_state(rand, D))
    fused = submission.fuse(mha, num_heads=H)
    fused.eval()
    own = trained(fused, D)
    x = rand(B=2, T=5, D=D, grad=True)
    expected, _ = reference(own, H, x)
    expect_gradients(fused(x)[0], expected, {"x": x, **own})


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
@torch.no_grad()
def test_fuse_dtypes(submission: Any, rand: Rand, device: torch.device, dtype: torch.dtype) -> None:
    """fuse keeps the core module's dtype, and every bit of its numbers"""
    if device.type == "mps" and dtype == torch.float64:
        pytest.skip("no float64 on this device")
    D, H = 12, 3
    state = random_state(rand, D, dtype=dtype)
    fused = submission.fuse(core(submission, state), H)
    found = fused.state_dict()
    expect_layers(found, D, bias=True)
    for name, wanted in state.items():
        expect_dtype(found[name], dtype)
        expect_device(found[name], device)
        axes = "row column" if wanted.dim() == 2 else "row"
        expect_close(found[name], wanted, axes=axes, rtol=0, atol=0, what=name)
    fused.eval()
    x = rand(B=2, T=5, D=D, dtype=dtype)
    with expect_unchanged(x=x):
        output, weights = fused(x)
    expect_dtype(output, dtype)
    expect_dtype(weights, dtype)


@pytest.mark.points(2)
@torch.no_grad()
def test_fuse_apart(submission: Any, rand: Rand) -> None:
    """The two modules share nothing: what one learns, the other does not"""
    D, H = 12, 3
    state, other = random_state(rand, D), random_state(rand, D)
    x = rand(B=2, T=5, D=D)
    mha = core(submission, state)
    fused = submission.fuse(mha, H)
    fused.eval()
    mha.load_state_dict(unfused(other))
    expect_results(fused(x), reference(state, H, x), " after a change of the core module")
    fused.load_state_dict({name: 2 * tensor for name, tensor in state.items()})
    names = sorted(mha.state_dict())
    expect_equal(names, sorted(unfused(other)), "the core module's list of what is saved")
    for name, wanted in unfused(other).items():
        axes = "row column" if wanted.dim() == 2 else "row"
        what = f"{name} of the core module, after a change of the fused one,"
        expect_close(mha.state_dict()[name], wanted, axes=axes, rtol=0, atol=0, what=what)


@pytest.mark.points(1)
@pytest.mark.parametrize("training", [True, False])
def test_fuse_leaves(submission: Any, rand: Rand, training: bool) -> None:
    """fuse leaves the core module as it was: numbers, mode and gradients"""
    D, H = 12, 3
    state = random_state(rand, D)
    mha = core(submission, state)
    mha.train(training)
    x = rand(B=2, T=5, D=D)

    def seen() -> tuple[Tensor, dict[str, Tensor | None]]:
        own = dict(mha.named_parameters())
        expect_equal(sorted(own), sorted(unfused(state)), "the core module's list of parameters")
        frozen = [name for name, parameter in own.items() if not parameter.requires_grad]
        expect_equal(frozen, [], "the core module's list of parameters that cannot learn")
        output = mha(x)
        found = torch.autograd.grad(output.square().sum(), list(own.values()), allow_unused=True)
        return output.detach(), dict(zip(own, found, strict=True))

    before, gradients = seen()
    submission.fuse(mha, H)
    after, found = seen()
    what = "what the core module computes after the call of fuse"
    expect_close(after, before, axes=OUTPUT, rtol=0, atol=0, what=what)
    for name, wanted in gradients.items():
        got = found[name]
        assert got is not None and wanted is not None and torch.equal(got, wanted), (
            f"After the call of fuse {name} of the core module gets another gradient\n"
            f"  expected  the gradient that it got before\n"
            f"  got       {'none' if got is None else 'another one'}"
        )


@pytest.mark.points(1, stand_in="fuse_values")
@torch.no_grad()
def test_fuse_gpu(submission: Any, rand: Rand) -> None:
    """Of a core module on a GPU, fuse makes one on the same GPU"""
    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
    D, H = 12, 3
    gpu = torch.device("cuda")
    state = {name: tensor.to(gpu) for name, tensor in random_state(rand, D).items()}
    fused = submission.fuse(core(submission, state), H)
    for tensor in fused.state_dict().values():
        expect_device(tensor, gpu)
    x = rand(B=2, T=5, D=D).to(gpu)
    fused.eval()
    expect_results(fused(x), reference(state, H, x), " on the GPU")
