"""Hidden checks of rope: the angles, the turn, and a module that knows positions.

The references work in float64 with complex numbers. A turn in either direction is right as long as
one result keeps to one of them: a score then tells the distance n - m or m - n, which serves alike.
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
    expect_unchanged,
    expect_xavier_start,
    gpu_or_skip,
    linear_shapes,
    skip_unless_supported,
    trained_parameters,
    with_state,
)

LAYERS = ("w_q", "w_k", "w_v", "w_o")
ANGLES = "T pair"
TURNED = "B H T d_k"
OUTPUT = "B Tq D"
WEIGHTS = "B H Tq Tk"
RESULTS = {"the output": OUTPUT, "the weights": WEIGHTS}
ALONG = {"B": "sequences", "H": "heads", "Tq": "queries", "Tk": "keys"}
State = Mapping[str, Tensor]


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
        maps.append(powers / (total + (total == 0)))  # a row of zeros stays zero
        found.append(maps[-1] @ v)
    output = torch.cat(found, dim=-1) @ exact["w_o.weight"].T + exact.get("w_o.bias", none)
    return output, torch.stack(maps, dim=1)


# --- judging angles and turns ----------------------------------------------------------------


def expect_angles(angles: Tensor, expected: Tensor) -> None:
    # Eight right ways to the angles are off by 3e-7 of their size at most. The room is the same for
    # float64, in which an answer may hold what it computed in float32.
    expect_close(angles, expected, axes=ANGLES, rtol=1e-5, atol=1e-6, what="the tensor of angles")


def gap(actual: Tensor, expected: Tensor) -> float:
    """How far an answer is from the expected one; 0 if the shape rules out a comparison."""
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


def shapes(D: int, bias: bool = True) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the parameters of four layers from D to D."""
    return linear_shapes(dict.fromkeys(LAYERS, (D, D)), bias)


def module(submission: Submission, state: State, num_heads: int, **options: Any) -> Any:
    """The learner's module with this state, in evaluation mode and on the state's device."""
    d_model = len(state["w_q.weight"])
    mha = submission.RotaryMultiHeadAttention(d_model=d_model, num_heads=num_heads, **options)
    return with_state(mha, state)


def tokens(rand: Rand, B: int, Tq: int, Tk: int, D: int, grad: bool = False) -> list[Tensor]:
    """Query, key and value, three different tensors."""
    return [
        rand(B=B, Tq=Tq, D=D, grad=grad),
        rand(B=B, Tk=Tk, D=D, grad=grad),
        rand(B=B, Tk=Tk, D=D, grad=grad),
    ]


# --- judging modules -------------------------------------------------------------------------


def expect_both(
    actual: Any, expected: tuple[Tensor, Tensor], when: str = "", room: float | None = None
) -> None:
    """Expect this output and these weights."""
    expect_results(actual, expected, RESULTS, when, rtol=room, atol=room)


# --- the angles ------------------------------------------------------------------------------


@pytest.mark.points(1, hint=1)
@pytest.mark.pays("zeros", "ones", because="only the shape, dtype and device are checked")
@pytest.mark.parametrize(("T", "d_k"), [(1, 2), (3, 4), (5, 8)])
def test_angles_kind(submission: Submission, T: int, d_k: int) -> None:
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


@pytest.mark.points(1, hint=2)
@pytest.mark.parametrize(
    ("T", "d_k", "base"),
    [(2, 4, 100.0), (3, 2, 10000.0), (5, 8, 10000.0), (7, 12, 500.0), (3, 64, 500000.0)],
)
def test_angles(submission: Submission, T: int, d_k: int, base: float) -> None:
    """The angles are those of the formula"""
    expect_angles(submission.rope_angles(T, d_k, base=base), exact_angles(T, d_k, base))
    if base == 10000.0:
        expect_angles(submission.rope_angles(T, d_k), exact_angles(T, d_k))


@pytest.mark.points(1, hint=2)
@pytest.mark.parametrize(("T", "d_k", "offset"), [(3, 4, 0), (3, 4, 1), (2, 6, 7), (4, 10, 990)])
def test_offset(submission: Submission, T: int, d_k: int, offset: int) -> None:
    """offset is the position of the first token"""
    expected = exact_angles(T, d_k, 10000.0, offset)
    expect_angles(submission.rope_angles(T, d_k, offset=offset), expected)
    expect_angles(submission.rope_angles(T, d_k, 10000.0, offset), expected)


