"""Hidden checks of kv_cache: chunks against one pass over all tokens, computed in float64.

`reference` takes one token at a time: what it may see is a slice, so no mask is involved. Each
check builds its own module and gives it a state with biases that are not zero.
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
OUTPUT = "B T D"
CACHE = "B H T d_k"
GRADIENT_AXES = {
    f"{layer}.{kind}": axes
    for layer in LAYERS
    for kind, axes in (("weight", "row column"), ("bias", "row"))
}

State = Mapping[str, Tensor]
Cache = tuple[Tensor, Tensor]
Rand = Callable[..., Tensor]


# --- the reference ---------------------------------------------------------------------------


def reference(
    state: State, num_heads: int, x: Tensor, cache: Cache | None = None
) -> tuple[Tensor, Cache]:
    """Output and cache, one token after the other, in float64 on the CPU."""
    exact = {name: tensor.cpu().double() for name, tensor in state.items()}
    none = torch.zeros((), dtype=torch.float64)
    B, N, D = x.shape
    d_k = D // num_heads

    def project(layer: str, rows: Tensor) -> Tensor:
        return rows @ exact[f"{layer}.weight"].T + exact.get(f"{layer}.bias", none)

    def heads(layer: str) -> Tensor:
        return project(layer, x.cpu().double()).reshape(B, N, num_heads, d_k).movedim(1, 2)

    q, k, v = heads("w_q"), heads("w_k"), heads("w_v")
    if cache is not None:
        k, v = (
            torch.cat([old.cpu().double(), new], dim=2)
            for old, new in zip(cache, (k, v), strict=True)
        )
    old = k.shape[2] - N
    found = []
    for token in range(N):
        seen = slice(0, old + token + 1)
        scores = (k[:, :, seen] * q[:, :, token, None]).sum(-1) / d_k**0.5  # (B, H, seen)
        shares = (scores - torch.logsumexp(scores, -1, keepdim=True)).exp()
        found.append((shares[..., None] * v[:, :, seen]).sum(2).reshape(B, D))
    return project("w_o", torch.stack(found, dim=1)), (k, v)


# --- building modules ------------------------------------------------------------------------


def random_state(
    rand: Rand, d_model: int, bias: bool = True, dtype: torch.dtype = torch.float32
) -> dict[str, Tensor]:
    """Weights that keep the size of their input, and biases that matter."""
    state = {}
    for layer in LAYERS:
        state[f"{layer}.weight"] = rand(
            row=d_model, column=d_model, scale=d_model**-0.5, dtype=dtype
        )
        if bias:
            state[f"{layer}.bias"] = rand(row=d_model, scale=0.5, dtype=dtype)
    return state


def module(submission: Any, state: State, num_heads: int, **options: Any) -> Any:
    """The learner's module with this state, on the state's device.

    It stays in training mode: nothing in it may depend on that.
    """
    weight = state["w_q.weight"]
    attention = submission.CachedSelfAttention(d_model=len(weight), num_heads=num_heads, **options)
    load(attention, state)
    if weight.device.type != "cpu":
        attention.to(weight.device)
    return attention


def load(attention: Any, state: State) -> None:
    """Load the state; where that fails, the names and shapes say why better than torch does.

    What a module has beyond the four layers stays as it is: another check judges that.
    """
    missing: list[str] = ["?"]
    try:
        missing = attention.load_state_dict(dict(state), strict=False)
    finally:
        if missing:
            found = dict(attention.named_parameters())
            bias = "w_q.bias" in state
            expect_layers(found, len(state["w_q.weight"]), bias, "named_parameters()", others=True)


def some_cache(rand: Rand, B: int, H: int, P: int, d_k: int) -> Cache:
    """Keys and values of P old tokens that no module has made."""
    return rand(B=B, H=H, P=P, d_k=d_k), rand(B=B, H=H, P=P, d_k=d_k)


# --- judging ---------------------------------------------------------------------------------


def expect_layers(
    found: State, d_model: int, bias: bool, where: str = "state_dict()", others: bool = False
) -> None:
    """Expect the names and shapes of four layers from D to D, and no others unless admitted."""
    kinds = {"weight": (d_model, d_model), "bias": (d_model,)}
    wanted = {
        f"{layer}.{kind}": shape
        for layer in LAYERS
        for kind, shape in kinds.items()
        if bias or kind == "weight"
    }
    missing = [name for name in wanted if name not in found]
    unexpected = [name for name in found if name not in wanted]
    if missing or (unexpected and not others):
        raise CheckFailed(
            f"The names in {where} are wrong{'' if bias else ' for bias=False'}"
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


def pair(cache: Any) -> Cache:
    """The cache, if it is a tuple of two tensors."""
    if isinstance(cache, tuple) and len(cache) == 2:
        k, v = cache
        if isinstance(k, Tensor) and isinstance(v, Tensor):
            return k, v
    if isinstance(cache, (tuple, list)):
        got = f"a {type(cache).__name__} of {len(cache)}"
    elif isinstance(cache, Tensor):
        got = f"a tensor of shape {list(cache.shape)}"
    else:
        got = f"{type(cache).__name__}"
    raise CheckFailed(
        "The second result is no cache\n"
        "  expected  a tuple of two tensors, the keys and the values\n"
        f"  got       {got}"
    )


def expect_sizes(actual: Tensor, what: str, **axes: int) -> None:
    """expect_shape with the name of what has the shape in the message."""
    try:
        expect_shape(actual, **axes)
    except CheckFailed as failure:
        message = str(failure).replace("The shape", f"The shape of {what}", 1)
        raise CheckFailed(message) from None


def expect_output(
    actual: Tensor,
    expected: Tensor,
    when: str = "",
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Expect this output."""
    what = f"the output{when}"
    expect_sizes(actual, what, **dict(zip(OUTPUT.split(), expected.shape, strict=True)))
    expect_close(actual, expected, axes=OUTPUT, what=what, rtol=rtol, atol=atol)


