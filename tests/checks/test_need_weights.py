"""Hidden checks of need_weights: one output for both ways to call, and no weights left behind.

`reference` computes the attention of one head at a time in float64 on the CPU. The worker
reports the shapes of the tensors that a module holds: for the sizes used here no other tensor that
a module may keep has a multiple of Tq x Tk numbers. Because the worker may lie, a check also tries
large weights, in a new process whose size the kernel reports.
"""

from __future__ import annotations

import math
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
    linear_shapes,
    skip_unless_supported,
    trained_parameters,
    with_state,
)

LAYERS = ("w_q", "w_k", "w_v", "w_o")
OUTPUT = "B Tq D"
WEIGHTS = "B H Tq Tk"
ALONG = {"B": "sequences", "H": "heads", "Tq": "queries", "Tk": "keys"}
B, TQ, TK, D, H = 2, 5, 7, 12, 3

State = Mapping[str, Tensor]


# --- the reference ---------------------------------------------------------------------------


def reference(
    state: State, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, H: int = H
) -> tuple[Tensor, Tensor]:
    """Output and weights, one head at a time, in float64 on the CPU."""
    exact = {name: tensor.cpu().double() for name, tensor in state.items()}
    d_k = query.shape[-1] // H
    none = torch.zeros((), dtype=torch.float64)

    def project(layer: str, x: Tensor) -> Tensor:
        rows = x.cpu().double() @ exact[f"{layer}.weight"].T
        return rows + exact.get(f"{layer}.bias", none)

    q, k, v = project("w_q", query), project("w_k", key), project("w_v", value)
    allowed = torch.ones((), dtype=torch.bool) if mask is None else (mask != 0).cpu()
    allowed = allowed.expand(len(q), H, q.shape[1], k.shape[1])
    output = exact.get("w_o.bias", none)
    maps = []
    for head in range(H):
        own = slice(head * d_k, (head + 1) * d_k)
        scores = q[..., own] @ k[..., own].transpose(1, 2) / d_k**0.5
        powers = (scores - scores.detach().amax(-1, keepdim=True)).exp() * allowed[:, head]
        total = powers.sum(-1, keepdim=True)
        weights = powers / (total + (total == 0))  # a row of zeros stays zero
        output = output + weights @ v[..., own] @ exact["w_o.weight"][:, own].T
        maps.append(weights)
    return output, torch.stack(maps, dim=1)


# --- building modules, inputs and masks ------------------------------------------------------


def shapes(D: int = D, bias: bool = True) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the parameters of four layers from D to D."""
    return linear_shapes(dict.fromkeys(LAYERS, (D, D)), bias)


def module(submission: Submission, state: State, H: int = H, **options: Any) -> Any:
    """The learner's module with this state, in evaluation mode and on the state's device."""
    d_model = len(state["w_q.weight"])
    mha = submission.OptionalWeightsAttention(d_model=d_model, num_heads=H, **options)
    return with_state(mha, state)


def inputs(rand: Rand, B: int = B, Tq: int = TQ, Tk: int = TK, grad: bool = False) -> list[Tensor]:
    """Query, key and value, three different tensors."""
    return [
        rand(B=B, Tq=Tq, D=D, grad=grad),
        rand(B=B, Tk=Tk, D=D, grad=grad),
        rand(B=B, Tk=Tk, D=D, grad=grad),
    ]


def partly_blocked(rand: Rand, device: torch.device) -> Tensor:
    """[B, 1, Tq, Tk]: at random, one query sees nothing, one all."""
    mask = rand(B=B, one=1, Tq=TQ, Tk=TK) > 0
    mask[..., 2] = True
    mask[0, :, 1] = False
    mask[1, :, 3] = True
    return mask.to(device)


# --- judging ---------------------------------------------------------------------------------


def expect_weights(weights: Any, when: str = "") -> Tensor:
    """The weights; they must be a tensor, because the call asked for them."""
    if not isinstance(weights, Tensor):
        raise CheckFailed(
            f"The weights are missing{when}\n"
            f"  expected  a torch.Tensor, the second of two results\n"
            f"  got       {weights!r:.60}"
        )
    return weights


def expect_none(weights: Any, when: str = " with need_weights=False") -> None:
    """Expect None instead of the weights."""
    if weights is not None:
        got = f"a tensor of shape {list(weights.shape)}" if isinstance(weights, Tensor) else weights
        raise CheckFailed(f"The second result is wrong{when}\n  expected  None\n  got       {got}")


def expect_both(
    actual: tuple[Tensor, Any],
    expected: tuple[Tensor, Tensor],
    when: str,
    *,
    need: bool,
    room: float | None = None,
) -> None:
    """Expect this output, and these weights or, without `need`, None."""
    output, weights = actual
    expect_close(output, expected[0], axes=OUTPUT, what=f"the output{when}", rtol=room, atol=room)
    if not need:
        expect_none(weights, when)
        return
    weights = expect_weights(weights, when)
    expect_close(weights, expected[1], axes=WEIGHTS, what=f"the weight{when}", rtol=room, atol=room)


def expect_little_held(held: int, Tq: int, Tk: int, when: str) -> None:
    """Expect the module to hold less than three quarters of the memory of one head's weights."""
    least = 3 * Tq * Tk
    if held >= least:
        raise CheckFailed(
            f"The process that ran your module keeps too much memory {when}\n"
            f"  expected  less than {least / 2**20:.1f} MiB: no weights of {Tq} x {Tk} numbers\n"
            f"  got       {held / 2**20:.1f} MiB"
        )


