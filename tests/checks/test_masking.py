"""The hidden checks of masking: causal_mask, padding_mask and apply_mask."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from grader.checking import (
    Rand,
    Submission,
    expect_close,
    expect_device,
    expect_dtype,
    expect_gradients_close,
    expect_shape,
    expect_unchanged,
    skip_unless_supported,
)

AXES = "B H Tq Tk"
BLOCKED = float("-inf")
CPU = torch.device("cpu")

# B and H of scores with Tq=4, Tk=5, and the sizes of a mask that broadcasts to them. Where B or H
# is Tq by chance, a mask [Tq, Tk] still holds for queries and keys.
BROADCASTS = [
    *((3, 2, (1, 1, 1, 5)), (3, 2, (4, 5)), (4, 2, (4, 5)), (2, 4, (4, 5)), (3, 2, (2, 4, 5))),
    *((2, 2, (2, 4, 5)), (3, 2, (1, 1, 4, 5)), (3, 2, (3, 1, 1, 5)), (3, 2, (3, 1, 4, 5))),
    *((3, 2, (3, 1, 4, 1)), (3, 2, (3, 2, 1, 5)), (3, 2, (3, 2, 4, 5))),
]
NUMBERS = [
    *(torch.int64, torch.int32, torch.uint8),
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
]


def causal(seq_len: int) -> Tensor:
    """Query i may look at the keys 0 to i."""
    tokens = torch.arange(seq_len)
    return (tokens <= tokens[:, None])[None, None]


def padding(lengths: list[int], seq_len: int) -> Tensor:
    """The first keys of each sequence are real, as many as its length says."""
    return torch.tensor([[[[key < n for key in range(seq_len)]]] for n in lengths])


def masked(scores: Tensor, mask: Tensor) -> Tensor:
    """Overwrite the blocked scores of a copy."""
    copy = scores.detach().clone(memory_format=torch.contiguous_format)
    copy[(mask == 0).expand_as(copy)] = BLOCKED
    return copy


def some_mask(rand: Rand, device: torch.device, *sizes: int) -> Tensor:
    """A random boolean mask that both blocks and allows something."""
    mask = rand(**{f"axis{i}": size for i, size in enumerate(sizes)}) > 0
    mask.view(-1)[0], mask.view(-1)[-1] = False, True
    return mask.to(device)


def expect_masked(submission: Submission, scores: Tensor, mask: Tensor) -> None:
    """The allowed scores must stay equal to the last bit."""
    expected = masked(scores, mask)
    expect_close(submission.apply_mask(scores, mask), expected, axes=AXES, rtol=0.0, atol=0.0)


def expect_blocked(actual: Tensor, allowed: Tensor) -> None:
    """Every blocked score [2, 3, 4, 5] has to be below every allowed one, whatever it is."""
    expect_shape(actual, B=2, H=3, Tq=4, Tk=5)
    allowed = allowed.expand_as(actual)
    assert bool((actual[~allowed] < actual[allowed].min()).all()), (
        "A blocked score is not below all that are allowed\n"
        "  expected  each blocked score below every allowed one\n"
        "  got       one that is not"
    )


@pytest.mark.points(1, hint=4)
@pytest.mark.pays("zeros", "ones", because="only the shape, dtype and device are checked")
@pytest.mark.parametrize("T", [1, 3, 5])
def test_causal_kind(submission: Submission, T: int) -> None:
    """causal_mask gives a boolean mask of shape [1, 1, T, T] on the CPU"""
    mask = submission.causal_mask(seq_len=T)
    expect_shape(mask, B=1, H=1, Tq=T, Tk=T)
    expect_dtype(mask, torch.bool)
    expect_device(mask, CPU)


@pytest.mark.points(3, hint=2)
@pytest.mark.parametrize("T", [1, 2, 3, 6, 4, 520])
def test_causal_values(submission: Submission, T: int) -> None:
    """causal_mask allows each token itself and earlier tokens, no later ones"""
    expect_close(submission.causal_mask(T), causal(T), axes=AXES, what="the mask")


@pytest.mark.points(1, hint=4)
@pytest.mark.pays("zeros", "ones", because="only the shape, dtype and device are checked")
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32], ids=str)
def test_padding_kind(submission: Submission, device: torch.device, dtype: torch.dtype) -> None:
    """padding_mask gives a boolean mask [B, 1, 1, T] on valid_lens' device"""
    lengths = torch.tensor([3, 1], dtype=dtype, device=device)
    mask = submission.padding_mask(valid_lens=lengths, seq_len=4)
    expect_shape(mask, B=2, H=1, Tq=1, Tk=4)
    expect_dtype(mask, torch.bool)
    expect_device(mask, device)


