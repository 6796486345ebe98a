"""Hidden checks of kv_cache: chunks against one pass over all tokens, computed in float64.

`reference` takes one token at a time: what it may see is a slice, so no mask is involved. Each
check builds its own module and gives it a state with biases that are not zero.
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
    expect_dtype,
    expect_equal,
    expect_gradients_close,
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
OUTPUT = "B T D"
CACHE = "B H T d_k"
State = Mapping[str, Tensor]
Cache = tuple[Tensor, Tensor]
# A text and two ways to continue it: what each call returned, as it is after all of them.
IN_TURN = """
from torch import nn


class Called(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, x, one, other):
        _, cache = self.attention(x)
        return cache, *(self.attention(new, cache)[1] for new in (one, other))
"""


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


def shapes(D: int, bias: bool = True) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the parameters of four layers from D to D."""
    return linear_shapes(dict.fromkeys(LAYERS, (D, D)), bias)


def module(submission: Submission, state: State, num_heads: int, **options: Any) -> Any:
    """The learner's module with this state, on the state's device.

    It stays in training mode: nothing in it may depend on that.
    """
    d_model = len(state["w_q.weight"])
    attention = submission.CachedSelfAttention(d_model=d_model, num_heads=num_heads, **options)
    return with_state(attention, state, evaluate=False)


def some_cache(rand: Rand, B: int, H: int, P: int, d_k: int) -> Cache:
    """Keys and values of P old tokens that no module has made."""
    return rand(B=B, H=H, P=P, d_k=d_k), rand(B=B, H=H, P=P, d_k=d_k)


# --- judging ---------------------------------------------------------------------------------


def pair(cache: Any) -> Cache:
    """The cache, if it is a tuple of two tensors."""
    if isinstance(cache, tuple) and len(cache) == 2:
        k, v = cache
        if isinstance(k, Tensor) and isinstance(v, Tensor):
            return k, v
    if isinstance(cache, (tuple, list)):
        kinds = ", ".join(type(each).__name__ for each in cache[:3])
        got = f"a {type(cache).__name__} of {len(cache)}" + f": {kinds}" * bool(kinds)
    elif isinstance(cache, Tensor):
        got = f"a tensor of shape {list(cache.shape)}"
    else:
        got = f"{type(cache).__name__}"
    raise CheckFailed(
        "The second result is not a cache\n"
        "  expected  a tuple of two tensors, the keys and the values\n"
        f"  got       {got}"
    )


def expect_output(actual: Tensor, expected: Tensor, when: str = "", **room: float) -> None:
    """Expect this output."""
    expect_close(actual, expected, axes=OUTPUT, what=f"the output{when}", **room)


def expect_cache(actual: Any, expected: Cache, when: str = "", **room: float) -> None:
    """Expect these keys and values."""
    cached = {"the cached keys": CACHE, "the cached values": CACHE}
    expect_results(pair(actual), expected, cached, when, **room)


# --- the first call --------------------------------------------------------------------------