def long_inputs(rand: Rand) -> list[Tensor]:
    """A long sequence on the CPU, of random length, so that the length reveals nothing."""
    # Right answers hold up to 4 MiB: libraries keep memory for matrix products.
    more, still_more = rand(T=2).abs().tolist()
    return [x.cpu() for x in inputs(rand, 1, 700 + int(35 * more), 4500 + int(200 * still_more))]


def expect_some_rows(output: Tensor, state: State, given: list[Tensor], H: int = H) -> None:
    """Expect the right output for every fiftieth query."""
    query, key, value = given
    expected = reference(state, query[:, ::50], key, value, H=H)[0]
    expect_close(output[:, ::50], expected, axes=OUTPUT, what="the output for long sequences")


def expect_nothing_left(submission: Submission, mha: Any, Tq: int, Tk: int, when: str) -> None:
    """Expect the module to hold no tensor of Tq x Tk numbers, whatever else it holds."""
    for shape in submission.held_by(mha):
        if math.prod(shape) % (Tq * Tk) == 0:  # in whatever order and folding of the axes
            raise CheckFailed(
                f"The module keeps a tensor of the size of the weights {when}\n"
                f"  expected  nothing that holds {Tq} x {Tk} numbers (Tq x Tk) for a head\n"
                f"  got       a tensor of shape {list(shape)} within the module"
            )


# --- with the weights ------------------------------------------------------------------------


@pytest.mark.points(1, hint=1)
@pytest.mark.pays("zeros", "ones", because="only the shape, dtype and device are checked")
@torch.no_grad()
def test_shapes(submission: Submission, rand: Rand, device: torch.device) -> None:
    """By default it returns output [B, Tq, D] and weights [B, H, Tq, Tk]"""
    mha = module(submission, draw_state(rand, shapes()))
    output, weights = mha(*inputs(rand))
    weights = expect_weights(weights)
    expect_shape(output, B=B, Tq=TQ, D=D)
    expect_shape(weights, B=B, H=H, Tq=TQ, Tk=TK)
    for result in (output, weights):
        expect_dtype(result, torch.float32)
        expect_device(result, device)


@pytest.mark.points(1)
@pytest.mark.parametrize("bias", [True, False])
def test_layers(submission: Submission, bias: bool) -> None:
    """It has the layers w_q, w_k, w_v and w_o, and no other parameters"""
    mha = submission.OptionalWeightsAttention(D, H, 0.0, bias)
    expect_parameters(dict(mha.named_parameters()), shapes(D, bias))
    expect_parameters(mha.state_dict(), shapes(D, bias), where="state_dict()")
    count = sum(parameter.numel() for parameter in mha.parameters())
    expect_equal(count, 4 * D**2 + 4 * D * bias, f"the number of parameters for D={D}")


@pytest.mark.points(1)
@pytest.mark.parametrize(("d_model", "num_heads"), [(10, 3), (4, 8)])
def test_heads_must_divide(submission: Submission, d_model: int, num_heads: int) -> None:
    """The constructor raises ValueError if num_heads does not divide d_model"""
    submission.OptionalWeightsAttention(d_model=d_model * num_heads, num_heads=num_heads)
    with expect_raises(ValueError, f"{d_model} features cannot be split into {num_heads} heads"):
        submission.OptionalWeightsAttention(d_model=d_model, num_heads=num_heads)


@pytest.mark.points(1)
def test_start(submission: Submission) -> None:
    """Weights start with Xavier values, biases at 0"""
    D, H = 192, 6
    one, other = (submission.OptionalWeightsAttention(d_model=D, num_heads=H) for _ in range(2))
    expect_xavier_start(one.state_dict(), other.state_dict(), shapes(D))


