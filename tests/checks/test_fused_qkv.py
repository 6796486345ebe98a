"""Hidden checks of fused_qkv: the fused module against a float64 reference, and what fuse makes.

`reference` computes the attention of one head at a time on the CPU. `CORE` is a module with the
four layers of the core's; its forward lets every layer, and the mode, be seen in the output.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from grader.checking import (
    Rand,
    Submission,
    draw_state,
    draw_truths,
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

OUTPUT = "B T D"
WEIGHTS = "B H T Tk"
RESULTS = {"the output": OUTPUT, "the weights": WEIGHTS}
ALONG = {"B": "sequences", "H": "heads", "T": "queries", "Tk": "keys"}
CORE_LAYERS = ("w_q", "w_k", "w_v", "w_o")
CORE = """
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, bias=True):
        super().__init__()
        for name in ("w_q", "w_k", "w_v", "w_o"):
            self.add_module(name, nn.Linear(d_model, d_model, bias=bias))
        self.dropout = nn.Dropout(0.5)
        for parameter in self.parameters():
            parameter.grad = torch.ones_like(parameter)

    def forward(self, x):
        mixed = self.w_q(x) - 2 * self.w_k(x) + 3 * self.w_v(x)
        keeps = all(p.grad is not None and (p.grad == 1).all() for p in self.parameters())
        return self.w_o(mixed) * (2 if self.training else 1) * (1 if keeps else 3)
"""

State = Mapping[str, Tensor]


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
        weights = powers / (total + (total == 0))  # a row of zeros stays zero
        own = slice(head * d_k, (head + 1) * d_k)
        output = output + weights @ v @ exact["w_o.weight"][:, own].T
        maps.append(weights)
    return output, torch.stack(maps, dim=1)


# --- building modules and masks --------------------------------------------------------------


def shapes(D: int, bias: bool = True) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the parameters."""
    return linear_shapes({"w_qkv": (3 * D, D), "w_o": (D, D)}, bias)


def module(submission: Submission, state: State, num_heads: int, **options: Any) -> Any:
    """The learner's module with this state, in evaluation mode and on the state's device."""
    d_model = len(state["w_o.weight"])
    fused = submission.FusedMultiHeadAttention(d_model=d_model, num_heads=num_heads, **options)
    return with_state(fused, state)


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


def core(submission: Submission, state: State) -> Any:
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


# --- judging ---------------------------------------------------------------------------------


def expect_both(
    actual: Any, expected: tuple[Tensor, Tensor], when: str = "", room: float | None = None
) -> None:
    """Expect this output and these weights."""
    expect_results(actual, expected, RESULTS, when, rtol=room, atol=room)


def expect_gradients(actual: Tensor, expected: Tensor, inputs: State) -> None:
    """Expect these gradients; they are sums of many terms and rounded accordingly in float32."""
    expect_gradients_close(actual, expected, inputs, rtol=1e-3, atol=1e-4)


# --- the module ------------------------------------------------------------------------------


@pytest.mark.points(1, hint=4)
@pytest.mark.pays("zeros", "ones", because="only the shape, dtype and device are checked")
@pytest.mark.parametrize(("B", "T", "D", "H"), [(2, 5, 12, 3), (3, 6, 20, 4)])
@torch.no_grad()
def test_shapes(
    submission: Submission, rand: Rand, device: torch.device, B: int, T: int, D: int, H: int
) -> None:
    """Returns the output [B, T, D] and each head's weights [B, H, T, T]"""
    fused = submission.FusedMultiHeadAttention(d_model=D, num_heads=H)
    if device.type != "cpu":
        fused.to(device)
    output, weights = fused(rand(B=B, T=T, D=D))
    expect_shape(output, "the output", B=B, T=T, D=D)
    expect_shape(weights, "the weights", B=B, H=H, T=T, Tk=T)
    for result in (output, weights):
        expect_dtype(result, torch.float32)
        expect_device(result, device)