@pytest.mark.points(1, hint=2)
@pytest.mark.pays("zeros", "ones", because="only the shape, dtype and device are checked")
@pytest.mark.parametrize(("B", "T", "D", "H"), [(2, 5, 12, 3), (3, 6, 20, 4)])
@torch.no_grad()
def test_shapes(
    submission: Submission, rand: Rand, device: torch.device, B: int, T: int, D: int, H: int
) -> None:
    """Returns the output [B, T, D] and a pair of tensors [B, H, T, d_k]"""
    output, cache = module(submission, draw_state(rand, shapes(D)), H)(rand(B=B, T=T, D=D))
    expect_shape(output, "the output", B=B, T=T, D=D)
    k, v = pair(cache)
    expect_shape(k, "the cached keys", B=B, H=H, T=T, d_k=D // H)
    expect_shape(v, "the cached values", B=B, H=H, T=T, d_k=D // H)
    for result in (output, k, v):
        expect_dtype(result, torch.float32)
        expect_device(result, device)


@pytest.mark.points(1, hint=1)
@pytest.mark.parametrize(("B", "T", "D", "H"), [(2, 1, 6, 2), (2, 5, 12, 3), (3, 6, 20, 4)])
@pytest.mark.parametrize("spread", [1.0, 30.0, 0.0])
@torch.no_grad()
def test_without_cache(
    submission: Submission, rand: Rand, B: int, T: int, D: int, H: int, spread: float
) -> None:
    """Without a cache it is causal self-attention"""
    state = draw_state(rand, shapes(D))
    for name in ("w_q.weight", "w_q.bias"):
        state[name] = state[name] * spread
    x = rand(B=B, T=T, D=D)
    expected, _ = reference(state, H, x)
    attention = module(submission, state, H)
    attention.train(spread <= 1)  # in which nothing differs from evaluation mode
    output, _ = attention(x)
    # A score of several hundred has an error of about 1e-4 in float32, and so do its weights.
    tolerance = 5e-3 if spread > 1 else None
    expect_output(
        output, expected, " for large scores" if spread > 1 else "", rtol=tolerance, atol=tolerance
    )


@pytest.mark.points(1, hint=2)
@pytest.mark.parametrize(("B", "T", "D", "H"), [(2, 5, 12, 3), (3, 6, 20, 4)])
@torch.no_grad()
def test_cache(submission: Submission, rand: Rand, B: int, T: int, D: int, H: int) -> None:
    """The cache holds the keys and then the values of every token"""
    state = draw_state(rand, shapes(D))
    x = rand(B=B, T=T, D=D)
    _, expected = reference(state, H, x)
    _, cache = module(submission, state, H)(x)
    expect_cache(cache, expected)


# --- further calls ---------------------------------------------------------------------------


@pytest.mark.points(1, hint=3)
@pytest.mark.parametrize("chunks", ["1 1", "1 1 1 1 1", "4 1 1", "6 1 1 1 1 1 1"])
@torch.no_grad()
def test_one_by_one(submission: Submission, rand: Rand, chunks: str) -> None:
    """Passing one new token at a time gives the results of the full pass"""
    expect_chunks(submission, rand, chunks)


@pytest.mark.points(2, hint=5)
@pytest.mark.parametrize("chunks", ["1 2", "2 3", "4 2", "1 5 2", "3 1 4 2", "9 7 5", "520 3 1"])
@torch.no_grad()
def test_chunks(submission: Submission, rand: Rand, chunks: str) -> None:
    """Chunks of any length give the results of the full pass"""
    expect_chunks(submission, rand, chunks)


def expect_chunks(submission: Submission, rand: Rand, chunks: str) -> None:
    """Compare the outputs and caches of calls with these chunks with those of a single call."""
    sizes = [int(size) for size in chunks.split()]
    B, D, H = (2, 12, 3) if sum(sizes) < 100 else (1, 4, 2)
    state = draw_state(rand, shapes(D))
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


@pytest.mark.points(2, hint=3)
@pytest.mark.parametrize(
    ("B", "P", "N", "D", "H"),
    [(2, 1, 1, 6, 2), (2, 4, 1, 12, 3), (3, 2, 5, 20, 4), (2, 7, 3, 12, 2)],
)
@pytest.mark.parametrize("spread", [1.0, 30.0])
@torch.no_grad()
def test_given_cache(
    submission: Submission, rand: Rand, B: int, P: int, N: int, D: int, H: int, spread: float
) -> None:
    """It continues from whatever keys and values the cache holds"""
    state = draw_state(rand, shapes(D))
    state["w_q.weight"] = state["w_q.weight"] * spread
    tolerance = 5e-3 if spread > 1 else None  # as in test_without_cache
    cache = some_cache(rand, B, H, P, D // H)
    x = rand(B=B, T=N, D=D)
    expected, joined = reference(state, H, x, cache)
    output, after = module(submission, state, H)(x, cache)
    when = f" for {N} new after {P} old"
    expect_output(output, expected, when, rtol=tolerance, atol=tolerance)
    expect_cache(after, joined, when)


@pytest.mark.points(1, hint=4)
@torch.no_grad()
def test_no_future(submission: Submission, rand: Rand) -> None:
    """A new token sees no later one, with a cache and without"""
    B, P, N, D, H = 2, 3, 4, 12, 3
    attention = module(submission, draw_state(rand, shapes(D)), H)
    x = rand(B=B, T=N, D=D)
    changed = x.clone()
    changed[:, N // 2 :] = rand(B=B, T=N - N // 2, D=D, scale=3.0)
    for cache, when in ((None, "without"), (some_cache(rand, B, H, P, D // H), "with")):
        output, _ = attention(x, cache)
        again, _ = attention(changed, cache)
        for result in (output, again):
            expect_shape(result, "the output", B=B, T=N, D=D)
        expect_no_constant(output, x=x)
        expect_close(
            again[:, : N // 2],
            output[:, : N // 2],
            axes=OUTPUT,
            what=f"the output {when} a cache, after later tokens change,",
        )


@pytest.mark.points(1, hint=3)
@pytest.mark.parametrize("learns", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize(("P", "N"), [(3, 1), (2, 4)])
def test_cache_unchanged(submission: Submission, rand: Rand, P: int, N: int, learns: bool) -> None:
    """The given cache stays as it was and can be continued twice"""
    B, D, H = 2, 12, 3
    state = draw_state(rand, shapes(D))
    attention = module(submission, state, H)
    attention.train(learns)
    with torch.set_grad_enabled(learns):
        _, first = attention(rand(B=B, T=P, D=D))
    k, v = pair(first)
    for name, part in (("keys", k), ("values", v)):
        expect_shape(part, f"the cached {name}", B=B, H=H, T=P, d_k=D // H)
    kept = k.clone(), v.clone()
    for which in ("first", "second"):
        x = rand(B=B, T=N, D=D)
        expected, joined = reference(state, H, x, kept)
        with expect_unchanged(keys=k, values=v, x=x), torch.set_grad_enabled(learns):
            output, cache = attention(x, (k, v))
        expect_output(output, expected, f" of the {which} continuation")
        expect_cache(cache, joined, f" of the {which} continuation")


@pytest.mark.points(1, hint=2)
@torch.no_grad()
def test_no_state(submission: Submission, rand: Rand) -> None:
    """The cache alone carries anything from one call to the next"""
    D, H = 12, 3
    state = draw_state(rand, shapes(D))
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
    submission.CachedSelfAttention(d_model=D, num_heads=2 * H)  # which is none of its business
    for length in (1, 5):
        output, _ = attention(one[:, :length])
        expect_output(output, expected["one text"][0][:, :length], " of one text, begun again,")
    expect_parameters(attention.state_dict(), shapes(D), where="state_dict()")

    start, ends = one[:, :2], (one[:, 2:], other[:, 2:])
    _, cached = reference(state, H, start)
    wanted = [cached, *(reference(state, H, end, cached)[1] for end in ends)]
    kept = submission.given(IN_TURN, "Called", attention)(start, *ends)
    for which, (cache, right) in enumerate(zip(kept, wanted, strict=True), start=1):
        expect_cache(cache, right, f" of call {which}, as it is after call 3,")


@pytest.mark.points(1)
@pytest.mark.parametrize(
    ("B", "P", "N", "D", "H"),
    [(1, 3, 2, 12, 3), (2, 3, 2, 12, 1), (2, 3, 2, 6, 6), (1, 1, 1, 3, 1)],
    ids=["one sequence", "one head", "a head per feature", "one of all"],
)
@torch.no_grad()
def test_edges(submission: Submission, rand: Rand, B: int, P: int, N: int, D: int, H: int) -> None:
    """It works for a single sequence or head, and for heads of one feature"""
    state = draw_state(rand, shapes(D))
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
def test_strided(submission: Submission, rand: Rand) -> None:
    """Tokens and cache may be strided views"""
    B, P, N, D, H = 2, 4, 3, 12, 3
    state = draw_state(rand, shapes(D))
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
def test_arguments(submission: Submission, rand: Rand) -> None:
    """Arguments work by name and by position"""
    B, P, N, D, H = 2, 3, 2, 12, 3
    state = draw_state(rand, shapes(D, bias=False))
    x = rand(B=B, T=N, D=D)
    cache = some_cache(rand, B, H, P, D // H)
    alone, _ = reference(state, H, x)
    expected, _ = reference(state, H, x, cache)
    attention = submission.CachedSelfAttention(D, H, False)
    with_state(attention, state, evaluate=False)
    expect_output(attention(x=x)[0], alone, " of a call without cache")
    expect_output(attention(x, None)[0], alone, " for the cache None")
    expect_output(attention(cache=cache, x=x)[0], expected, " of the call by keyword")
    expect_output(attention(x, cache)[0], expected, " of the call by position")


# --- gradients, dtypes, devices --------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.parametrize(
    ("P", "N"), [(0, 4), (3, 4), (3, 1)], ids=["without a cache", "with a cache", "one new token"]
)
def test_gradients(submission: Submission, rand: Rand, P: int, N: int) -> None:
    """Gradients reach the new tokens, the old ones and all four layers"""
    B, D, H = 2, 12, 3
    state = draw_state(rand, shapes(D))
    attention = module(submission, state, H)
    attention.train(N > 1)  # in which nothing differs from evaluation mode
    trained = trained_parameters(attention, state)
    cache = some_cache(rand, B, H, P, D // H) if P else None
    x = rand(B=B, T=N, D=D, grad=True)
    expected, _ = reference(trained, H, x, cache)
    output, _ = attention(x, cache)
    expect_gradients_close(output, expected, {"x": x, **trained})
    if P:
        both = rand(B=B, T=P + N, D=D, grad=True)
        expected, _ = reference(trained, H, both)
        first, cache = attention(both[:, :P])
        rest, _ = attention(both[:, P:], pair(cache))
        output = torch.cat([first, rest], dim=1)  # the old tokens act through the cache as well
        expect_gradients_close(output, expected, {"both texts": both, **trained})


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@torch.no_grad()
def test_dtypes(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """After .to(dtype) output and cache have that dtype"""
    skip_unless_supported(dtype, device)
    B, P, N, D, H = 2, 3, 2, 12, 3
    rounded = draw_state(rand, shapes(D), dtype=dtype)
    attention = module(submission, {name: t.float() for name, t in rounded.items()}, H)
    attention.to(dtype)
    x = rand(B=B, T=P + N, D=D, dtype=dtype)
    expected, joined = reference(rounded, H, x)
    # Loose, because only the dtype matters here: bfloat16 rounds at every step (right answers are
    # off by up to 0.013), and a softmax in float32 is not a mistake, not even in float64 (2.4e-7).
    tolerance = 0.08 if dtype == torch.bfloat16 else 1e-5
    output, cache = attention(x[:, :P])
    k, v = pair(cache)
    with expect_unchanged(keys=k, values=v, x=x):
        further, cache = attention(x[:, P:], (k, v))
    keys, values = pair(cache)
    named = {"the output": further, "the cached keys": keys, "the cached values": values}
    for what, result in {"the first output": output, **named}.items():
        expect_dtype(result, dtype, what)
    expect_output(output, expected[:, :P], f" in {dtype}", rtol=tolerance, atol=tolerance)
    expect_output(further, expected[:, P:], f" in {dtype}", rtol=tolerance, atol=tolerance)
    expect_cache(cache, joined, f" in {dtype}", rtol=tolerance, atol=tolerance)


@pytest.mark.points(1, stand_in="chunks")
@torch.no_grad()
def test_gpu(submission: Submission, rand: Rand, device: torch.device) -> None:
    """On a GPU too, chunks give the results of the full pass"""
    gpu = gpu_or_skip(device)
    B, T, D, H = 2, 7, 12, 3
    state = {name: tensor.to(gpu) for name, tensor in draw_state(rand, shapes(D)).items()}
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
def test_layers(submission: Submission, d_model: int, num_heads: int, bias: bool) -> None:
    """It has the layers w_q, w_k, w_v and w_o, and no other parameters"""
    options = {} if bias else {"bias": False}
    attention = submission.CachedSelfAttention(d_model=d_model, num_heads=num_heads, **options)
    expect_parameters(dict(attention.named_parameters()), shapes(d_model, bias))
    expect_parameters(attention.state_dict(), shapes(d_model, bias), where="state_dict()")
    frozen = [name for name, p in attention.named_parameters() if not p.requires_grad]
    expect_equal(frozen, [], "the list of parameters that cannot learn")


@pytest.mark.points(1)
def test_start(submission: Submission) -> None:
    """Weights start with Xavier values, biases at 0"""
    D, H = 192, 6
    one, other = (submission.CachedSelfAttention(d_model=D, num_heads=H) for _ in range(2))
    expect_xavier_start(one.state_dict(), other.state_dict(), shapes(D))


@pytest.mark.points(1)
@pytest.mark.parametrize(("d_model", "num_heads"), [(10, 3), (4, 8)])
def test_heads_must_divide(submission: Submission, d_model: int, num_heads: int) -> None:
    """The constructor raises ValueError if num_heads does not divide d_model"""
    submission.CachedSelfAttention(d_model=d_model * num_heads, num_heads=num_heads)
    with expect_raises(ValueError, f"{d_model} features cannot be split into {num_heads} heads"):
        submission.CachedSelfAttention(d_model=d_model, num_heads=num_heads)