# --- without ---------------------------------------------------------------------------------


@pytest.mark.points(1, hint=1)
@pytest.mark.pays("zeros", "ones", because="only the absence of weights is checked")
@pytest.mark.parametrize("kind", ["no mask", "mask"])
@torch.no_grad()
def test_none(submission: Submission, rand: Rand, device: torch.device, kind: str) -> None:
    """With need_weights=False it returns None instead of the weights"""
    mha = module(submission, draw_state(rand, shapes()))
    mask = None if kind == "no mask" else partly_blocked(rand, device)
    output, weights = mha(*inputs(rand), mask=mask, need_weights=False)
    expect_shape(output, B=B, Tq=TQ, D=D)
    expect_none(weights)


@pytest.mark.points(1, hint=5)
@pytest.mark.parametrize(
    "kind",
    [
        *("no mask", "mask", "numbers", "without biases", "other layout", "padding"),
        *("self-attention", "self-attention under a causal mask", "large scores", "scores of 0"),
        *("one query", "a mask for each head", "as many heads as sequences", "nothing allowed"),
        *("as many queries as sequences", "as many keys as queries"),
    ],
)
@torch.no_grad()
def test_same_output(submission: Submission, rand: Rand, device: torch.device, kind: str) -> None:
    """The output is right with and without the weights"""
    state = draw_state(rand, shapes(bias=kind != "without biases"))
    factor = {"large scores": 30, "scores of 0": 0}.get(kind, 1)
    state |= {name: state[name] * factor for name in state if name.startswith("w_q")}
    mha = module(submission, state, bias=kind != "without biases")
    as_many = {"as many queries as sequences": TQ, "as many heads as sequences": H}
    query, key, value = inputs(rand, as_many.get(kind, B))
    mask = None
    if kind in ("mask", "numbers", "large scores", "scores of 0"):
        mask = partly_blocked(rand, device).to(torch.float32 if kind == "numbers" else torch.bool)
    if kind == "as many queries as sequences":
        mask = partly_blocked(rand, device)[1, 0]
    if kind == "one query":
        query, mask = query[:, :1], torch.arange(TK, device=device)[None] % 3 == 1
    if kind == "a mask for each head":
        skip_unless_supported(torch.float64, device)
        mask = (rand(B=B, H=H, Tq=TQ, Tk=TK) > 0).to(torch.float64)
    if kind == "as many heads as sequences":
        mask = rand(H=H, Tq=TQ, Tk=TK) > 0
    if kind == "nothing allowed":
        mask = torch.zeros(TQ, TK, dtype=torch.bool, device=device)
    if kind == "other layout":
        query, key, value = (x.mT.contiguous().mT for x in (query, key, value))
        mask = partly_blocked(rand, device)[0, 0].long()
    if kind == "padding":
        mask = (torch.arange(TK, device=device) < torch.tensor([[3], [6]], device=device))[
            :, None, None
        ]
    if kind.startswith("self-attention"):
        key = value = query
    if kind == "self-attention under a causal mask":
        mask = torch.ones(TQ, TQ, dtype=torch.bool, device=device).tril()
    if kind == "as many keys as queries":
        key, value = key[:, :TQ], value[:, :TQ]
    given = {"query": query, "key": key, "value": value} | ({} if mask is None else {"mask": mask})
    expected = reference(state, query, key, value, mask)
    for need in (True, False):
        when = f" with need_weights={need}" + " and scores of 0" * (factor == 0)
        with expect_unchanged(**given):
            results = mha(**given, need_weights=need)
        # A score of several hundred has an error of about 1e-4 in float32, and so do its weights.
        room = 5e-3 if kind == "large scores" else None
        expect_both(results, expected, when, need=need, room=room)


@pytest.mark.points(1)
@pytest.mark.parametrize(
    ("B", "Tq", "Tk", "H"), [(1, 1, 1, 3), (3, 1, 6, 1), (1, 6, 4, 12)], ids=str
)
@torch.no_grad()
def test_edges(submission: Submission, rand: Rand, B: int, Tq: int, Tk: int, H: int) -> None:
    """It works for a single token or head, and for heads of one feature"""
    state = draw_state(rand, shapes())
    mha = module(submission, state, H)
    query, key, value = inputs(rand, B, Tq, Tk)
    for need in (True, False):
        results = mha(query, key, value, need_weights=need)
        expected = reference(state, query, key, value, H=H)
        expect_both(results, expected, f" with need_weights={need}", need=need)
    submission.OptionalWeightsAttention(d_model=D, num_heads=2)
    results = mha(query, key, value)
    expect_both(results, expected, " after another module was made", need=True)