@pytest.mark.points(1, hint=1)
@pytest.mark.parametrize("d_k", [3, 1, 7])
def test_odd(submission: Submission, d_k: int) -> None:
    """rope_angles raises ValueError for an odd d_k"""
    with expect_raises(ValueError, f"{d_k} features cannot be split into pairs"):
        submission.rope_angles(4, d_k)
    angles = submission.rope_angles(4, 2 * d_k)
    expect_equal(angles.numel(), 4 * d_k, "the number of angles for an even number of features")


# --- the turn --------------------------------------------------------------------------------


@pytest.mark.points(1, hint=3)
@pytest.mark.parametrize(
    ("B", "H", "T", "d_k"), [(1, 1, 2, 2), (2, 3, 4, 6), (3, 2, 5, 8), (2, 5, 1, 4)]
)
@torch.no_grad()
def test_turn(submission: Submission, rand: Rand, B: int, H: int, T: int, d_k: int) -> None:
    """Features 2i and 2i+1 are turned together and keep their places"""
    x = rand(B=B, H=H, T=T, d_k=d_k)
    for angles in (rand(T=T, pair=d_k // 2, scale=2.0).cpu(), exact_angles(T, d_k, offset=3)):
        out = submission.apply_rope(x, angles.float())
        expect_close(out, nearer_turn(out, x, angles.float()), axes=TURNED)


@pytest.mark.points(1, hint=5)
@pytest.mark.parametrize("layout", ["heads split off", "every second token"])
@torch.no_grad()
def test_turn_strided(submission: Submission, rand: Rand, layout: str) -> None:
    """A strided view gives the same result as its copy"""
    B, H, T, d_k = 2, 3, 5, 8
    if layout == "heads split off":
        x = rand(B=B, T=T, H=H, d_k=d_k).transpose(1, 2)
    else:
        x = rand(B=B, H=H, T=2 * T, d_k=d_k)[:, :, ::2]
    angles = exact_angles(T, d_k, offset=3).float()
    with expect_unchanged(x=x):
        out = submission.apply_rope(x=x, angles=angles)
    what = f"the result for a strided x ({layout})"
    expect_close(out, nearer_turn(out, x, angles), axes=TURNED, what=what)


@pytest.mark.points(1, hint=4)
@torch.no_grad()
def test_lengths(submission: Submission, rand: Rand) -> None:
    """Every pair keeps its length, and an angle of 0 changes nothing"""
    B, H, T, d_k = 2, 3, 5, 8
    x = rand(B=B, H=H, T=T, d_k=d_k, scale=3.0)
    still = submission.apply_rope(x, torch.zeros(T, d_k // 2))
    expect_close(still, x, axes=TURNED, what="the result for angles of 0")
    out = submission.apply_rope(x, exact_angles(T, d_k).float())
    expect_shape(out, B=B, H=H, T=T, d_k=d_k)
    expect_no_constant(out, x=x)
    got, want = (side.unflatten(-1, (-1, 2)).norm(dim=-1) for side in (out, x))
    expect_close(got, want, axes="B H T pair", what="the length of the pair")


@pytest.mark.points(1, hint=6)
@pytest.mark.parametrize("shift", [1, 17, 400])
@torch.no_grad()
def test_relative(submission: Submission, rand: Rand, shift: int) -> None:
    """Scores depend on the distance of two tokens, not on their positions"""
    B, H, T, d_k = 2, 3, 5, 8
    q, k = rand(B=B, H=H, T=T, d_k=d_k), rand(B=B, H=H, T=T, d_k=d_k)
    scores, turned = [], {}
    for offset in (0, shift):
        angles = submission.rope_angles(T, d_k, offset=offset)
        rows, columns = submission.apply_rope(q, angles), submission.apply_rope(k, angles)
        for turned_rows in (rows, columns):
            expect_shape(turned_rows, B=B, H=H, T=T, d_k=d_k)
        scores.append(rows @ columns.transpose(2, 3))
        turned[f"q from position {offset} on"] = rows
    expect_all_different(turned, "Tokens at other positions are turned alike")
    # float32 holds an angle of 400 to 3e-5 only. Eight right ones are off by 9e-6 at most, relative
    # to 1 and the score.
    what = f"the score of two tokens moved by {shift}"
    expect_close(scores[1], scores[0], axes=WEIGHTS, rtol=1e-4, atol=1e-4, what=what)


@pytest.mark.points(1)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str
)
@torch.no_grad()
def test_turn_dtypes(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """The result has x's dtype and device, whatever the dtype of the angles"""
    skip_unless_supported(dtype, device)
    B, H, T, d_k = 2, 3, 4, 6
    x = rand(B=B, H=H, T=T, d_k=d_k, dtype=dtype)
    for angles in (exact_angles(T, d_k).float(), exact_angles(T, d_k)):
        with expect_unchanged(x=x, angles=angles):
            out = submission.apply_rope(x, angles)
        expect_dtype(out, dtype)
        expect_device(out, device)
        # A turn computed in float32 is not a mistake, not even in float64.
        room = 1e-5 if dtype == torch.float64 else None
        expect_close(out, nearer_turn(out, x, angles), axes=TURNED, rtol=room, atol=room)


@pytest.mark.points(1, hint=4)
def test_turn_gradients(submission: Submission, rand: Rand) -> None:
    """The gradient of every feature is right"""
    B, H, T, d_k = 2, 3, 4, 6
    x = rand(B=B, H=H, T=T, d_k=d_k, grad=True)
    angles = exact_angles(T, d_k).float()
    out = submission.apply_rope(x, angles)
    expect_gradients_close(out, nearer_turn(out, x, angles), {"x": x})


# --- the module ------------------------------------------------------------------------------


@pytest.mark.points(1, hint=6)
@pytest.mark.parametrize(
    ("B", "Tq", "Tk", "D", "H", "base"),
    [
        (2, 3, 5, 4, 2, 10000.0),
        (2, 5, 7, 24, 3, 10000.0),
        (3, 7, 4, 24, 4, 100.0),
        (2, 5, 5, 12, 3, 10000.0),
        (1, 3, 1, 12, 1, 10000.0),
    ],
)
@torch.no_grad()
def test_values(
    submission: Submission, rand: Rand, B: int, Tq: int, Tk: int, D: int, H: int, base: float
) -> None:
    """Queries and keys are turned by their positions, starting at 0"""
    state = draw_state(rand, shapes(D))
    query, key, value = tokens(rand, B, Tq, Tk, D)
    mha = module(submission, state, H) if base == 10000.0 else None
    mha = mha or module(submission, state, H, base=base)
    for inputs in ((query, query, query), (query, key, value)):
        results = mha(*inputs)
        expect_both(results, nearer_results(results, state, H, *inputs, base=base))


@pytest.mark.points(1)
@torch.no_grad()
def test_long(submission: Submission, rand: Rand) -> None:
    """It works for any number of tokens, in any order of calls"""
    D, H = 12, 3
    state = draw_state(rand, shapes(D))
    mha = module(submission, state, H)
    for Tq, Tk in ((2, 3), (3, 900), (700, 2), (2, 3)):
        inputs = tokens(rand, 2, Tq, Tk, D)
        when = f" for {Tq} queries and {Tk} keys"
        results = mha(*inputs)
        expect_both(results, nearer_results(results, state, H, *inputs), when)


@pytest.mark.points(1)
@pytest.mark.parametrize("axes", ["Tq Tk", "H Tq Tk", "B 1 1 Tk", "1 H 1 Tk", "B H Tq Tk"])
@pytest.mark.parametrize(
    ("B", "Tq", "spread"), [(2, 5, 1.0), (2, 1, 1.0), (5, 5, 1.0), (2, 5, 30.0), (2, 5, 0.0)]
)
@torch.no_grad()
def test_masks(
    submission: Submission, rand: Rand, seed: int, axes: str, B: int, Tq: int, spread: float
) -> None:
    """Masks of every shape and dtype work"""
    itself = Tq == B  # self-attention
    Tk, D, H = 5 if itself else 7, 12, 3
    place = {"B": B, "H": H, "Tq": Tq, "Tk": Tk}
    state = draw_state(rand, shapes(D))
    for name in ("w_q.weight", "w_q.bias"):
        state[name] = state[name] * spread
    # A score of several hundred has an error of about 1e-4 in float32, and so do its weights.
    tolerance = 5e-3 if spread > 1 else None
    inputs = [rand(B=B, T=Tq, D=D)] * 3 if itself else tokens(rand, B, Tq, Tk, D)
    shape = {f"axis_{n}": place.get(axis, 1) for n, axis in enumerate(axes.split())}
    mask = draw_truths(rand, seed, **shape)
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
        when += " and scores of 0" * (spread == 0)
        expect_both(results, expected, when, tolerance)


@pytest.mark.points(1)
@pytest.mark.parametrize("blocked", [False, True], ids=["all rows free", "some rows blocked"])
def test_gradients(submission: Submission, rand: Rand, seed: int, blocked: bool) -> None:
    """Gradients are right, and finite where a query may see no key"""
    B, Tq, Tk, D, H = 3, 4, 6, 12, 3
    state = draw_state(rand, shapes(D))
    mha = module(submission, state, H)
    trained = trained_parameters(mha, state)
    inputs = tokens(rand, B, Tq, Tk, D, grad=True)
    mha.train(blocked)  # by default there is no dropout
    mask = None
    if blocked:
        mask = draw_truths(rand, seed, B=B, H=1, Tq=Tq, Tk=Tk)
        mask[:, :, 1] = False
        mask[-1] = False
        nothing = torch.zeros_like(mask)
        for given in (nothing, nothing[0, 0], nothing.float()):
            results = mha(*inputs, mask=given)
            expected = nearer_results(results, trained, H, *inputs, given)
            expect_both(results, expected, f" for a mask of zeros in {given.dtype}")
    with expect_unchanged(**({} if mask is None else {"mask": mask})):
        results = mha(*inputs, mask=mask)
    expected = nearer_results(results, trained, H, *inputs, mask)
    expect_both(results, expected)
    leaves = dict(zip(("query", "key", "value"), inputs, strict=True)) | trained
    expect_gradients_close(results[0], expected[0], leaves)
    query, key, _ = inputs
    for same in ((query, key, key), (key, key, key)):
        given = None if mask is None else mask[:, :, :1]
        results = mha(*same, mask=given)
        expected = nearer_results(results, trained, H, *same, given)
        expect_gradients_close(results[0], expected[0], {"key": key, **trained})


@pytest.mark.points(1)
@pytest.mark.parametrize("bias", [True, False])
def test_layers(submission: Submission, bias: bool) -> None:
    """It has four layers with Xavier weights and zero biases, and no others"""
    D, H = 96, 4
    mha = submission.RotaryMultiHeadAttention(d_model=D, num_heads=H, bias=bias)
    start = mha.state_dict()
    expect_parameters(start, shapes(D, bias), where="state_dict()")
    count = sum(parameter.numel() for parameter in mha.parameters())
    expect_equal(count, 4 * D**2 + 4 * D * bias, f"the number of parameters for D={D}")
    other = submission.RotaryMultiHeadAttention(d_model=D, num_heads=H, bias=bias).state_dict()
    expect_xavier_start(start, other, shapes(D, bias))


@pytest.mark.points(1)
@pytest.mark.parametrize(("d_model", "num_heads"), [(12, 4), (6, 6), (10, 4)])
def test_sizes(submission: Submission, d_model: int, num_heads: int) -> None:
    """The constructor raises ValueError for an odd d_k or indivisible sizes"""
    if d_model % num_heads != 0:
        because = f"{d_model} features cannot be split into {num_heads} heads"
    else:
        because = f"The {d_model // num_heads} features of a head cannot be split into pairs"
    submission.RotaryMultiHeadAttention(d_model=2 * d_model * num_heads, num_heads=num_heads)
    with expect_raises(ValueError, because):
        submission.RotaryMultiHeadAttention(d_model=d_model, num_heads=num_heads)


@pytest.mark.points(1)
@torch.no_grad()
def test_calls(submission: Submission, rand: Rand, seed: int) -> None:
    """Calls by name and by position agree, and do not affect each other"""
    B, Tq, Tk, D, H = 2, 5, 7, 12, 3
    state = draw_state(rand, shapes(D, bias=False))
    query, key, value = tokens(rand, B, Tq, Tk, D)
    mask = draw_truths(rand, seed, B=B, H=1, Tq=1, Tk=Tk).float()
    mha = submission.RotaryMultiHeadAttention(D, H, 0.0, False, 50.0)
    expect_parameters(mha.state_dict(), shapes(D, bias=False), where="state_dict()")
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
        expect_both(results, expected, when)


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@torch.no_grad()
def test_dtypes(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """After .to(dtype) the module computes and answers in that dtype"""
    skip_unless_supported(dtype, device)
    B, Tq, Tk, D, H = 2, 5, 4, 12, 3
    rounded = {name: tensor.to(dtype) for name, tensor in draw_state(rand, shapes(D)).items()}
    mha = module(submission, {name: t.float() for name, t in rounded.items()}, H)
    inputs = tokens(rand, B, Tq, Tk, D)
    mha(*inputs)  # of which nothing in float32 may stay
    mha.to(dtype)
    inputs = [x.to(dtype) for x in inputs]
    # Loose, because only the dtype matters here. Eight right ones are off by 0.007 at most in
    # bfloat16, and by 1e-7 in float64 where the turn is taken in float32, which is not a mistake.
    tolerance = 0.05 if dtype == torch.bfloat16 else 1e-5
    with expect_unchanged(**dict(zip(("query", "key", "value"), inputs, strict=True))):
        without = mha(*inputs)
    mask = torch.arange(Tk, device=device).reshape(1, 1, 1, Tk) != 2
    for results, given in (without, None), (mha(*inputs, mask=mask), mask):
        for result in results:
            expect_dtype(result, dtype)
        expected = nearer_results(results, rounded, H, *inputs, given)
        expect_both(results, expected, f" in {dtype}", tolerance)
    for result in module(submission, rounded, H, dropout=0.5).to(dtype).train()(*inputs):
        expect_dtype(result, dtype, "what comes of dropout")


@pytest.mark.points(1)
def test_dropout(submission: Submission, rand: Rand, device: torch.device) -> None:
    """Dropout drops single weights in training and scales the others up"""
    # With w_v and w_o the identity and a value that is 1 in two features of each head, a weight can
    # be read off the output twice, whatever is returned as weights.
    p, B, H, Tq, Tk = 0.4, 3, 4, 30, 5
    D = H * 2 * Tk
    state = draw_state(rand, shapes(D, bias=False))
    state["w_v.weight"] = state["w_o.weight"] = torch.eye(D, device=device)
    query, key = rand(B=B, Tq=Tq, D=D, grad=True), rand(B=B, Tk=Tk, D=D, grad=True)
    leaves = {"query": query, "key": key}
    value = torch.eye(Tk, device=device).repeat(B, 1, H * 2)  # [B, Tk, H · 2 · Tk]
    plain = module(submission, state, H, bias=False)
    output, _ = nearer_results(plain(query, key, value), state, H, query, key, value)
    plain.train()
    what = "the output in training with the default dropout"
    expect_close(plain(query, key, value)[0], output, axes=OUTPUT, what=what)
    mha = module(submission, state, H, dropout=p, bias=False)
    mask = torch.arange(Tk, device=device).reshape(1, 1, 1, Tk) != 2
    for given in (None, mask):
        # A wrong mask costs points in other checks: here the module's own results are the norm.
        full = output if given is None else plain(query, key, value, given)[0]
        expect_shape(full, "the output", B=B, Tq=Tq, D=D)
        weights = full.reshape(B, Tq, H, 2, Tk).movedim(1, 3)[:, :, 0]
        mha.train()
        dropped, returned = mha(query, key, value, given)
        expect_shape(dropped, "the output", B=B, Tq=Tq, D=D)
        once, again = dropped.reshape(B, Tq, H, 2, Tk).movedim(1, 3).unbind(2)
        expect_dropped(once, again, weights, p, axes=ALONG, inputs=leaves, returned=returned)
        first, second = (mha(query, key, value, mask)[0] for _ in range(2))
        expect_new_draws(first, second, " with a mask")
        first, second = (mha(query, query, query)[0] for _ in range(2))
        expect_new_draws(first, second, " of self-attention")
        mha.eval()
        still = mha(query, key, value)[0]
        expect_close(still, output, axes=OUTPUT, what="the output after eval()")


@pytest.mark.points(1, stand_in="values")
@torch.no_grad()
def test_gpu(submission: Submission, rand: Rand, device: torch.device) -> None:
    """It works on a GPU, with angles made on the CPU"""
    gpu = gpu_or_skip(device)
    B, Tq, Tk, D, H = 2, 5, 7, 24, 3
    x = rand(B=B, H=H, T=Tq, d_k=D // H).to(gpu)
    angles = exact_angles(Tq, D // H).float()
    out = submission.apply_rope(x, angles)
    expect_device(out, gpu)
    expect_close(out, nearer_turn(out, x, angles), axes=TURNED)
    state = {name: tensor.to(gpu) for name, tensor in draw_state(rand, shapes(D)).items()}
    inputs = [tensor.to(gpu) for tensor in tokens(rand, B, Tq, Tk, D)]
    results = module(submission, state, H)(*inputs)
    for result in results:
        expect_device(result, gpu)
    expect_both(results, nearer_results(results, state, H, *inputs), " on the GPU")
