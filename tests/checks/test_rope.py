"""Hidden checks of rope: the angles, the turn, and a module that knows positions.

The references work in float64 with complex numbers. A turn in either direction is right as long as
one result keeps to one of them: a score then tells the distance n - m or m - n, which serves alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from grader.checking import (
    CheckFailed,
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
ANGLES = "T pair"
TURNED = "B H T d_k"
OUTPUT = "B Tq D"
WEIGHTS = "B H Tq Tk"
GRADIENT_AXES = {
    f"{layer}.{kind}": axes
    for layer in LAYERS
    for kind, axes in (("weight", "row column"), ("bias", "row"))
}

State = Mapping[str, Tensor]
Rand = Callable[..., Tensor]


# --- the references --------------------------------------------------------------------------


def exact_angles(T: int, d_k: int, base: float = 10000.0, offset: int = 0) -> Tensor:
    """One row a token, one number a pair, in float64."""
    rows = [
        [place * base ** (-2 * pair / d_k) for pair in range(d_k // 2)]
        for place in range(offset, offset + T)
    ]
    return torch.tensor(rows, dtype=torch.float64)


def turned(x: Tensor, angles: Tensor, direction: int = 1) -> Tensor:
    """Each pair as a complex number, times one of length 1, in float64 on the CPU."""
    pairs = torch.view_as_complex(x.cpu().double().unflatten(-1, (-1, 2)).contiguous())
    radians = direction * angles.cpu().double()
    turn = torch.complex(radians.cos(), radians.sin())
    return torch.view_as_real(pairs * turn).flatten(-2)


def reference(
    state: State,
    num_heads: int,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    base: float = 10000.0,
    direction: int = 1,
) -> tuple[Tensor, Tensor]:
    """Output and weights, one head at a time, in float64 on the CPU."""
    exact = {name: tensor.cpu().double() for name, tensor in state.items()}
    d_k = query.shape[-1] // num_heads
    none = torch.zeros((), dtype=torch.float64)

    def heads(layer: str, x: Tensor) -> tuple[Tensor, ...]:
        rows = x.cpu().double() @ exact[f"{layer}.weight"].T + exact.get(f"{layer}.bias", none)
        return rows.split(d_k, dim=-1)

    allowed = torch.ones((), dtype=torch.bool) if mask is None else (mask != 0).cpu()
    allowed = allowed.expand(len(query), num_heads, query.shape[1], key.shape[1])
    at_query, at_key = (exact_angles(x.shape[1], d_k, base) for x in (query, key))
    found, maps = [], []
    for head, (q, k, v) in enumerate(
        zip(heads("w_q", query), heads("w_k", key), heads("w_v", value), strict=True)
    ):
        rows, columns = turned(q, at_query, direction), turned(k, at_key, direction)
        scores = rows @ columns.transpose(1, 2) * d_k**-0.5
        powers = (scores - scores.detach().amax(-1, keepdim=True)).exp() * allowed[:, head]
        total = powers.sum(-1, keepdim=True)
        maps.append(powers / (total + (total == 0)))  # a row of zeros stays one
        found.append(maps[-1] @ v)
    output = torch.cat(found, dim=-1) @ exact["w_o.weight"].T + exact.get("w_o.bias", none)
    return output, torch.stack(maps, dim=1)


# --- judging angles and turns ----------------------------------------------------------------


def expect_angles(angles: Tensor, expected: Tensor) -> None:
    # Eight right ways to the angles are off by 3e-7 of their size at most. The room is the same for
    # float64, in which an answer may hold what it computed in float32.
    expect_close(angles, expected, axes=ANGLES, rtol=1e-5, atol=1e-6, what="the angle")


def gap(actual: Tensor, expected: Tensor) -> float:
    """How far an answer is from what is expected; 0 where the shape rules a comparison out."""
    if actual.shape != expected.shape:
        return 0.0
    difference = actual.detach().cpu().double() - expected.detach()
    return float(difference.abs().nan_to_num(1e9).sum())


def nearer_turn(actual: Tensor, x: Tensor, angles: Tensor) -> Tensor:
    """The turn of x in that direction to which the answer is closer."""
    ways = (turned(x, angles, direction) for direction in (1, -1))
    return min(ways, key=lambda way: gap(actual, way))


def nearer_results(
    actual: tuple[Tensor, Tensor], *inputs: Any, **options: Any
) -> tuple[Tensor, Tensor]:
    """The reference for these inputs in that direction to which the output is closer."""
    ways = (reference(*inputs, **options, direction=direction) for direction in (1, -1))
    return min(ways, key=lambda way: gap(actual[0], way[0]))


# --- building modules, inputs and masks ------------------------------------------------------


def random_state(rand: Rand, d_model: int, bias: bool = True) -> dict[str, Tensor]:
    """Weights that keep the size of their input, and biases that matter."""
    state = {}
    for layer in LAYERS:
        state[f"{layer}.weight"] = rand(row=d_model, column=d_model, scale=d_model**-0.5)
        if bias:
            state[f"{layer}.bias"] = rand(row=d_model, scale=0.5)
    return state


def module(submission: Any, state: State, num_heads: int, **options: Any) -> Any:
    """The learner's module with this state, in evaluation mode and on the state's device."""
    weight = state["w_q.weight"]
    mha = submission.RotaryMultiHeadAttention(d_model=len(weight), num_heads=num_heads, **options)
    missing: list[str] = ["?"]
    try:
        missing = mha.load_state_dict(dict(state), strict=False)
    finally:
        if missing:  # the names and shapes say why better than torch does
            found = dict(mha.named_parameters())
            expect_layers(found, len(weight), "w_q.bias" in state, others=True)
    if weight.device.type != "cpu":
        mha.to(weight.device)
    mha.eval()
    return mha


def trained_parameters(mha: Any, d_model: int) -> dict[str, Tensor]:
    """The weights and biases of the four layers, all of them fit for training."""
    found = dict(mha.named_parameters())
    expect_layers(found, d_model, others=True)
    trained = {name: found[name] for name in GRADIENT_AXES}
    frozen = [name for name, tensor in trained.items() if not tensor.requires_grad]
    assert not frozen, f"A frozen parameter cannot learn\n  frozen  {', '.join(frozen)}"
    return trained


def tokens(rand: Rand, B: int, Tq: int, Tk: int, D: int, grad: bool = False) -> list[Tensor]:
    """Query, key and value, three different tensors."""
    return [
        rand(B=B, Tq=Tq, D=D, grad=grad),
        rand(B=B, Tk=Tk, D=D, grad=grad),
        rand(B=B, Tk=Tk, D=D, grad=grad),
    ]


def scattered(rand: Rand, seed: int, **axes: int) -> Tensor:
    """A mask at random, with an allowed and a blocked key in every row."""
    mask = rand(**axes) > 0
    mask[..., seed % mask.shape[-1]] = True
    mask[..., (seed + 1) % mask.shape[-1]] = False
    return mask


# --- judging modules -------------------------------------------------------------------------


def expect_layers(found: State, d_model: int, bias: bool = True, others: bool = False) -> None:
    """Expect the names and shapes of the four layers, and no others unless admitted."""
    wanted: dict[str, tuple[int, ...]] = {}
    for layer in LAYERS:
        wanted[f"{layer}.weight"] = (d_model, d_model)
        if bias:
            wanted[f"{layer}.bias"] = (d_model,)
    missing = [name for name in wanted if name not in found]
    unexpected = [name for name in found if name not in wanted]
    if missing or (unexpected and not others):
        raise CheckFailed(
            f"The names of the parameters are wrong{'' if bias else ' for bias=False'}"
            + (f"\n  missing     {', '.join(missing[:3])}" if missing else "")
            + (f"\n  unexpected  {', '.join(name[:24] for name in unexpected[:3])}" * (not others))
        )
    for name, shape in wanted.items():
        if tuple(found[name].shape) != shape:
            raise CheckFailed(
                f"The shape of {name} is wrong\n"
                f"  expected  {list(shape)}\n"
                f"  got       {list(found[name].shape)}"
            )


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
        one = what.removesuffix("s")  # "The weight ... is wrong at B=0, ..."
        expect_close(got, want, axes=axes, what=one + when, rtol=tolerance, atol=tolerance)


def expect_gradients(actual: Tensor, expected: Tensor, inputs: Mapping[str, Tensor]) -> None:
    """Expect these gradients."""
    axes = {name: axes for name, axes in GRADIENT_AXES.items() if name in inputs}
    expect_gradients_close(actual, expected, inputs, axes=axes)


# --- the angles ------------------------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.parametrize(("T", "d_k"), [(1, 2), (3, 4), (5, 8)])
def test_angles_kind(submission: Any, T: int, d_k: int) -> None:
    """rope_angles gives [T, d_k/2] angles in float32 or float64, on the CPU"""
    angles = submission.rope_angles(seq_len=T, d_k=d_k)
    expect_shape(angles, T=T, pairs=d_k // 2)
    kinds = (torch.float32, torch.float64)
    if angles.dtype not in kinds:
        raise CheckFailed(
            f"The dtype is wrong\n  expected  torch.float32 or torch.float64\n"
            f"  got       {angles.dtype}"
        )
    expect_device(angles, torch.device("cpu"))


@pytest.mark.points(1)
@pytest.mark.parametrize(
    ("T", "d_k", "base"),
    [(2, 4, 100.0), (3, 2, 10000.0), (5, 8, 10000.0), (7, 12, 500.0), (3, 64, 500000.0)],
)
def test_angles(submission: Any, T: int, d_k: int, base: float) -> None:
    """Each pair of each token has the angle of the formula"""
    expect_angles(submission.rope_angles(T, d_k, base=base), exact_angles(T, d_k, base))
    if base == 10000.0:
        expect_angles(submission.rope_angles(T, d_k), exact_angles(T, d_k))


@pytest.mark.points(1)
@pytest.mark.parametrize(("T", "d_k", "offset"), [(3, 4, 0), (3, 4, 1), (2, 6, 7), (4, 10, 990)])
def test_offset(submission: Any, T: int, d_k: int, offset: int) -> None:
    """offset is the position at which the first token stands"""
    expected = exact_angles(T, d_k, 10000.0, offset)
    expect_angles(submission.rope_angles(T, d_k, offset=offset), expected)
    expect_angles(submission.rope_angles(T, d_k, 10000.0, offset), expected)


@pytest.mark.points(1)
@pytest.mark.parametrize("d_k", [3, 1, 7])
def test_odd(submission: Any, d_k: int) -> None:
    """rope_angles refuses an odd number of features"""
    with expect_raises(ValueError, f"{d_k} features cannot be dealt out in pairs"):
        submission.rope_angles(4, d_k)


# --- the turn --------------------------------------------------------------------------------


@pytest.mark.points(2)
@pytest.mark.parametrize(
    ("B", "H", "T", "d_k"), [(1, 1, 2, 2), (2, 3, 4, 6), (3, 2, 5, 8), (2, 5, 1, 4)]
)
@torch.no_grad()
def test_turn(submission: Any, rand: Rand, B: int, H: int, T: int, d_k: int) -> None:
    """Features 2i and 2i+1 turn together and stay in their places"""
    x = rand(B=B, H=H, T=T, d_k=d_k)
    for angles in (rand(T=T, pair=d_k // 2, scale=2.0).cpu(), exact_angles(T, d_k, offset=3)):
        out = submission.apply_rope(x, angles.float())
        expect_close(out, nearer_turn(out, x, angles.float()), axes=TURNED)
    strided = rand(B=B, d_k=d_k, H=H, T=2 * T).permute(0, 2, 3, 1)[:, :, ::2]
    with expect_unchanged(x=strided):
        out = submission.apply_rope(x=strided, angles=angles.float())
    expect_close(out, nearer_turn(out, strided, angles.float()), axes=TURNED)


@pytest.mark.points(1)
@torch.no_grad()
def test_lengths(submission: Any, rand: Rand) -> None:
    """No pair grows or shrinks, and an angle of 0 changes nothing"""
    B, H, T, d_k = 2, 3, 5, 8
    x = rand(B=B, H=H, T=T, d_k=d_k, scale=3.0)
    still = submission.apply_rope(x, torch.zeros(T, d_k // 2))
    expect_close(still, x, axes=TURNED, what="the result for angles of 0")
    out = submission.apply_rope(x, exact_angles(T, d_k).float())
    expect_shape(out, B=B, H=H, T=T, d_k=d_k)
    got, want = (side.unflatten(-1, (-1, 2)).norm(dim=-1) for side in (out, x))
    expect_close(got, want, axes="B H T pair", what="the length of the pair")


@pytest.mark.points(1)
@pytest.mark.parametrize("shift", [1, 17, 400])
@torch.no_grad()
def test_relative(submission: Any, rand: Rand, shift: int) -> None:
    """Scores depend on how far two tokens are apart, not on where they are"""
    B, H, T, d_k = 2, 3, 5, 8
    q, k = rand(B=B, H=H, T=T, d_k=d_k), rand(B=B, H=H, T=T, d_k=d_k)
    scores = []
    for offset in (0, shift):
        angles = submission.rope_angles(T, d_k, offset=offset)
        rows, columns = submission.apply_rope(q, angles), submission.apply_rope(k, angles)
        expect_shape(rows, B=B, H=H, T=T, d_k=d_k)
        scores.append(rows @ columns.transpose(2, 3))
    # float32 holds an angle of 400 to 3e-5 only. Eight right ones are off by 9e-6 at most, relative
    # to 1 and the score.
    what = f"the score of two tokens moved by {shift}"
    expect_close(scores[1], scores[0], axes=WEIGHTS, rtol=1e-4, atol=1e-4, what=what)


@pytest.mark.points(1)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str
)
@torch.no_grad()
def test_turn_dtypes(submission: Any, rand: Rand, device: torch.device, dtype: torch.dtype) -> None:
    """Float64 angles, half-precision features: x decides dtype and device"""
    skip_unless_supported(dtype, device)
    B, H, T, d_k = 2, 3, 4, 6
    x = rand(B=B, H=H, T=T, d_k=d_k, dtype=dtype)
    for angles in (exact_angles(T, d_k).float(), exact_angles(T, d_k)):
        in_columns = angles.mT.contiguous().mT
        with expect_unchanged(x=x, angles=in_columns):
            submission.apply_rope(x, in_columns)
        with expect_unchanged(x=x, angles=angles):
            out = submission.apply_rope(x, angles)
        expect_dtype(out, dtype)
        expect_device(out, device)
        # A turn computed in float32 is no mistake, not even in float64.
        room = 1e-5 if dtype == torch.float64 else None
        expect_close(out, nearer_turn(out, x, angles), axes=TURNED, rtol=room, atol=room)


@pytest.mark.points(1)
def test_turn_gradients(submission: Any, rand: Rand) -> None:
    """The gradient of every feature is right"""
    B, H, T, d_k = 2, 3, 4, 6
    x = rand(B=B, H=H, T=T, d_k=d_k, grad=True)
    angles = exact_angles(T, d_k).float()
    out = submission.apply_rope(x, angles)
    expect_gradients_close(out, nearer_turn(out, x, angles), {"x": x})


# --- the module ------------------------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.parametrize(
    ("B", "Tq", "Tk", "D", "H", "base"),
    [(2, 3, 5, 4, 2, 10000.0), (2, 5, 7, 24, 3, 10000.0), (3, 7, 4, 24, 4, 100.0)],
)
@torch.no_grad()
def test_values(
    submission: Any, rand: Rand, B: int, Tq: int, Tk: int, D: int, H: int, base: float
) -> None:
    """What each head compares is turned by its position from 0 on"""
    state = random_state(rand, D)
    query, key, value = tokens(rand, B, Tq, Tk, D)
    mha = module(submission, state, H) if base == 10000.0 else None
    mha = mha or module(submission, state, H, base=base)
    for inputs in ((query, query, query), (query, key, value)):
        results = mha(*inputs)
        expect_results(results, nearer_results(results, state, H, *inputs, base=base))


@pytest.mark.points(1)
@torch.no_grad()
def test_long(submission: Any, rand: Rand) -> None:
    """Any number of tokens will do, in any order of calls"""
    D, H = 12, 3
    state = random_state(rand, D)
    mha = module(submission, state, H)
    for Tq, Tk in ((2, 3), (3, 900), (700, 2), (2, 3)):
        inputs = tokens(rand, 2, Tq, Tk, D)
        when = f" for {Tq} queries and {Tk} keys"
        results = mha(*inputs)
        expect_results(results, nearer_results(results, state, H, *inputs), when)


@pytest.mark.points(1)
@pytest.mark.parametrize("axes", ["Tq Tk", "B 1 1 Tk", "1 H 1 Tk", "B H Tq Tk"])
@pytest.mark.parametrize(
    ("B", "Tq", "spread"), [(2, 5, 1.0), (2, 1, 1.0), (5, 5, 1.0), (2, 5, 30.0)]
)
@torch.no_grad()
def test_masks(
    submission: Any, rand: Rand, seed: int, axes: str, B: int, Tq: int, spread: float
) -> None:
    """Masks of every shape and dtype hold, True is allowed"""
    Tk, D, H = 7, 12, 3
    place = {"B": B, "H": H, "Tq": Tq, "Tk": Tk}
    state = random_state(rand, D)
    for name in ("w_q.weight", "w_q.bias"):
        state[name] = state[name] * spread
    # A score of some hundred has an error of some 1e-4 in float32, and so have its weights.
    tolerance = 5e-3 if spread > 1 else None
    inputs = tokens(rand, B, Tq, Tk, D)
    shape = {f"axis_{n}": place.get(axis, 1) for n, axis in enumerate(axes.split())}
    mask = scattered(rand, seed, **shape)
    mha = module(submission, state, H)
    dtypes = (torch.bool, torch.int64, torch.float32)
    answers = []
    for dtype in dtypes:
        given = mask.to(dtype, copy=True)
        with expect_unchanged(mask=given):
            answers.append(mha(*inputs, mask=given))
    expected = nearer_results(answers[0], state, H, *inputs, mask)
    for dtype, results in zip(dtypes, answers, strict=True):
        when = f" for a mask [{', '.join(axes.split())}] of {dtype}"
        expect_results(results, expected, when, tolerance)


@pytest.mark.points(1)
@pytest.mark.parametrize("blocked", [False, True], ids=["all rows free", "some rows blocked"])
def test_gradients(submission: Any, rand: Rand, seed: int, blocked: bool) -> None:
    """Gradients are right, and finite where a query may see no key"""
    B, Tq, Tk, D, H = 3, 4, 6, 12, 3
    mha = module(submission, random_state(rand, D), H)
    trained = trained_parameters(mha, D)
    inputs = tokens(rand, B, Tq, Tk, D, grad=True)
    mha.train()  # there is no dropout unless it is asked for
    mask = None
    if blocked:
        mask = scattered(rand, seed, B=B, H=1, Tq=Tq, Tk=Tk)
        mask[:, :, 1] = False
        mask[-1] = False
        nothing = torch.zeros_like(mask)
        results = mha(*inputs, mask=nothing)
        expect_results(results, nearer_results(results, trained, H, *inputs, nothing))
    with expect_unchanged(**({} if mask is None else {"mask": mask})):
        results = mha(*inputs, mask=mask)
    expected = nearer_results(results, trained, H, *inputs, mask)
    expect_results(results, expected)
    leaves = dict(zip(("query", "key", "value"), inputs, strict=True)) | trained
    expect_gradients(results[0], expected[0], leaves)


@pytest.mark.points(1)
@pytest.mark.parametrize("bias", [True, False])
def test_layers(submission: Any, bias: bool) -> None:
    """Four layers with Xavier weights and zero biases, and nothing else"""
    D, H = 96, 4
    mha = submission.RotaryMultiHeadAttention(d_model=D, num_heads=H, bias=bias)
    start = mha.state_dict()
    expect_layers(start, D, bias)
    count = sum(parameter.numel() for parameter in mha.parameters())
    expect_equal(count, 4 * D**2 + 4 * D * bias, f"the number of parameters for D={D}")
    # Over D² entries a right spread is within 0.8 % and a right mean within 1 % of the spread,
    # each with one standard error: what is admitted here is over seven of them.
    for layer in LAYERS:
        weight = start[f"{layer}.weight"].double()
        got, mean = weight.std().item() * D**0.5, weight.mean().item() * D**0.5
        assert is_between(got, 0.94, 1.06) and is_between(mean, -0.09, 0.09), (
            f"The weights of {layer} start with the wrong spread or mean\n"
            f"  expected  a standard deviation of {D**-0.5:.4f} around 0, give or take 6 %\n"
            f"  got       {got * D**-0.5:.4f} around {mean * D**-0.5:.4f}"
        )
        if bias:
            name = f"{layer}.bias"
            expect_close(start[name], torch.zeros(D), axes="row", rtol=0, atol=0, what=name)
    other = submission.RotaryMultiHeadAttention(d_model=D, num_heads=H, bias=bias).state_dict()
    drawn = {
        f"{layer}{of}": each[f"{layer}.weight"]
        for of, each in (("", start), (" of another module", other))
        for layer in LAYERS
    }
    expect_all_different(drawn, "Two layers start with the same weights")


@pytest.mark.points(1)
@pytest.mark.parametrize(("d_model", "num_heads"), [(12, 4), (6, 6), (10, 4)])
def test_sizes(submission: Any, d_model: int, num_heads: int) -> None:
    """The constructor refuses an odd d_k and heads that do not divide"""
    if d_model % num_heads != 0:
        because = f"{d_model} features cannot be split into {num_heads} heads"
    else:
        because = f"The {d_model // num_heads} features of a head cannot be dealt out in pairs"
    with expect_raises(ValueError, because):
        submission.RotaryMultiHeadAttention(d_model=d_model, num_heads=num_heads)


@pytest.mark.points(1)
@torch.no_grad()
def test_calls(submission: Any, rand: Rand, seed: int) -> None:
    """Calls by name and by position agree, and leave nothing behind"""
    B, Tq, Tk, D, H = 2, 5, 7, 12, 3
    state = random_state(rand, D, bias=False)
    query, key, value = tokens(rand, B, Tq, Tk, D)
    mask = scattered(rand, seed, B=B, H=1, Tq=1, Tk=Tk).float()
    mha = submission.RotaryMultiHeadAttention(D, H, 0.0, False, 50.0)
    expect_layers(mha.state_dict(), D, bias=False)
    mha.load_state_dict(state)
    mha.to(query.device)  # and not evaluation mode: with a dropout of 0 there is no difference
    in_columns = [x.mT.contiguous().mT for x in (query, key, value)]
    with expect_unchanged(**dict(zip(("query", "key", "value"), in_columns, strict=True))):
        mha(*in_columns)
    with expect_unchanged(query=query, key=key, value=value, mask=mask):
        calls = {
            " of the call by position": (mha(query, key, value, mask), mask),
            " with no mask after a mask": (mha(query, key, value), None),
            " of the call by keyword": (mha(mask=mask, value=value, key=key, query=query), mask),
        }
    for when, (results, given) in calls.items():
        expected = nearer_results(results, state, H, query, key, value, given, base=50.0)
        expect_results(results, expected, when)


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@torch.no_grad()
def test_dtypes(submission: Any, rand: Rand, device: torch.device, dtype: torch.dtype) -> None:
    """Moved to another dtype, it computes and answers in that dtype"""
    skip_unless_supported(dtype, device)
    B, Tq, Tk, D, H = 2, 5, 4, 12, 3
    rounded = {name: tensor.to(dtype) for name, tensor in random_state(rand, D).items()}
    mha = module(submission, {name: t.float() for name, t in rounded.items()}, H)
    mha.to(dtype)
    inputs = [x.to(dtype) for x in tokens(rand, B, Tq, Tk, D)]
    # Loose, for what is asked is the dtype. Eight right ones are off by 0.007 at most in bfloat16,
    # and by 1e-7 in float64 where the turn is taken in float32, which is no mistake.
    tolerance = 0.05 if dtype == torch.bfloat16 else 1e-5
    with expect_unchanged(**dict(zip(("query", "key", "value"), inputs, strict=True))):
        results = mha(*inputs)
    for result in results:
        expect_dtype(result, dtype)
    expect_results(results, nearer_results(results, rounded, H, *inputs), f" in {dtype}", tolerance)


@pytest.mark.points(1)
@torch.no_grad()
def test_dropout(submission: Any, rand: Rand, device: torch.device) -> None:
    """In training single weights are dropped, the others grow by 1/(1-p)"""
    # With w_v and w_o the identity and a value that is 1 in two features of each head, a weight can
    # be read off the output twice, whatever is returned as weights.
    p, B, H, Tq, Tk = 0.4, 3, 4, 30, 5
    D = H * 2 * Tk
    state = random_state(rand, D, bias=False)
    state["w_v.weight"] = state["w_o.weight"] = torch.eye(D, device=device)
    query, key = rand(B=B, Tq=Tq, D=D), rand(B=B, Tk=Tk, D=D)
    value = torch.eye(Tk, device=device).repeat(B, 1, H * 2)  # [B, Tk, H · 2 · Tk]
    mha = module(submission, state, H, dropout=p, bias=False)
    results = mha(query, key, value)
    output, weights = nearer_results(results, state, H, query, key, value)
    expect_close(results[0], output, axes=OUTPUT, what="the output after eval()")
    plain = module(submission, state, H, bias=False)
    plain.train()
    what = "the output in training with the default dropout"
    expect_close(plain(query, key, value)[0], output, axes=OUTPUT, what=what)
    mha.train()
    dropped, _ = mha(query, key, value)
    expect_sizes(dropped, "the output", B=B, Tq=Tq, D=D)
    seen, twin = dropped.cpu().double().reshape(B, Tq, H, 2, Tk).movedim(1, 3).unbind(2)
    off = seen.abs() < 1e-6
    want = weights.masked_fill(off, 0.0) / (1 - p)
    what = "the weight in training, read off the output,"
    expect_close(seen, want, axes=WEIGHTS, rtol=1e-3, atol=1e-5, what=what)
    expect_close(twin, want, axes=WEIGHTS, rtol=1e-3, atol=1e-5, what=what)
    share = off.double().mean().item()
    assert is_between(share, p - 0.09, p + 0.09), (  # eight standard deviations
        f"dropout={p} drops the wrong share of the weights\n"
        f"  expected  {p:.0%}, give or take 9 %\n"
        f"  got       {share:.0%}"
    )
    axes = ("sequences", "heads", "queries", "keys")
    alike = [name for axis, name in enumerate(axes) if bool((off == off.narrow(axis, 0, 1)).all())]
    assert not alike, (
        f"Dropout treats all {alike[0]} alike\n"
        f"  expected  a draw for each weight\n"
        f"  got       the same draw for all {alike[0]}"
    )


@pytest.mark.points(1, stand_in="values")
@torch.no_grad()
def test_gpu(submission: Any, rand: Rand) -> None:
    """On a GPU too, with angles that come from the CPU"""
    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
    gpu = torch.device("cuda")
    B, Tq, Tk, D, H = 2, 5, 7, 24, 3
    x = rand(B=B, H=H, T=Tq, d_k=D // H).to(gpu)
    angles = exact_angles(Tq, D // H).float()
    out = submission.apply_rope(x, angles)
    expect_device(out, gpu)
    expect_close(out, nearer_turn(out, x, angles), axes=TURNED)
    state = {name: tensor.to(gpu) for name, tensor in random_state(rand, D).items()}
    inputs = [tensor.to(gpu) for tensor in tokens(rand, B, Tq, Tk, D)]
    results = module(submission, state, H)(*inputs)
    for result in results:
        expect_device(result, gpu)
    expect_results(results, nearer_results(results, state, H, *inputs), " on the GPU")