@pytest.mark.points(1)
@pytest.mark.parametrize("need", [True, False])
def test_gradients(submission: Submission, rand: Rand, device: torch.device, need: bool) -> None:
    """The gradients are the same with and without the weights"""
    state = draw_state(rand, shapes())
    mha = module(submission, state)
    mha.train()  # by default there is no dropout
    own = trained_parameters(mha, state)
    query, key, value = inputs(rand, grad=True)
    mask = partly_blocked(rand, device)
    expected, _ = reference(own, query, key, value, mask)
    with expect_unchanged(mask=mask):
        output, _ = mha(query, key, value, mask, need_weights=need)
    axes = {name: "row column" if t.dim() == 2 else "row" for name, t in own.items()}
    leaves = {"query": query, "key": key, "value": value, **own}
    # Sums of many terms, rounded accordingly in float32.
    expect_gradients_close(output, expected, leaves, axes=axes, rtol=1e-3, atol=1e-4)
    for inputs_alike in ((query, key, key), (key, key, key)):
        for given in (None, mask[:, :, :1]):
            expected, _ = reference(own, *inputs_alike, given)
            output, _ = mha(*inputs_alike, given, need_weights=need)
            leaves = {"key": key, **own}
            expect_gradients_close(output, expected, leaves, rtol=1e-3, atol=1e-4)


@pytest.mark.points(1, hint=4)
def test_weight_gradients(submission: Submission, rand: Rand, device: torch.device) -> None:
    """Gradients flow back through the returned weights"""
    state = draw_state(rand, shapes())
    mha = module(submission, state)
    own = trained_parameters(mha, state)
    query, key, value = inputs(rand, grad=True)
    mask = partly_blocked(rand, device)
    _, expected = reference(own, query, key, value, mask)
    weights = expect_weights(mha(query, key, value, mask, need_weights=True)[1])
    reached = {name: tensor for name, tensor in own.items() if name[:3] in ("w_q", "w_k")}
    leaves = {"query": query, "key": key, **reached}
    expect_gradients_close(weights, expected, leaves, rtol=1e-3, atol=1e-4)


@pytest.mark.points(2)
@pytest.mark.parametrize("need", [True, False])
def test_dropout(submission: Submission, rand: Rand, device: torch.device, need: bool) -> None:
    """Dropout drops single weights in training, with and without the weights"""
    # With w_v and w_o the identity and a value that is 1 in two features of each head, a weight
    # can be read off the output twice, whether or not the weights are returned.
    p, B, H, Tq, Tk, D = 0.3, 3, 4, 30, 5, 40
    one = torch.eye(D, device=device)
    state = {
        "w_q.weight": rand(row=D, column=D, scale=0.5 * D**-0.5),
        "w_k.weight": rand(row=D, column=D, scale=D**-0.5),
        "w_v.weight": one,
        "w_o.weight": one,
    }
    query, key = rand(B=B, Tq=Tq, D=D, grad=True), rand(B=B, Tk=Tk, D=D, grad=True)
    leaves = {"query": query, "key": key}
    value = torch.eye(Tk, device=device).repeat(B, 1, H * 2)  # [B, Tk, H · 2 · Tk]
    output, _ = reference(state, query, key, value, H=H)
    mask = torch.arange(Tk, device=device).reshape(1, 1, 1, Tk) != 2
    mha = module(submission, state, H, dropout=p, bias=False)
    evaluated = module(submission, state, H, bias=False)
    is_right, when = (expect_weights if need else expect_none), f"with need_weights={need}"
    for given in (None, mask):
        # A wrong mask costs points in other checks: here the module's own results are the norm.
        full = output
        if given is not None:
            full = evaluated(query, key, value, given, need_weights=need)[0]
        expect_shape(full, B=B, Tq=Tq, D=D)
        weights = full.reshape(B, Tq, H, 2, Tk).movedim(1, 3)[:, :, 0]
        mha.train()
        dropped, returned = mha(query, key, value, given, need_weights=need)
        expect_shape(dropped, B=B, Tq=Tq, D=D)
        is_right(returned, f" in training {when}")
        once, again = dropped.reshape(B, Tq, H, 2, Tk).movedim(1, 3).unbind(2)
        returned = returned if given is None else None
        expect_dropped(once, again, weights, p, axes=ALONG, inputs=leaves, returned=returned)
        with torch.no_grad():
            pair = [mha(query, key, value, mask, need_weights=need)[0] for _ in range(2)]
        expect_new_draws(*pair, " with a mask")
        first, second = (mha(query, query, query, need_weights=need)[0] for _ in range(2))
        expect_new_draws(first, second, " of self-attention")
        mha.eval()
        still = mha(query, key, value, need_weights=need)[0]
        expect_close(still, output, axes=OUTPUT, what="the output after eval()")