@pytest.mark.points(1, hint=2)
@pytest.mark.parametrize("bias", [True, False])
def test_layers(submission: Submission, bias: bool) -> None:
    """It has the layers w_qkv (D to 3 D) and w_o, and no other parameters"""
    D, H = 12, 3
    fused = submission.FusedMultiHeadAttention(d_model=D, num_heads=H, bias=bias)
    expect_parameters(dict(fused.named_parameters()), shapes(D, bias))
    expect_parameters(fused.state_dict(), shapes(D, bias), where="state_dict()")
    count = sum(parameter.numel() for parameter in fused.parameters())
    expect_equal(count, 4 * D**2 + 4 * D * bias, f"the number of parameters for D={D}")


@pytest.mark.points(1)
@pytest.mark.parametrize(("d_model", "num_heads"), [(10, 3), (4, 8)])
def test_heads_must_divide(submission: Submission, d_model: int, num_heads: int) -> None:
    """The constructor raises ValueError if num_heads does not divide d_model"""
    submission.FusedMultiHeadAttention(d_model=d_model * num_heads, num_heads=num_heads)
    with expect_raises(ValueError, f"{d_model} features cannot be split into {num_heads} heads"):
        submission.FusedMultiHeadAttention(d_model=d_model, num_heads=num_heads)


@pytest.mark.points(2, hint=3)
@pytest.mark.parametrize(
    ("B", "T", "D", "H"), [(2, 3, 4, 2), (2, 5, 12, 3), (3, 6, 20, 4), (1, 1, 6, 3), (2, 4, 6, 1)]
)
@torch.no_grad()
def test_values(submission: Submission, rand: Rand, B: int, T: int, D: int, H: int) -> None:
    """w_qkv holds the rows of q, then k, then v"""
    state = draw_state(rand, shapes(D))
    x = rand(B=B, T=T, D=D)
    expect_both(module(submission, state, H)(x), reference(state, H, x))


@pytest.mark.points(1)
@torch.no_grad()
def test_without_biases(submission: Submission, rand: Rand) -> None:
    """With bias=False it works without biases"""
    B, T, D, H = 2, 5, 12, 3
    state = draw_state(rand, shapes(D, bias=False))
    x = rand(B=B, T=T, D=D)
    results = module(submission, state, H, bias=False)(x)
    expect_both(results, reference(state, H, x), " without biases")


@pytest.mark.points(1, hint=4)
@pytest.mark.parametrize(
    ("axes", "dtype"),
    [
        ("1 1 T T", torch.bool),
        ("B 1 1 T", torch.bool),
        ("T T", torch.int64),
        ("H T T", torch.bool),
        ("B H T T", torch.float32),
        ("1 H 1 T", torch.float64),
    ],
    ids=str,
)
@pytest.mark.parametrize(("B", "spread"), [(2, 1.0), (3, 1.0), (2, 30.0), (2, 0.0)])
@torch.no_grad()
def test_masks(
    submission: Submission,
    rand: Rand,
    seed: int,
    device: torch.device,
    axes: str,
    dtype: torch.dtype,
    B: int,
    spread: float,
) -> None:
    """Masks of every shape work, as booleans and as zeros and ones"""
    skip_unless_supported(dtype, device)
    sizes = {"B": B, "H": 3, "T": 5 if B == 2 else B, "1": 1}
    state = draw_state(rand, shapes(12))
    for kind in ("weight", "bias"):  # the queries' third
        third = state[f"w_qkv.{kind}"].chunk(3)[0]
        state[f"w_qkv.{kind}"] = torch.cat([third * spread, state[f"w_qkv.{kind}"][12:]])
    # A score of several hundred has an error of about 1e-4 in float32, and so do its weights.
    tolerance = 5e-3 if spread > 1 else None
    x = rand(B=sizes["B"], T=sizes["T"], D=12)
    shape = {f"axis_{place}": sizes[axis] for place, axis in enumerate(axes.split())}
    mask = draw_truths(rand, seed, **shape).to(dtype)
    expected = reference(state, sizes["H"], x, mask)
    fused = module(submission, state, sizes["H"], dropout=0.0)
    for tokens in (x, x.mT.contiguous().mT):
        with expect_unchanged(x=tokens, mask=mask):
            results = fused(tokens, mask=mask)
        when = f" for a mask [{', '.join(axes.split())}]" + " and scores of 0" * (spread == 0)
        expect_both(results, expected, when, tolerance)
        fused.train()  # where nothing is dropped either


