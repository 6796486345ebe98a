"""Hidden checks of valid_lens: folding heads, and attention against a float64 reference.

`reference` takes one query of one head at a time and the slice of keys that are valid for it, so
neither a mask nor a folded batch is involved. Queries, keys and values differ in their last size.
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
    gpu_or_skip,
    linear_shapes,
    named_parameters,
    skip_unless_supported,
    trained_parameters,
    with_state,
)

LAYERS = ("w_q", "w_k", "w_v", "w_o")
FOLDED = "BH T d_k"
JOINED = "B T D"
OUTPUT = "B Tq D"
ALONG = {"B": "sequences", "Tq": "queries", "H": "heads", "Tk": "keys"}
SIZES = (7, 9, 11)  # of what a query, a key and a value hold
FOLDS = [(2, 1, 4, 2), (2, 5, 12, 3), (3, 2, 8, 4), (1, 4, 6, 1), (2, 3, 5, 5)]

State = Mapping[str, Tensor]


# --- the references --------------------------------------------------------------------------


def folded(x: Tensor, num_heads: int) -> Tensor:
    """Head by head: sequence after sequence, and of each one head after the other."""
    d_k = x.shape[-1] // num_heads
    return torch.stack(
        [sequence[:, head * d_k : (head + 1) * d_k] for sequence in x for head in range(num_heads)]
    )


def joined(x: Tensor, num_heads: int) -> Tensor:
    """The heads of each sequence side by side."""
    return torch.stack(
        [
            torch.cat([x[first + head] for head in range(num_heads)], dim=-1)
            for first in range(0, len(x), num_heads)
        ]
    )


def exact(state: State, layer: str, x: Tensor) -> Tensor:
    """A layer's result for x, in float64 on the CPU."""
    rows = x.cpu().double() @ state[f"{layer}.weight"].cpu().double().T
    bias = state.get(f"{layer}.bias")
    return rows if bias is None else rows + bias.cpu().double()


def reference(
    state: State, num_heads: int, inputs: list[Tensor], lens: Tensor | None = None
) -> Tensor:
    """The output, one head of one query at a time, in float64 on the CPU."""
    q, k, v = (exact(state, layer, x) for layer, x in zip(LAYERS[:3], inputs, strict=True))
    B, Tq, D = q.shape
    d_k = D // num_heads

    def row(b: int, i: int, head: int) -> Tensor:
        own = slice(head * d_k, (head + 1) * d_k)  # this head's features
        end = k.shape[1] if lens is None else int(lens[b] if lens.dim() == 1 else lens[b, i])
        if end == 0:
            return torch.zeros(d_k, dtype=torch.float64)
        scores = (k[b, :end, own] * q[b, i, own]).sum(-1) / d_k**0.5
        weights = (scores - torch.logsumexp(scores, -1)).exp()
        return (weights[:, None] * v[b, :end, own]).sum(0)

    rows = [row(b, i, head) for b in range(B) for i in range(Tq) for head in range(num_heads)]
    return exact(state, "w_o", torch.stack(rows).reshape(B, Tq, D))


# --- building modules and inputs -------------------------------------------------------------


def sizes_in(D: int, sizes: tuple[int, int, int] = SIZES) -> dict[str, int]:
    """How many features each layer is given."""
    return dict(zip(LAYERS, (*sizes, D), strict=True))