@pytest.mark.points(2, hint=3)
@pytest.mark.parametrize(
    "lengths, T",
    [([1], 2), ([2, 1], 3), ([4, 2, 3], 5), ([2, 5, 1], 6), ([3, 1, 2, 4], 5), ([1029, 7], 1030)],
)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32], ids=str)
def test_padding_values(
    submission: Submission, device: torch.device, lengths: list[int], T: int, dtype: torch.dtype
) -> None:
    """padding_mask allows the first valid_lens[b] keys of sequence b"""
    valid_lens = torch.tensor(lengths, dtype=dtype, device=device)
    if dtype == torch.int32:
        valid_lens = valid_lens.repeat_interleave(2)[::2]  # with gaps between them
    with expect_unchanged(valid_lens=valid_lens):
        mask = submission.padding_mask(valid_lens, T)
    expect_close(mask, padding(lengths, T), axes=AXES, what="the mask")


@pytest.mark.points(1, hint=3)
@pytest.mark.parametrize(
    "lengths, T", [([1], 1), ([0], 1), ([0, 3], 3), ([4, 0, 2], 4), ([5, 5], 5), ([0, 0, 0], 2)]
)
def test_padding_edges(
    submission: Submission, device: torch.device, lengths: list[int], T: int
) -> None:
    """A length of 0 blocks every key, and a length of T blocks none"""
    for dtype in (torch.int64, torch.uint8):
        spaced = torch.tensor([[n, 1] for n in lengths], dtype=dtype, device=device)
        mask = submission.padding_mask(spaced[:, 0], T)
        what = f"the mask for lengths in {dtype}"
        expect_close(mask, padding(lengths, T), axes=AXES, what=what)


@pytest.mark.points(2, hint=5)
@pytest.mark.parametrize(
    "B, H, Tq, Tk",
    [(1, 1, 1, 2), (2, 3, 4, 5), (3, 2, 5, 3), pytest.param(4, 3, 5, 7, marks=pytest.mark.random)],
)
def test_blocked_and_allowed(
    submission: Submission, rand: Rand, device: torch.device, B: int, H: int, Tq: int, Tk: int
) -> None:
    """Blocked scores become -inf, and allowed scores stay the same"""
    scores = rand(B=B, H=H, Tq=Tq, Tk=Tk, scale=3.0)
    everything = torch.ones(B, H, Tq, Tk, dtype=torch.bool, device=device)
    for mask in (some_mask(rand, device, B, H, Tq, Tk), everything, ~everything):
        expect_masked(submission, scores, mask)
    for scale in (1e-6, 1e6):
        scores = rand(B=B, H=H, Tq=Tq, Tk=Tk, scale=scale)
        expect_masked(submission, scores, some_mask(rand, device, B, H, Tq, Tk))
    # Allowed scores of exactly 0, which are scores like any others.
    scores = torch.zeros(B, H, Tq, Tk, device=device)
    expect_masked(submission, scores, some_mask(rand, device, B, H, Tq, Tk))