@pytest.mark.points(1)
def test_gradients(submission: Submission, rand: Rand) -> None:
    """Gradients reach x and all weights and biases"""
    B, T, D, H = 2, 5, 12, 3
    state = draw_state(rand, shapes(D))
    fused = module(submission, state, H)
    own = trained_parameters(fused, state)
    x = rand(B=B, T=T, D=D, grad=True)
    expected, _ = reference(own, H, x)
    expect_gradients(fused(x)[0], expected, {"x": x, **own})


@pytest.mark.points(1)
def test_blocked_rows(submission: Submission, rand: Rand, device: torch.device) -> None:
    """A query with no allowed key has zero weights and finite gradients"""
    B, T, D, H = 2, 5, 12, 3
    state = draw_state(rand, shapes(D))
    fused = module(submission, state, H)
    own = trained_parameters(fused, state)
    x = rand(B=B, T=T, D=D, grad=True)
    mask = causal(T, device).repeat(B, 1, 1, 1)
    mask[:, :, 2] = False
    mask[-1] = False
    expected = reference(own, H, x, mask)
    fused.train()
    with expect_unchanged(mask=mask):
        results = fused(x, mask)
    expect_both(results, expected)
    expect_gradients(results[0], expected[0], {"x": x, **own})
    for tokens in (x, x[:, :1]):
        nothing = torch.zeros(B, 1, 1, tokens.shape[1], dtype=torch.bool, device=device)
        expected = reference(own, H, tokens, nothing)
        for given in (nothing, nothing.float()):
            expect_both(fused(tokens, given), expected, f" for a mask of {given.dtype}")