@pytest.mark.points(1, hint=3)
@pytest.mark.parametrize("training", [False, True])
@torch.no_grad()
def test_nothing_left(
    submission: Submission, rand: Rand, device: torch.device, training: bool
) -> None:
    """After need_weights=False the module keeps nothing of size [Tq, Tk]"""
    mha = module(submission, draw_state(rand, shapes()), dropout=0.2)
    mha.train(training)
    for mask in (None, partly_blocked(rand, device)):
        with torch.set_grad_enabled(training):
            query, key, value = inputs(rand)
            output, _ = mha(query, key, value, mask=mask, need_weights=False)
        expect_no_constant(output, query=query)
        expect_nothing_left(submission, mha, TQ, TK, "after need_weights=False")
    state, given = draw_state(rand, shapes()), long_inputs(rand)
    on_cpu = {name: tensor.cpu() for name, tensor in state.items()}
    with submission.measured() as usage:
        # Two heads, so that weights kept in half precision are as large as one head's.
        mha = module(submission, on_cpu, H=2)
        mha.train(training)
        output, weights = mha(*given, need_weights=False)
    expect_none(weights)
    expect_some_rows(output, on_cpu, given, H=2)
    Tq, Tk = given[0].shape[1], given[1].shape[1]
    expect_little_held(usage.held, Tq, Tk, "after need_weights=False")


@pytest.mark.points(1, hint=3)
@torch.no_grad()
def test_nothing_old_left(submission: Submission, rand: Rand) -> None:
    """It does not keep the weights of an earlier call either"""
    state = draw_state(rand, shapes())
    mha = module(submission, state)
    longer, shorter = inputs(rand, Tq=11, Tk=13), inputs(rand)
    expect_weights(mha(*longer, need_weights=True)[1])
    mha(*longer, need_weights=True)
    results = mha(*shorter, need_weights=False)
    when = " with need_weights=False after a call with the weights"
    expect_both(results, reference(state, *shorter), when, need=False)
    for Tq, Tk in ((11, 13), (TQ, TK)):
        when = "of an earlier call" if Tq == 11 else "after need_weights=False"
        expect_nothing_left(submission, mha, Tq, Tk, when)
    again = mha(*longer, need_weights=True)
    expect_both(again, reference(state, *longer), " asked for again", need=True)
    on_cpu, given = {name: tensor.cpu() for name, tensor in state.items()}, long_inputs(rand)
    with submission.measured() as usage:
        mha = module(submission, on_cpu, H=1)  # all returned tensors stay alive for a while
        output = mha(*given, need_weights=True)[0]
        mha(*(x[:, :5] for x in given), need_weights=False)
    expect_some_rows(output, on_cpu, given, H=1)
    Tq, Tk = given[0].shape[1], given[1].shape[1]
    expect_little_held(usage.held, Tq, Tk, "of an earlier call")


# --- dtypes ----------------------------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@torch.no_grad()
def test_dtypes(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """After .to(dtype) the results have that dtype, with and without weights"""
    skip_unless_supported(dtype, device)
    state = {name: tensor.to(dtype) for name, tensor in draw_state(rand, shapes()).items()}
    mha = module(submission, state)
    mha.to(dtype)
    mha.load_state_dict(state)
    query, key, value = (x.to(dtype) for x in inputs(rand))
    mask = partly_blocked(rand, device)
    expected = reference(state, query, key, value, mask)
    # Loose, because only the dtype matters here: bfloat16 rounds at every step, and a softmax in
    # float32 is not a mistake, not even in float64.
    room = 0.08 if dtype == torch.bfloat16 else 1e-5
    for need in (True, False):
        with expect_unchanged(query=query, key=key, value=value, mask=mask):
            output, weights = mha(query, key, value, mask, need)
        expect_dtype(output, dtype, "the output")
        when = f" in {dtype} with need_weights={need}"
        if need:
            expect_dtype(expect_weights(weights, when), dtype, "the weights")
        expect_close(
            output, expected[0], axes=OUTPUT, what=f"the output{when}", rtol=room, atol=room
        )
        (expect_weights if need else expect_none)(weights, when)
    dropping = module(submission, state, dropout=0.5).to(dtype).train()
    for need in (True, False):
        output, _ = dropping(query, key, value, mask, need)
        expect_dtype(output, dtype, "the output with dropout")