def expect_cache(
    actual: Any,
    expected: Cache,
    when: str = "",
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Expect these keys and values."""
    for got, want, name in zip(pair(actual), expected, ("key", "value"), strict=True):
        sizes = dict(zip(CACHE.split(), want.shape, strict=True))
        expect_sizes(got, f"the cached {name}s{when}", **sizes)
        expect_close(got, want, axes=CACHE, what=f"the cached {name}{when}", rtol=rtol, atol=atol)


# --- the first call --------------------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.parametrize(("B", "T", "D", "H"), [(2, 5, 12, 3), (3, 6, 20, 4)])
@torch.no_grad()
def test_shapes(
    submission: Any, rand: Rand, device: torch.device, B: int, T: int, D: int, H: int
) -> None:
    """Returns the output [B, T, D] and a pair of tensors [B, H, T, d_k]"""
    output, cache = module(submission, random_state(rand, D), H)(rand(B=B, T=T, D=D))
    expect_sizes(output, "the output", B=B, T=T, D=D)
    k, v = pair(cache)
    expect_sizes(k, "the cached keys", B=B, H=H, T=T, d_k=D // H)
    expect_sizes(v, "the cached values", B=B, H=H, T=T, d_k=D // H)
    for result in (output, k, v):
        expect_dtype(result, torch.float32)
        expect_device(result, device)


@pytest.mark.points(1)
@pytest.mark.parametrize(("B", "T", "D", "H"), [(2, 1, 6, 2), (2, 5, 12, 3), (3, 6, 20, 4)])
@pytest.mark.parametrize("spread", [1.0, 30.0])
@torch.no_grad()
def test_without_cache(
    submission: Any, rand: Rand, B: int, T: int, D: int, H: int, spread: float
) -> None:
    """Without a cache it is causal self-attention"""
    state = random_state(rand, D)
    for name in ("w_q.weight", "w_q.bias"):
        state[name] = state[name] * spread
    x = rand(B=B, T=T, D=D)
    expected, _ = reference(state, H, x)
    output, _ = module(submission, state, H)(x)
    # A score of some hundred has an error of some 1e-4 in float32, and so have its weights.
    tolerance = 5e-3 if spread > 1 else None
    expect_output(
        output, expected, " for large scores" if spread > 1 else "", rtol=tolerance, atol=tolerance
    )


@pytest.mark.points(1)
@pytest.mark.parametrize(("B", "T", "D", "H"), [(2, 5, 12, 3), (3, 6, 20, 4)])
@torch.no_grad()
def test_cache(submission: Any, rand: Rand, B: int, T: int, D: int, H: int) -> None:
    """The cache holds each head's keys, then its values, of every token"""
    state = random_state(rand, D)
    x = rand(B=B, T=T, D=D)
    _, expected = reference(state, H, x)
    _, cache = module(submission, state, H)(x)
    expect_cache(cache, expected)


# --- further calls ---------------------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.parametrize("chunks", ["1 1", "1 1 1 1 1", "4 1 1", "6 1 1 1 1 1 1"])
@torch.no_grad()
def test_one_by_one(submission: Any, rand: Rand, chunks: str) -> None:
    """One new token at a time gives what the full pass gives"""
    expect_chunks(submission, rand, chunks)


@pytest.mark.points(2)
@pytest.mark.parametrize("chunks", ["1 2", "2 3", "4 2", "1 5 2", "3 1 4 2", "9 7 5", "520 3 1"])
@torch.no_grad()
def test_chunks(submission: Any, rand: Rand, chunks: str) -> None:
    """Chunks of any length give what the full pass gives"""
    expect_chunks(submission, rand, chunks)


def expect_chunks(submission: Any, rand: Rand, chunks: str) -> None:
    """Hold outputs and caches of calls with so many new tokens each against one call with all."""
    sizes = [int(size) for size in chunks.split()]
    B, D, H = (2, 12, 3) if sum(sizes) < 100 else (1, 4, 2)
    state = random_state(rand, D)
    x = rand(B=B, T=sum(sizes), D=D)
    expected, (keys, values) = reference(state, H, x)
    attention = module(submission, state, H)
    cache = None
    end = 0
    for new in sizes:
        start, end = end, end + new
        output, cache = attention(x[:, start:end], cache)
        when = f" for {new} new after {start} old" if start else " without a cache"
        expect_output(output, expected[:, start:end], when)
        expect_cache(cache, (keys[:, :, :end], values[:, :, :end]), when)
        cache = pair(cache)


@pytest.mark.points(2)
@pytest.mark.parametrize(
    ("B", "P", "N", "D", "H"),
    [(2, 1, 1, 6, 2), (2, 4, 1, 12, 3), (3, 2, 5, 20, 4), (2, 7, 3, 12, 2)],
)
@torch.no_grad()
def test_given_cache(submission: Any, rand: Rand, B: int, P: int, N: int, D: int, H: int) -> None:
    """It goes on from whatever keys and values the cache holds"""
    state = random_state(rand, D)
    cache = some_cache(rand, B, H, P, D // H)
    x = rand(B=B, T=N, D=D)
    expected, joined = reference(state, H, x, cache)
    output, after = module(submission, state, H)(x, cache)
    when = f" for {N} new after {P} old"
    expect_output(output, expected, when)
    expect_cache(after, joined, when)


@pytest.mark.points(1)
@torch.no_grad()
def test_no_future(submission: Any, rand: Rand) -> None:
    """A new token sees no later one, with a cache and without"""
    B, P, N, D, H = 2, 3, 4, 12, 3
    attention = module(submission, random_state(rand, D), H)
    x = rand(B=B, T=N, D=D)
    changed = x.clone()
    changed[:, N // 2 :] = rand(B=B, T=N - N // 2, D=D, scale=3.0)
    for cache, when in ((None, "without"), (some_cache(rand, B, H, P, D // H), "with")):
        output, _ = attention(x, cache)
        again, _ = attention(changed, cache)
        for result in (output, again):
            expect_sizes(result, "the output", B=B, T=N, D=D)
        expect_close(
            again[:, : N // 2],
            output[:, : N // 2],
            axes=OUTPUT,
            what=f"the output {when} a cache, after later tokens change,",
        )


@pytest.mark.points(1)
@pytest.mark.parametrize("learns", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize(("P", "N"), [(3, 1), (2, 4)])
def test_cache_unchanged(submission: Any, rand: Rand, P: int, N: int, learns: bool) -> None:
    """The given cache stays as it was and can be continued twice"""
    B, D, H = 2, 12, 3
    state = random_state(rand, D)
    attention = module(submission, state, H)
    attention.train(learns)
    with torch.set_grad_enabled(learns):
        _, first = attention(rand(B=B, T=P, D=D))
    k, v = pair(first)
    for name, part in (("keys", k), ("values", v)):
        expect_sizes(part, f"the cached {name}", B=B, H=H, T=P, d_k=D // H)
    kept = k.clone(), v.clone()
    for which in ("first", "second"):
        x = rand(B=B, T=N, D=D)
        expected, joined = reference(state, H, x, kept)
        with expect_unchanged(keys=k, values=v, x=x), torch.set_grad_enabled(learns):
            output, cache = attention(x, (k, v))
        expect_output(output, expected, f" of the {which} continuation")
        expect_cache(cache, joined, f" of the {which} continuation")


@pytest.mark.points(1)
@torch.no_grad()
def test_no_state(submission: Any, rand: Rand) -> None:
    """Nothing but the cache leads from one call to the next"""
    D, H = 12, 3
    state = random_state(rand, D)
    attention = module(submission, state, H)
    one, other = rand(B=2, T=5, D=D), rand(B=2, T=5, D=D)
    wider = rand(B=3, T=4, D=D)
    texts = {"one text": one, "another text": other, "a larger batch": wider}
    expected = {which: reference(state, H, x) for which, x in texts.items()}
    caches = {}
    for which, x in texts.items():  # each begins while others are under way
        output, cache = attention(x[:, :2])
        expect_output(output, expected[which][0][:, :2], f" of {which}")
        caches[which] = pair(cache)
    for which, x in texts.items():
        output, cache = attention(x[:, 2:], caches[which])
        expect_output(output, expected[which][0][:, 2:], f" of {which}, continued,")
        expect_cache(cache, expected[which][1], f" of {which}, continued,")
    for length in (1, 5):
        output, _ = attention(one[:, :length])
        expect_output(output, expected["one text"][0][:, :length], " of one text, begun again,")
    expect_layers(attention.state_dict(), D, bias=True)


@pytest.mark.points(1)
@pytest.mark.parametrize(
    ("B", "P", "N", "D", "H"),
    [(1, 3, 2, 12, 3), (2, 3, 2, 12, 1), (2, 3, 2, 6, 6), (1, 1, 1, 3, 1)],
    ids=["one sequence", "one head", "a head per feature", "one of all"],
)
@torch.no_grad()
def test_edges(submission: Any, rand: Rand, B: int, P: int, N: int, D: int, H: int) -> None:
    """One sequence, one head or a head per feature is no exception"""
    state = random_state(rand, D)
    x = rand(B=B, T=P + N, D=D)
    expected, joined = reference(state, H, x)
    attention = module(submission, state, H)
    output, cache = attention(x[:, :P])
    expect_output(output, expected[:, :P], " without a cache")
    output, cache = attention(x[:, P:], pair(cache))
    expect_output(output, expected[:, P:], " with a cache")
    expect_cache(cache, joined)


@pytest.mark.points(1)
@torch.no_grad()
def test_strided(submission: Any, rand: Rand) -> None:
    """Tokens and cache need not be contiguous"""
    B, P, N, D, H = 2, 4, 3, 12, 3
    state = random_state(rand, D)
    x = rand(T=N, B=B, D=D).transpose(0, 1)
    k = rand(B=B, P=P, H=H, d_k=D // H).transpose(1, 2)
    v = rand(B=B, H=H, P=2 * P, d_k=D // H)[:, :, :P]
    expected, joined = reference(state, H, x, (k, v))
    with expect_unchanged(keys=k, values=v, x=x):
        output, cache = module(submission, state, H)(x, (k, v))
    expect_output(output, expected)
    expect_cache(cache, joined)


@pytest.mark.points(1)
@torch.no_grad()
def test_arguments(submission: Any, rand: Rand) -> None:
    """All arguments work by name and by position"""
    B, P, N, D, H = 2, 3, 2, 12, 3
    state = random_state(rand, D, bias=False)
    x = rand(B=B, T=N, D=D)
    cache = some_cache(rand, B, H, P, D // H)
    alone, _ = reference(state, H, x)
    expected, _ = reference(state, H, x, cache)
    attention = submission.CachedSelfAttention(D, H, False)
    load(attention, state)
    attention.to(x.device)
    expect_output(attention(x=x)[0], alone, " of a call without cache")
    expect_output(attention(x, None)[0], alone, " for the cache None")
    expect_output(attention(cache=cache, x=x)[0], expected, " of the call by keyword")
    expect_output(attention(x, cache)[0], expected, " of the call by position")


# --- gradients, dtypes, devices --------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.parametrize("P", [0, 3], ids=["without a cache", "with a cache"])
def test_gradients(submission: Any, rand: Rand, P: int) -> None:
    """Gradients reach the new tokens and all four layers"""
    B, N, D, H = 2, 4, 12, 3
    attention = module(submission, random_state(rand, D), H)
    trained = {name: dict(attention.named_parameters())[name] for name in GRADIENT_AXES}
    cache = some_cache(rand, B, H, P, D // H) if P else None
    x = rand(B=B, T=N, D=D, grad=True)
    expected, _ = reference(trained, H, x, cache)
    output, _ = attention(x, cache)
    expect_gradients_close(output, expected, {"x": x, **trained}, axes=GRADIENT_AXES)


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@torch.no_grad()
def test_dtypes(submission: Any, rand: Rand, device: torch.device, dtype: torch.dtype) -> None:
    """Moved to another dtype, it computes, caches and answers in that dtype"""
    skip_unless_supported(dtype, device)
    B, P, N, D, H = 2, 3, 2, 12, 3
    rounded = random_state(rand, D, dtype=dtype)
    attention = module(submission, {name: t.float() for name, t in rounded.items()}, H)
    attention.to(dtype)
    x = rand(B=B, T=P + N, D=D, dtype=dtype)
    expected, joined = reference(rounded, H, x)
    # Loose, for what is asked is the dtype: bfloat16 rounds at every step (right answers are off by
    # up to 0.013), and a softmax in float32 is no mistake, not even in float64 (2.4e-7).
    tolerance = 0.08 if dtype == torch.bfloat16 else 1e-5
    output, cache = attention(x[:, :P])
    k, v = pair(cache)
    with expect_unchanged(keys=k, values=v, x=x):
        further, cache = attention(x[:, P:], (k, v))
    for result in (output, further, *pair(cache)):
        expect_dtype(result, dtype)
    expect_output(output, expected[:, :P], f" in {dtype}", tolerance, tolerance)
    expect_output(further, expected[:, P:], f" in {dtype}", tolerance, tolerance)
    expect_cache(cache, joined, f" in {dtype}", tolerance, tolerance)


@pytest.mark.points(1, stand_in="chunks")
@torch.no_grad()
def test_gpu(submission: Any, rand: Rand) -> None:
    """On a GPU too chunks give what the full pass gives"""
    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
    B, T, D, H = 2, 7, 12, 3
    gpu = torch.device("cuda")
    state = {name: tensor.to(gpu) for name, tensor in random_state(rand, D).items()}
    x = rand(B=B, T=T, D=D).to(gpu)
    expected, joined = reference(state, H, x)
    attention = module(submission, state, H)
    cache = None
    for start, end in ((0, 2), (2, 6), (6, 7)):
        output, cache = attention(x[:, start:end], cache)
        cache = pair(cache)
        for result in (output, *cache):
            expect_device(result, gpu)
        expect_output(output, expected[:, start:end], " on the GPU")
    expect_cache(cache, joined, " on the GPU")


# --- the layers ------------------------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.parametrize(("d_model", "num_heads", "bias"), [(6, 2, True), (20, 5, False)])
def test_layers(submission: Any, d_model: int, num_heads: int, bias: bool) -> None:
    """It owns w_q, w_k, w_v and w_o, with or without biases, nothing else"""
    options = {} if bias else {"bias": False}
    attention = submission.CachedSelfAttention(d_model=d_model, num_heads=num_heads, **options)
    expect_layers(dict(attention.named_parameters()), d_model, bias, "named_parameters()")
    expect_layers(attention.state_dict(), d_model, bias)
    frozen = [name for name, p in attention.named_parameters() if not p.requires_grad]
    expect_equal(frozen, [], "the list of parameters that cannot learn")


@pytest.mark.points(1)
def test_start(submission: Any) -> None:
    """Weights start as Xavier says, biases at zero"""
    D, H = 192, 6
    start = submission.CachedSelfAttention(d_model=D, num_heads=H).state_dict()
    expect_layers(start, D, bias=True, others=True)
    # Over D² entries a right spread is within 0.4 % and a right mean within 0.5 % of the spread,
    # each with one standard error: what is admitted here is eight and ten of them.
    spread = D**-0.5
    for layer in LAYERS:
        bias = f"{layer}.bias"
        expect_close(start[bias], torch.zeros(D), axes="row", rtol=0, atol=0, what=bias)
        weight = start[f"{layer}.weight"].double()
        assert is_between(weight.std().item() / spread, 0.97, 1.03), (
            f"The weights of {layer} start with the wrong spread for D={D}\n"
            f"  expected  a standard deviation of {spread:.4f}, give or take 3 %\n"
            f"  got       {weight.std().item():.4f}"
        )
        assert is_between(weight.mean().item(), -0.05 * spread, 0.05 * spread), (
            f"The weights of {layer} are not centred at zero\n"
            f"  expected  a mean of 0, give or take {0.05 * spread:.4f}\n"
            f"  got       {weight.mean().item():.4f}"
        )
    other = submission.CachedSelfAttention(d_model=D, num_heads=H).state_dict()
    drawn = {
        f"{layer}{of}": each[f"{layer}.weight"]
        for of, each in (("", start), (" of another module", other))
        for layer in LAYERS
    }
    expect_all_different(drawn, "Two layers start with the same weights")


@pytest.mark.points(1)
@pytest.mark.parametrize(("d_model", "num_heads"), [(10, 3), (4, 8)])
def test_heads_must_divide(submission: Any, d_model: int, num_heads: int) -> None:
    """The constructor refuses a d_model that the heads do not divide"""
    with expect_raises(ValueError, f"{d_model} features cannot be split into {num_heads} heads"):
        submission.CachedSelfAttention(d_model=d_model, num_heads=num_heads)