@pytest.mark.points(1, hint=2)
def test_start(submission: Submission) -> None:
    """Weights start with Xavier values, all different, and biases at 0"""
    D, H = 192, 6
    fused = submission.FusedMultiHeadAttention(d_model=D, num_heads=H)
    start = {name: tensor.double() for name, tensor in fused.state_dict().items()}
    expect_parameters(start, shapes(D), where="state_dict()")
    # Xavier over [3 D, D] or over each third, and over [D, D]. Of D² entries one standard error of
    # the spread is 0.4 %.
    whole, third = (2 / (4 * D)) ** 0.5, D**-0.5
    parts = dict(zip("qkv", start["w_qkv.weight"].chunk(3), strict=True))
    spreads = {name: part.std().item() for name, part in parts.items()}
    near = [
        wanted
        for wanted in (whole, third)
        if all(abs(spread / wanted - 1) < 0.03 for spread in spreads.values())
    ]
    assert near, (
        f"w_qkv starts with the wrong spread for D={D}\n"
        f"  expected  a standard deviation of {whole:.4f} or {third:.4f} in all three parts\n"
        f"  got       {', '.join(f'{part} {value:.4f}' for part, value in spreads.items())}"
    )
    for name, part in parts.items():
        expect_start(part, near[0], f"w_qkv.weight for {name}")
    expect_start(start["w_o.weight"], third, "w_o.weight")
    # Each row has a weight beyond nn.Linear's own start, which ends at 1 / sqrt(D): that a Xavier
    # row of 192 has none happens once in 10^14 times.
    for name in ("w_qkv.weight", "w_o.weight"):
        left = (start[name].abs() <= D**-0.5).all(dim=1).nonzero().flatten().tolist()
        assert not left, (
            f"Some rows of {name} do not start with Xavier values, for D={D}\n"
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


@pytest.mark.points(1, hint=4)
@pytest.mark.parametrize("p", [0.5, 0.2])
def test_dropout(submission: Submission, rand: Rand, device: torch.device, p: float) -> None:
    """Dropout drops single weights in training and scales the others up"""
    # Of every token two features in each head's values say which token it is, and w_o is the
    # identity: a weight can be read off the output twice, whether or not the weights that are
    # returned have been dropped.
    B, H, T = 6, 2, 10
    D = H * 2 * T
    rest = rand(B=B, T=T, D=D - T, grad=True)
    x = torch.cat([torch.eye(T, device=device).repeat(B, 1, 1), rest], dim=-1)
    state = draw_state(rand, shapes(D, bias=False))
    values = torch.eye(T, D, device=device).repeat(2 * H, 1)
    state["w_qkv.weight"] = torch.cat([0.5 * state["w_qkv.weight"][: 2 * D], values])
    state["w_o.weight"] = torch.eye(D, device=device)
    output, _ = reference(state, H, x)
    fused = module(submission, state, H, dropout=p, bias=False)
    evaluated = module(submission, state, H, bias=False)
    earlier = causal(T, device)
    for mask in (None, earlier):
        # A wrong mask costs points in other checks: here the module's own results are the norm.
        full = output if mask is None else evaluated(x, mask)[0]
        expect_shape(full, "the output after eval()", B=B, T=T, D=D)
        weights = full.reshape(B, T, H, 2, T).movedim(1, 3)[:, :, 0]
        fused.train()
        with expect_unchanged(x=x):
            dropped, returned = fused(x, mask)
        expect_shape(dropped, "the output", B=B, T=T, D=D)
        once, again = dropped.reshape(B, T, H, 2, T).movedim(1, 3).unbind(2)
        expect_dropped(once, again, weights, p, axes=ALONG, inputs={"x": rest}, returned=returned)
        with torch.no_grad():
            first, second = (fused(x, earlier)[0] for _ in range(2))
        expect_new_draws(first, second, " with a mask")
        fused.eval()
        expect_close(fused(x)[0], output, axes=OUTPUT, what="the output after eval()")


@pytest.mark.points(1)
@torch.no_grad()
def test_calls(submission: Submission, rand: Rand, device: torch.device) -> None:
    """Arguments work by name and position, and calls do not affect each other"""
    D, H = 12, 3
    state = draw_state(rand, shapes(D))
    fused = submission.FusedMultiHeadAttention(d_model=D, num_heads=H)
    fused.load_state_dict(state)
    fused.to(device)  # and not evaluation mode: a module starts in training mode
    x, y = rand(B=2, T=5, D=D), rand(B=3, T=4, D=D)
    later = x.transpose(0, 1).contiguous().transpose(0, 1)  # in another layout
    calls: list[tuple[Tensor, Tensor | None]] = [
        *((x, causal(5, device)), (x, None), (y, None), (x.flip(1), causal(5, device).mT)),
        *((y, causal(4, device)), (later, None)),
    ]
    for number, (each, mask) in enumerate(calls, start=1):
        expected = reference(state, H, each, mask)
        results = fused(each, mask) if number % 2 else fused(x=each, mask=mask)
        expect_both(results, expected, f" of call {number}")
    by_position = submission.FusedMultiHeadAttention(D, 2 * H, 0.5, False)
    expect_both(fused(x), reference(state, H, x), " after another module was made")
    expect_parameters(by_position.state_dict(), shapes(D, bias=False), where="state_dict()")


# --- fuse ------------------------------------------------------------------------------------


@pytest.mark.points(2, hint=5)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("D", "H"), [(4, 2), (12, 3), (20, 1)])
@torch.no_grad()
def test_fuse_values(
    submission: Submission, rand: Rand, device: torch.device, D: int, H: int, bias: bool
) -> None:
    """fuse(mha) computes the output and weights of mha"""
    state = draw_state(rand, shapes(D, bias=bias))
    fused = submission.fuse(core(submission, state), H)
    expect_parameters(dict(fused.named_parameters()), shapes(D, bias))
    x = rand(B=2, T=5, D=D)
    for mask in (None, causal(5, device)):
        fused.eval()
        expect_both(fused(x, mask), reference(state, H, x, mask), " of the fused module")
        fused.train()  # where nothing is dropped either
        results = fused(x, mask)
        expect_both(results, reference(state, H, x, mask), " of the fused module in training")


@pytest.mark.points(1, hint=7)
def test_fuse_gradients(submission: Submission, rand: Rand) -> None:
    """The fused module's gradients are those of mha, stacked"""
    D, H = 12, 3
    state = draw_state(rand, shapes(D))
    mha = core(submission, state)
    fused = submission.fuse(mha=mha, num_heads=H)
    fused.eval()
    own = trained_parameters(fused, state)
    x = rand(B=2, T=5, D=D, grad=True)
    expected, _ = reference(own, H, x)
    expect_gradients(fused(x)[0], expected, {"x": x, **own})