@pytest.mark.points(1, hint=6)
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_numbers(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """A mask of 0 and 1 means the same as one of False and True"""
    skip_unless_supported(dtype, device)
    scores = rand(B=2, H=3, Tq=4, Tk=5)
    for sizes in ((4, 5), (2, 1, 4, 5)):
        truths = some_mask(rand, device, *sizes)
        mask = truths.to(dtype)
        expect_masked(submission, scores, mask)
        expect_dtype(submission.apply_mask(scores, mask), scores.dtype)
        # A wrong dtype costs points in another check: here the answer to booleans is the norm.
        half = scores.to(torch.float16)
        actual, expected = (submission.apply_mask(half, each) for each in (mask, truths))
        expect_dtype(actual, expected.dtype)
        expect_close(actual, expected, axes=AXES, rtol=0.0, atol=0.0)


@pytest.mark.points(1, hint=4)
@pytest.mark.parametrize("B, H, sizes", BROADCASTS)
@pytest.mark.parametrize("dtype", [torch.bool, torch.float32], ids=str)
def test_broadcasting(
    submission: Submission,
    rand: Rand,
    device: torch.device,
    B: int,
    H: int,
    sizes: tuple[int, ...],
    dtype: torch.dtype,
) -> None:
    """A mask of fewer axes or with axes of size 1 fits [B, H, Tq, Tk]"""
    scores = rand(B=B, H=H, Tq=4, Tk=5)
    expect_masked(submission, scores, some_mask(rand, device, *sizes).to(dtype))


@pytest.mark.points(1)
@pytest.mark.parametrize("layout", ["scores", "mask"])
def test_layout(submission: Submission, rand: Rand, device: torch.device, layout: str) -> None:
    """scores and mask may be strided views"""
    if layout == "scores":
        scores = rand(B=2, H=3, Tk=5, Tq=4).transpose(2, 3)
        mask = some_mask(rand, device, 2, 1, 4, 5)
    else:
        scores = rand(B=2, H=3, Tq=4, Tk=5)
        mask = some_mask(rand, device, 1, 1, 5, 4).transpose(2, 3).expand(2, 3, 4, 5)
    expect_masked(submission, scores, mask)


@pytest.mark.points(1, hint=6)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_no_mask(submission: Submission, rand: Rand, dtype: torch.dtype) -> None:
    """A mask changes the scores, and with mask=None they stay the same"""
    scores = rand(B=2, H=3, Tq=4, Tk=5, dtype=dtype)
    mask = some_mask(rand, scores.device, 4, 5)
    expect_blocked(submission.apply_mask(scores.clone(), mask), mask)
    expected = scores.clone()
    actual = submission.apply_mask(scores, None)
    expect_dtype(actual, dtype)
    expect_close(actual, expected, axes=AXES, rtol=0.0, atol=0.0)


@pytest.mark.points(1)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str
)
def test_dtype_and_device(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """The masked scores keep the dtype and the device of scores"""
    skip_unless_supported(dtype, device)
    scores = rand(B=2, H=3, Tq=4, Tk=5, dtype=dtype)
    mask = some_mask(rand, device, 2, 1, 4, 5)
    expected = masked(scores, mask)
    actual = submission.apply_mask(scores, mask)
    expect_dtype(actual, dtype)
    expect_device(actual, device)
    expect_close(actual, expected, axes=AXES, rtol=0.0, atol=0.0)


@pytest.mark.points(1, hint=5)
@pytest.mark.parametrize(
    "kind, dtype",
    [
        (torch.bool, torch.float32),
        (torch.int64, torch.float32),
        (torch.float32, torch.float32),
        (torch.bool, torch.bfloat16),
        (torch.bool, torch.float64),
    ],
    ids=str,
)
def test_unchanged_and_by_name(
    submission: Submission, rand: Rand, device: torch.device, kind: torch.dtype, dtype: torch.dtype
) -> None:
    """apply_mask can be called by name, and changes neither scores nor mask"""
    skip_unless_supported(dtype, device)
    scores = rand(B=2, H=3, Tq=4, Tk=5, dtype=dtype)
    for sizes in ((4, 5), (2, 1, 1, 5), (2, 3, 4, 5)):
        mask = some_mask(rand, device, *sizes).to(kind)
        for laid_out in (lambda x: x, lambda x: x.mT.contiguous().mT):
            given = {"mask": laid_out(mask), "scores": laid_out(scores)}
            with expect_unchanged(**given):
                actual = submission.apply_mask(**given)
            expect_blocked(actual, mask != 0)


@pytest.mark.points(1)
@pytest.mark.parametrize("sizes", [None, (1, 1, 4, 5), (2, 3, 4, 5)], ids=str)
def test_gradients(
    submission: Submission, rand: Rand, device: torch.device, sizes: tuple[int, ...] | None
) -> None:
    """The gradient of an allowed score passes unchanged"""
    scores = rand(B=2, H=3, Tq=4, Tk=5, grad=True)
    mask = some_mask(rand, device, *sizes) if sizes else None
    allowed = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand(2, 3, 4, 5)
    actual = submission.apply_mask(scores, mask)
    expect_gradients_close(
        actual, scores.masked_fill(~allowed, BLOCKED), {"scores": scores}, where={"scores": allowed}
    )
    if mask is not None:
        expect_blocked(actual, mask)


@pytest.mark.points(1, hint=4)
@pytest.mark.parametrize("dtype", [torch.bool, torch.int64], ids=str)
def test_combined(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """With a causal and a padding mask, a pair is blocked if either blocks it"""
    lengths, T = [4, 2, 0], 5
    scores = rand(B=3, H=2, Tq=T, Tk=T)
    both = (causal(T) & padding(lengths, T)).to(device)
    expected = masked(scores, both)
    first = submission.causal_mask(T)
    expect_dtype(first, torch.bool)
    expect_close(first, causal(T), axes=AXES, what="the mask")
    second = submission.padding_mask(torch.tensor(lengths, device=device), T)
    expect_dtype(second, torch.bool)
    expect_close(second, padding(lengths, T), axes=AXES, what="the mask")
    first, second = first.to(device), second.to(device)
    at_once = submission.apply_mask(scores, (first & second).to(dtype))
    expect_close(at_once, expected, axes=AXES, rtol=0.0, atol=0.0)
    in_turn = submission.apply_mask(submission.apply_mask(scores, first.to(dtype)), second)
    expect_close(in_turn, expected, axes=AXES, rtol=0.0, atol=0.0)
    weights = torch.softmax(
        at_once[0].detach().cpu(), dim=-1
    )  # no row of the first batch is all blocked
    expect_close(
        torch.where(both[0].cpu(), 0.0, weights),
        torch.zeros(2, T, T),
        axes="H Tq Tk",
        rtol=0.0,
        atol=0.0,
        what="the weight of a blocked key",
    )