def shapes(
    D: int, bias: bool = False, sizes: tuple[int, int, int] = SIZES
) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the parameters after the first call."""
    return linear_shapes({layer: (D, size) for layer, size in sizes_in(D, sizes).items()}, bias)


def module(submission: Submission, state: State, num_heads: int, **options: Any) -> Any:
    """The learner's module with this state, in evaluation mode and on the state's device.

    A state gives lazy layers their sizes, as a first call does.
    """
    attention = submission.ValidLensAttention(
        num_hiddens=len(state["w_q.weight"]),
        num_heads=num_heads,
        bias="w_q.bias" in state,
        **options,
    )
    return with_state(attention, state)


def tokens(
    rand: Rand,
    B: int,
    Tq: int,
    Tk: int,
    sizes: tuple[int, int, int] = SIZES,
    dtype: torch.dtype = torch.float32,
    grad: bool = False,
) -> list[Tensor]:
    """Queries, keys and values with these numbers of features."""
    return [
        rand(B=B, Tq=Tq, size=sizes[0], dtype=dtype, grad=grad),
        rand(B=B, Tk=Tk, size=sizes[1], dtype=dtype, grad=grad),
        rand(B=B, Tk=Tk, size=sizes[2], dtype=dtype, grad=grad),
    ]


# --- judging ---------------------------------------------------------------------------------


def expect_output(actual: Tensor, expected: Tensor, when: str = "", **room: float) -> None:
    """Expect this output."""
    expect_close(actual, expected, axes=OUTPUT, what=f"the output{when}", **room)


# --- the heads in the batch ------------------------------------------------------------------


@pytest.mark.points(2, hint=1)
@pytest.mark.parametrize(("B", "T", "D", "H"), FOLDS)
def test_qkv(submission: Submission, rand: Rand, B: int, T: int, D: int, H: int) -> None:
    """transpose_qkv puts head h of sequence b at b * H + h"""
    x = rand(B=B, T=T, D=D)
    actual = submission.transpose_qkv(x, H)
    expect_shape(actual, BH=B * H, T=T, d_k=D // H)
    expect_close(actual, folded(x, H), axes=FOLDED)


@pytest.mark.points(2, hint=2)
@pytest.mark.parametrize(("B", "T", "D", "H"), FOLDS)
def test_output(submission: Submission, rand: Rand, B: int, T: int, D: int, H: int) -> None:
    """transpose_output lays the heads of each sequence side by side"""
    x = rand(BH=B * H, T=T, d_k=D // H)
    actual = submission.transpose_output(x, H)
    expect_shape(actual, B=B, T=T, D=D)
    expect_close(actual, joined(x, H), axes=JOINED)


@pytest.mark.points(1)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64], ids=str
)
def test_exact(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """Both keep dtype, device and numbers, and do not change the input"""
    skip_unless_supported(dtype, device)
    B, T, D, H = 2, 5, 12, 3
    whole = rand(T=T, B=B, D=D, scale=5.0).transpose(0, 1).to(dtype)
    heads = rand(BH=B * H, d_k=D // H, T=T, scale=5.0).transpose(1, 2).to(dtype)
    for name, x, expected, axes in (
        ("transpose_qkv", whole, folded(whole, H), FOLDED),
        ("transpose_output", heads, joined(heads, H), JOINED),
    ):
        with expect_unchanged(x=x):
            actual = getattr(submission, name)(x, H)
        expect_dtype(actual, dtype)
        expect_device(actual, device)
        expect_close(actual, expected, axes=axes, rtol=0.0, atol=0.0, what=f"{name}'s result")


@pytest.mark.points(1)
def test_fold_gradients(submission: Submission, rand: Rand) -> None:
    """Gradients flow back through both"""
    B, T, D, H = 2, 5, 12, 3
    x = rand(B=B, T=T, D=D, grad=True)
    expect_gradients_close(submission.transpose_qkv(x, H), folded(x, H), {"x": x})
    heads = rand(BH=B * H, T=T, d_k=D // H, grad=True)
    expect_gradients_close(submission.transpose_output(heads, H), joined(heads, H), {"x": heads})


# --- the output ------------------------------------------------------------------------------


@pytest.mark.points(1, hint=5)
@pytest.mark.parametrize(
    ("B", "Tq", "Tk", "D", "H"),
    [
        pytest.param(2, 3, 2, 4, 2, id="small"),
        pytest.param(2, 5, 7, 12, 3, id="more keys"),
        pytest.param(3, 6, 4, 8, 4, id="more queries"),
        pytest.param(1, 1, 1, 6, 3, id="one of all"),
        pytest.param(2, 3, 5, 6, 1, id="one head"),
        pytest.param(2, 3, 5, 6, 6, id="a head per feature"),
        pytest.param(2, 5, 5, 12, 3, id="tokens of one shape"),
    ],
)
@torch.no_grad()
def test_no_lens(
    submission: Submission, rand: Rand, B: int, Tq: int, Tk: int, D: int, H: int
) -> None:
    """Without lengths every query looks at all keys"""
    sizes = SIZES if Tq != Tk else (SIZES[0],) * 3
    state = draw_state(rand, shapes(D, sizes=sizes))
    inputs = tokens(rand, B, Tq, Tk, sizes)
    expected = reference(state, H, inputs)
    attention = module(submission, state, H)
    expect_output(attention(*inputs), expected)
    expect_output(attention(*inputs, None), expected, " for the lengths None")


@pytest.mark.points(2, hint=3)
@pytest.mark.parametrize(
    ("lengths", "Tq", "Tk", "D", "H"),
    [
        ([1, 2], 3, 2, 4, 2),
        ([3, 2], 4, 6, 12, 3),
        ([5, 1, 4], 2, 5, 20, 4),
        ([7, 3], 2, 7, 6, 6),
        pytest.param([4, 6], 3, 6, 12, 2, marks=pytest.mark.random),
    ],
)
@pytest.mark.parametrize("spread", [1.0, 30.0])
@torch.no_grad()
def test_lens(
    submission: Submission,
    rand: Rand,
    device: torch.device,
    lengths: list[int],
    Tq: int,
    Tk: int,
    D: int,
    H: int,
    spread: float,
) -> None:
    """With a length for each sequence, its queries look at that many keys"""
    state = draw_state(rand, shapes(D))
    state["w_q.weight"] = state["w_q.weight"] * spread
    inputs = tokens(rand, len(lengths), Tq, Tk)
    lens = torch.tensor(lengths, device=device)
    expected = reference(state, H, inputs, lens)
    # A score of several hundred has an error of about 1e-4 in float32, and so do its weights.
    tolerance = 5e-3 if spread > 1 else None
    when = f" for lengths {lengths}" + " and large scores" * (spread > 1)
    attention = module(submission, state, H)
    attention.train(spread > 1)  # in which nothing is dropped
    expect_output(attention(*inputs, lens), expected, when, rtol=tolerance, atol=tolerance)


@pytest.mark.points(2, hint=3)
@pytest.mark.parametrize(
    ("lengths", "Tk", "D", "H"),
    [
        ([[1, 2, 1], [2, 1, 2]], 2, 4, 2),
        ([[1, 4, 2, 6], [5, 3, 6, 1]], 6, 12, 3),
        ([[3, 3], [1, 5], [4, 2]], 5, 8, 4),
        ([[2, 4], [3, 1]], 4, 10, 5),  # as many queries as sequences
        ([[2], [5]], 5, 6, 3),  # one query
    ],
)
@torch.no_grad()
def test_query_lens(
    submission: Submission,
    rand: Rand,
    device: torch.device,
    lengths: list[list[int]],
    Tk: int,
    D: int,
    H: int,
) -> None:
    """With a length for each query, it looks at that many keys"""
    state = draw_state(rand, shapes(D))
    inputs = tokens(rand, len(lengths), len(lengths[0]), Tk)
    lens = torch.tensor(lengths, device=device)
    expected = reference(state, H, inputs, lens)
    expect_output(module(submission, state, H)(*inputs, lens), expected, f" for lengths {lengths}")


EMPTY: list[Any] = [[0, 4], [0, 0], [[0, 3, 1], [5, 0, 0]]]


@pytest.mark.points(1, hint=4)
@pytest.mark.parametrize("lengths", EMPTY, ids=str)
@torch.no_grad()
def test_empty(
    submission: Submission, rand: Rand, device: torch.device, lengths: list[Any]
) -> None:
    """A query without a valid key gets zeros from every head, never NaN"""
    D, H, Tq, Tk = 12, 3, 3, 5
    inputs = tokens(rand, 2, Tq, Tk)
    for bias, dtype in ((False, torch.uint8), (True, torch.int64)):
        lens = torch.tensor(lengths, device=device, dtype=dtype)
        state = draw_state(rand, shapes(D, bias))
        expected = reference(state, H, inputs, lens)
        attention = module(submission, state, H)
        attention.train(bias)  # in which nothing is dropped
        expect_output(attention(*inputs, lens), expected, f" for lengths {lengths}, bias={bias},")


@pytest.mark.points(1)
@pytest.mark.parametrize("lengths", [None, [3, 6], *EMPTY], ids=str)
def test_gradients(submission: Submission, rand: Rand, device: torch.device, lengths: Any) -> None:
    """Gradients reach all inputs and layers, and none is NaN"""
    D, H, Tq, Tk = 12, 3, 3, 6
    state = draw_state(rand, shapes(D, bias=True))
    attention = module(submission, state, H)
    trained = trained_parameters(attention, state)
    inputs = tokens(rand, 2, Tq, Tk, grad=True)
    lens = None if lengths is None else torch.tensor(lengths, device=device)
    expected = reference(trained, H, inputs, lens)
    leaves = dict(zip(("queries", "keys", "values"), inputs, strict=True))
    expect_gradients_close(attention(*inputs, lens), expected, {**leaves, **trained})

    state = draw_state(rand, shapes(D, bias=True, sizes=(7, 7, 7)))
    attention = module(submission, state, H)
    trained = trained_parameters(attention, state)
    x, y = rand(B=2, Tq=Tq, size=7), rand(B=2, Tk=Tk, size=7, grad=True)
    given = lens if lens is not None and lens.dim() == 1 else None
    for same in ([x, y, y], [y, y, y]):
        expected = reference(trained, H, same, given)
        expect_gradients_close(attention(*same, given), expected, {"keys": y, **trained})


@pytest.mark.points(1)
@torch.no_grad()
def test_calls(submission: Submission, rand: Rand, device: torch.device) -> None:
    """Arguments work by name, and lengths in any integer dtype"""
    D, H = 12, 3
    state = draw_state(rand, shapes(D))
    attention = module(submission, state, H)
    per_query = [[3, 1, 4], [5, 6, 2]]
    for number, (Tk, lengths, dtype) in enumerate(
        (
            (6, [2, 5], torch.int64),
            (6, None, torch.int64),
            (5, [4, 1], torch.uint8),
            (7, per_query, torch.int16),
            (7, per_query, torch.int32),
            (7, per_query[::-1], torch.int64),
            (6, None, torch.int64),
            (6, [5, 3], torch.int64),
            (6, [4], torch.int64),  # one sequence
            (6, [[2, 5, 1]], torch.int64),
        ),
        start=1,
    ):
        queries, keys, values = tokens(rand, 2 if lengths is None else len(lengths), 3, Tk)
        given = {}
        if lengths is not None:
            given["valid_lens"] = torch.tensor(lengths, device=device, dtype=dtype)
        expected = reference(state, H, [queries, keys, values], given.get("valid_lens"))
        if number == 3:
            queries, keys, values = (x.mT.contiguous().mT for x in (queries, keys, values))
        with expect_unchanged(queries=queries, keys=keys, values=values, **given):
            output = attention(values=values, keys=keys, queries=queries, **given)
        expect_output(output, expected, f" of call {number}")
    submission.ValidLensAttention(num_hiddens=D, num_heads=2 * H)
    expected = reference(state, H, [queries, keys, values])
    expect_output(attention(queries, keys, values), expected, " after another module was made")


@pytest.mark.points(1, hint=5)
@pytest.mark.parametrize("lengths", [[3, 5], [[1, 2, 5, 4, 3], [5, 5, 1, 2, 4]]], ids=str)
@torch.no_grad()
def test_self_attention(
    submission: Submission, rand: Rand, device: torch.device, lengths: list[Any]
) -> None:
    """Self-attention works, and its input is not changed"""
    D, H = 12, 3
    state = draw_state(rand, shapes(D, sizes=(7, 7, 7)))
    x = rand(B=2, T=5, size=7)
    lens = torch.tensor(lengths, device=device)
    attention = module(submission, state, H)
    for _ in range(2):
        with expect_unchanged(queries=x, valid_lens=lens):
            output = attention(x, x, x, lens)
        expected = reference(state, H, [x, x, x], lens)
        expect_output(output, expected, f" of self-attention for lengths {lengths}")


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@torch.no_grad()
def test_dtypes(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """After .to(dtype) the module computes and answers in that dtype"""
    skip_unless_supported(dtype, device)
    D, H, Tq, Tk = 12, 3, 4, 6
    rounded = draw_state(rand, shapes(D), dtype=dtype)
    attention = module(submission, {name: t.float() for name, t in rounded.items()}, H)
    attention.to(dtype)
    inputs = tokens(rand, 2, Tq, Tk, dtype=dtype)
    lens = torch.tensor([3, 0], device=device)
    expected = reference(rounded, H, inputs, lens)
    with expect_unchanged(**dict(zip(("queries", "keys", "values"), inputs, strict=True))):
        output = attention(*inputs, lens)
    expect_dtype(output, dtype)
    # Loose, because only the dtype matters here: bfloat16 rounds at every step (right answers are
    # off by up to 0.007), and a softmax in float32 is not a mistake, not even in float64 (1e-7).
    tolerance = 0.08 if dtype == torch.bfloat16 else 1e-5
    expect_output(output, expected, f" in {dtype}", rtol=tolerance, atol=tolerance)
    dropping = module(submission, rounded, H, dropout=0.5).to(dtype).train()
    expect_dtype(dropping(*inputs, lens), dtype, "the output with dropout")


@pytest.mark.points(1, stand_in="lens")
@torch.no_grad()
def test_gpu(submission: Submission, rand: Rand, device: torch.device) -> None:
    """On a GPU too queries look only at valid keys"""
    gpu = gpu_or_skip(device)
    D, H = 12, 3
    state = {name: tensor.to(gpu) for name, tensor in draw_state(rand, shapes(D)).items()}
    attention = module(submission, state, H)
    inputs = [x.to(gpu) for x in tokens(rand, 2, 3, 6)]
    for lengths in ([3, 2], [[1, 0, 4], [6, 2, 3]]):
        lens = torch.tensor(lengths, device=gpu)
        output = attention(*inputs, lens)
        expect_device(output, gpu)
        expect_output(output, reference(state, H, inputs, lens), " on the GPU")


# --- the layers ------------------------------------------------------------------------------


@pytest.mark.points(1, hint=6)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("D", "H", "sizes"), [(12, 3, (7, 9, 11)), (100, 5, (100, 100, 100))])
@torch.no_grad()
def test_lazy(
    submission: Submission, rand: Rand, D: int, H: int, bias: bool, sizes: tuple[int, int, int]
) -> None:
    """All four layers learn the size of their input from the first call"""
    options = (0.0, True) if bias else ()
    attention = submission.ValidLensAttention(D, H, *options)
    early = named_parameters(attention)
    if early:
        name, parameter = next(iter(early.items()))
        raise CheckFailed(
            f"{name} has a shape before the first call\n"
            f"  expected  no parameter that knows the size of an input\n"
            f"  got       {list(parameter.shape)}"
        )
    inputs = tokens(rand, 2, 4, 6, sizes)
    if inputs[0].device.type != "cpu":
        attention.to(inputs[0].device)
    lens = torch.tensor([3, 2], device=inputs[0].device)
    given = dict(zip(("queries", "keys", "values"), inputs, strict=True))
    with expect_unchanged(**given, valid_lens=lens):
        output = attention(*inputs, lens)

    found = named_parameters(attention)
    wanted = shapes(D, bias, sizes)
    expect_parameters(found, wanted)
    expect_equal(sorted(attention.state_dict()), sorted(wanted), "the list of what is saved")
    frozen = [name for name, parameter in found.items() if not parameter.requires_grad]
    expect_equal(frozen, [], "the list of parameters that cannot learn")
    expect_no_constant(output)  # `found` might be zeros
    expect_output(output, reference(found, H, inputs, lens), " of the first call")
    expect_output(attention(*inputs, lens), output, " of the second call")


@pytest.mark.points(1)
@pytest.mark.parametrize(("num_hiddens", "num_heads"), [(10, 3), (4, 8)])
def test_heads_must_divide(submission: Submission, num_hiddens: int, num_heads: int) -> None:
    """It raises ValueError if num_heads does not divide num_hiddens"""
    because = f"{num_hiddens} features cannot be split into {num_heads} heads"
    submission.ValidLensAttention(num_hiddens=num_hiddens * num_heads, num_heads=num_heads)
    with expect_raises(ValueError, because):
        submission.ValidLensAttention(num_hiddens=num_hiddens, num_heads=num_heads)


# --- dropout ---------------------------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.parametrize("p", [0.5, 0.2])
def test_dropout(submission: Submission, rand: Rand, device: torch.device, p: float) -> None:
    """Dropout drops single weights in training and scales the others up"""
    # w_v writes which key a value belongs to into each head, twice, and w_o is the identity: so
    # every weight can be read off the output twice.
    B, Tq, Tk, H, lengths = 3, 30, 5, 4, [5, 3, 4]
    D = H * 2 * Tk
    sizes = (7, 9, Tk)
    state = {
        "w_q.weight": rand(row=D, column=7, scale=0.5 * 7**-0.5),
        "w_k.weight": rand(row=D, column=9, scale=9**-0.5),
        "w_v.weight": torch.eye(Tk, device=device).repeat(2 * H, 1),
        "w_o.weight": torch.eye(D, device=device),
    }
    queries, keys, _ = tokens(rand, B, Tq, Tk, sizes, grad=True)
    leaves = {"queries": queries, "keys": keys}
    inputs = [queries, keys, torch.eye(Tk, device=device).repeat(B, 1, 1)]
    lens = torch.tensor(lengths, device=device)
    expected = reference(state, H, inputs, lens)

    attention = module(submission, state, H, dropout=p)
    plain = module(submission, state, H)
    plain.train()
    expect_output(plain(*inputs, lens), expected, " with the default dropout")

    whole = reference(state, H, [x.detach() for x in inputs])
    for _ in range(2):
        attention.train()
        for given, full, when in (
            (lens, expected, ""),
            (lens[:, None].expand(B, Tq), expected.detach(), " of [B, Tq]"),
            (None, whole, "out"),
        ):
            output = attention(*inputs, given)
            expect_shape(output, B=B, Tq=Tq, D=D)
            once, again = output.reshape(B, Tq, H, 2, Tk).unbind(3)
            weights = full.reshape(B, Tq, H, 2, Tk)[:, :, :, 0]
            learned = leaves if full.requires_grad else None
            expect_dropped(once, again, weights, p, axes=ALONG, inputs=learned)
            with torch.no_grad():
                first, second = (attention(*inputs, given) for _ in range(2))
            expect_new_draws(first, second, f" with{when} valid lengths")
        attention.eval()
        expect_output(attention(*inputs, lens), expected, " after eval()")