@pytest.mark.points(1, hint=6)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
@torch.no_grad()
def test_fuse_dtypes(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """fuse keeps mha's dtype and exact numbers"""
    skip_unless_supported(dtype, device)
    D, H = 12, 3
    state = draw_state(rand, shapes(D), dtype=dtype)
    fused = submission.fuse(core(submission, state), H)
    found = fused.state_dict()
    expect_parameters(found, shapes(D), where="state_dict()")
    for name, wanted in state.items():
        expect_dtype(found[name], dtype)
        expect_device(found[name], device)
        axes = "row column" if wanted.dim() == 2 else "row"
        expect_close(found[name], wanted, axes=axes, rtol=0, atol=0, what=name)
    fused.eval()
    x = rand(B=2, T=5, D=D, dtype=dtype)
    for mask in (None, causal(5, device)):
        with expect_unchanged(x=x):
            output, weights = fused(x, mask)
        expect_dtype(output, dtype, "the output")
        expect_dtype(weights, dtype, "the weights")
        expect_no_constant(output, x=x)
    for result in module(submission, state, H, dropout=0.5).to(dtype).train()(x):
        expect_dtype(result, dtype, "what comes of dropout")


@pytest.mark.points(2, hint=7)
@torch.no_grad()
def test_fuse_apart(submission: Submission, rand: Rand) -> None:
    """The fused module and mha share no memory"""
    D, H = 12, 3
    state, other = draw_state(rand, shapes(D)), draw_state(rand, shapes(D))
    x = rand(B=2, T=5, D=D)
    mha = core(submission, state)
    fused = submission.fuse(mha, H)
    expect_parameters(dict(fused.named_parameters()), shapes(D))
    fused.eval()
    mha.load_state_dict(unfused(other))
    expect_both(fused(x), reference(state, H, x), " after a change of the core module")
    fused.load_state_dict({name: 2 * tensor for name, tensor in state.items()})
    names = sorted(mha.state_dict())
    expect_equal(names, sorted(unfused(other)), "the core module's list of what is saved")
    for name, wanted in unfused(other).items():
        axes = "row column" if wanted.dim() == 2 else "row"
        what = f"{name} of the core module, after a change of the fused one,"
        expect_close(mha.state_dict()[name], wanted, axes=axes, rtol=0, atol=0, what=what)


@pytest.mark.points(1, hint=7)
@pytest.mark.parametrize("training", [True, False])
def test_fuse_leaves(submission: Submission, rand: Rand, training: bool) -> None:
    """fuse does not change mha: numbers, mode and gradients stay"""
    D, H = 12, 3
    state = draw_state(rand, shapes(D))
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
    output, _ = submission.fuse(mha, H)(x)
    expect_no_constant(output, x=x)
    assert mha(x).requires_grad, "After fuse, no parameter of the core module can learn"
    after, found = seen()
    modes = ["training mode", "evaluation mode"]
    assert not torch.equal(after, before / 2 if training else before * 2), (
        "fuse changes the mode of the core module\n"
        f"  expected  {modes[not training]}\n"
        f"  got       {modes[training]}"
    )
    assert not torch.equal(after, before * 3), (
        "fuse changes the gradients that the core module holds\n"
        "  expected  the .grad of each parameter as it was\n"
        "  got       another one, or None"
    )
    what = "what the core module computes after fuse"
    expect_close(after, before, axes=OUTPUT, rtol=0, atol=0, what=what)
    for name, wanted in gradients.items():
        got = found[name]
        assert got is not None and wanted is not None and torch.equal(got, wanted), (
            f"After fuse, {name} of the core module gets another gradient\n"
            f"  expected  the gradient that it got before\n"
            f"  got       {'none' if got is None else 'another one'}"
        )


@pytest.mark.points(1, stand_in="fuse_values")
@torch.no_grad()
def test_fuse_gpu(submission: Submission, rand: Rand, device: torch.device) -> None:
    """fuse of a module on a GPU gives a module on the same GPU"""
    gpu = gpu_or_skip(device)
    D, H = 12, 3
    state = {name: tensor.to(gpu) for name, tensor in draw_state(rand, shapes(D)).items()}
    fused = submission.fuse(core(submission, state), H)
    for tensor in fused.state_dict().values():
        expect_device(tensor, gpu)
    x = rand(B=2, T=5, D=D).to(gpu)
    fused.eval()
    expect_both(fused(x), reference(state, H, x), " on the GPU")
