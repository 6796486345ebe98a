"""Hidden checks of memory_benchmark: functions whose memory is known, and powers that are known.

The functions run where the learner's code does. All have one name. How much they take, in how many
pieces, when they let go of it and in which order they are asked for is drawn, so nothing but what a
function does tells what it takes. Whether inputs and output are counted as well is free, so they
are kept small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
import torch

from grader.checking import CheckFailed, Submission, expect_equal, gpu_or_skip, is_between

MIB = 1 << 20
ROOM = 1 << 16  # for inputs, output and small things of 16 tokens: 16 KiB by default
NAME = "attention"
ONE_PIECE = """
import torch


def attention(q, k, v):
    taken = torch.empty(SIZE, dtype=torch.uint8, device=q.device)
    return v
"""
BEGINNING = """
import torch


def room(q, size, dtype=torch.uint8):
    return torch.empty(size // dtype.itemsize, dtype=dtype, device=q.device)


def attention(q, k, v):
"""
KEEPS_SHAPES = """
import torch


class Called(torch.nn.Module):
    def forward(self, q, k, v):
        shapes = [list(x.shape) for x in (q, k, v)]
        self.register_buffer("shapes", torch.tensor(shapes))
        return v
"""
PLAIN = """
import torch


def attention(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1) @ v
"""
FUSED = """
import torch.nn.functional as F


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)
"""


@dataclass(frozen=True)
class Probe:
    """A function to measure: its source, the bytes that it takes, and a description."""

    source: str
    size: int
    says: str


def probe(size: int, says: str, *lines: str, result: str = "v") -> Probe:
    body = "".join(f"    {line}\n" for line in (*lines, f"return {result}"))
    return Probe(BEGINNING + body, size, says)


def drawn(draw: Random, about: float) -> int:
    """A number of bytes, `about` this many MiB."""
    return round(about * draw.uniform(0.8, 1.3) * MIB) // 64 * 64


def nothing(draw: Random) -> Probe:
    return probe(0, "makes nothing")


def one_piece(draw: Random) -> Probe:
    size = drawn(draw, 3)
    return probe(size, "makes one tensor", f"taken = room(q, {size})")


def pieces_at_once(draw: Random) -> Probe:
    count, size = draw.randint(3, 6), drawn(draw, 1)
    lines = f"taken = [room(q, {size}) for _ in range({count})]"
    return probe(count * size, f"makes {count} tensors and keeps them all", lines)


def wide_numbers(draw: Random) -> Probe:
    size = drawn(draw, 8)
    return probe(size, "makes a tensor of float64", f"taken = room(q, {size}, torch.float64)")


def computes(draw: Random) -> Probe:
    size = drawn(draw, 1)
    lines = f"x = torch.ones({size // 4}, device=q.device)", "y = x + 1", "z = y * x[0].item()"
    return probe(3 * size, "computes two tensors from one, all of the same size", *lines)


def in_place(draw: Random) -> Probe:
    size, times = drawn(draw, 2), draw.randint(3, 7)
    lines = (
        f"taken = torch.zeros({size // 4}, device=q.device)",
        f"for _ in range({times}):",
        "    taken.add_(1)",
    )
    return probe(size, f"changes a tensor {times} times in place", *lines)


def same_in_turn(draw: Random) -> Probe:
    size, times = drawn(draw, 1), draw.randint(4, 7)
    lines = f"for _ in range({times}):", f"    taken = room(q, {size})", "    del taken"
    return probe(size, f"makes and frees a tensor {times} times", *lines)


def different_in_turn(draw: Random) -> Probe:
    unit = drawn(draw, 1)
    sizes = [5 * unit, 8 * unit, 9 * unit]  # no sum of them is 9, so every mistake shows
    lines = f"for size in {sizes}:", "    taken = room(q, size)", "    del taken"
    return probe(9 * unit, "makes and frees three tensors of different sizes in turn", *lines)


def some_overlap(draw: Random) -> Probe:
    """Two tensors at first, the peak; later ones take the place of the first."""
    unit, least = drawn(draw, 1), draw.randint(2, 3)
    first, second = draw.sample([least * unit, (least + 1) * unit], 2)
    lines = [f"first = room(q, {first})", f"second = room(q, {second})", "del first"]
    for _ in range(draw.randint(1, 3)):
        lines += [f"third = room(q, {unit})", "del third"]
    lines += ["del second", f"last = room(q, {unit})"]
    return probe(first + second, "makes two tensors, frees them and makes small ones", *lines)


def freed_at_the_end(draw: Random) -> Probe:
    size = drawn(draw, 6)
    lines = f"taken = room(q, {size})", "del taken"
    return probe(size, "makes one tensor and frees it at its end", *lines, result="v * 1")


def views_of_one(draw: Random) -> Probe:
    size, count = drawn(draw, 2), draw.randint(40, 60)
    lines = (
        f"taken = room(q, {size})",
        f"views = [taken[i:] for i in range({count})] + [taken[:1].expand({9 * MIB})]",
    )
    return probe(size, f"makes one tensor and {count + 1} views of it", *lines)


def small_views(draw: Random) -> Probe:
    size, count = drawn(draw, 1), draw.randint(5, 8)
    lines = f"views = [room(q, {size})[:1] for _ in range({count})]"
    return probe(count * size, f"makes {count} tensors and keeps one number of each", lines)


Kind = Callable[[Random], Probe]
HELD: tuple[Kind, ...] = (
    *(nothing, one_piece, pieces_at_once),
    *(wide_numbers, computes, in_place),
)
FREED: tuple[Kind, ...] = (same_in_turn, different_in_turn, some_overlap, freed_at_the_end)
VIEWS: tuple[Kind, ...] = (views_of_one, small_views)


def shuffled(kinds: Sequence[Kind], seed: int) -> Iterator[Probe]:
    """A probe of each kind, in random order."""
    draw = Random(seed)
    for kind in draw.sample(kinds, len(kinds)):
        yield kind(draw)


def slope(lengths: Sequence[float], sizes: Sequence[float]) -> float:
    """The least-squares slope of log size over log length, by the normal equations."""
    points = torch.tensor([[1.0, math.log(length)] for length in lengths], dtype=torch.float64)
    logs = torch.tensor([math.log(size) for size in sizes], dtype=torch.float64)
    return torch.linalg.solve(points.T @ points, points.T @ logs)[1].item()


def mib(size: float) -> str:
    return f"{size / MIB:.2f} MiB"


def expect_peak(size: float, known: int, what: str) -> None:
    """Expect this many bytes, and no more than inputs, output and small things beside them."""
    leeway = 0.05 * known + ROOM
    if not is_between(size, known - leeway, known + leeway):
        raise CheckFailed(
            f"The peak is wrong for a function that {what}\n"
            f"  expected  {mib(known)}, give or take inputs and output of 0.02 MiB\n"
            f"  got       {mib(size)}"
        )


def expect_peaks(submission: Submission, kinds: Sequence[Kind], seed: int, **options: Any) -> None:
    """Expect the peak of a function of each kind."""
    for each in shuffled(kinds, seed):
        given = submission.given(each.source, NAME)
        expect_peak(submission.peak_bytes(given, seq_len=16, **options), each.size, each.says)


def expect_exponent(got: float, want: float, leeway: float, what: str) -> None:
    """Expect the power of T that these sizes grow with."""
    if not is_between(got, want - leeway, want + leeway):
        raise CheckFailed(
            f"The exponent is wrong for {what}\n  expected  {want:.4g}\n  got       {got:.6g}"
        )


# --- the peak --------------------------------------------------------------------------------


@pytest.mark.points(1, hint=1)
def test_kind(submission: Submission, seed: int) -> None:
    """The peak of one tensor is its size in bytes, a whole number"""
    known = 3 * MIB + seed % MIB // 64 * 64
    given = submission.given(ONE_PIECE.replace("SIZE", str(known)), NAME)
    size = submission.peak_bytes(attention=given, seq_len=16)
    expect_equal(type(size).__name__, "int", "the type of the result")
    expect_peak(size, known, "makes one tensor")


@pytest.mark.points(1, hint=1)
@pytest.mark.pays("zeros", "ones", because="only the arguments of the function are checked")
@pytest.mark.parametrize(
    ("T", "options", "shape"),
    [
        (16, {}, [1, 4, 16, 16]),
        (3, {"num_heads": 1}, [1, 1, 3, 64]),
        (7, {"d_model": 12, "num_heads": 2}, [1, 2, 7, 6]),
        (5, {"d_model": 24, "num_heads": 3, "device": "cpu"}, [1, 3, 5, 8]),
    ],
)
def test_inputs(submission: Submission, T: int, options: dict[str, Any], shape: list[int]) -> None:
    """attention is called with q, k and v of shape [1, H, T, d_k]"""
    given = submission.given(KEEPS_SHAPES, "Called")
    submission.peak_bytes(given, T, **options)
    seen = dict(given.named_buffers()).get("shapes")
    if seen is None:
        raise CheckFailed("peak_bytes never calls its function")
    expect_equal(seen.tolist(), [shape] * 3, "the list of the shapes of q, k and v")


@pytest.mark.points(3, hint=2)
def test_held(submission: Submission, seed: int) -> None:
    """All memory that is in use at the same time counts"""
    expect_peaks(submission, HELD, seed)


@pytest.mark.points(2, hint=3)
def test_freed(submission: Submission, seed: int) -> None:
    """Freed memory does not count, and the peak may come before the end"""
    expect_peaks(submission, FREED, seed)


@pytest.mark.points(1, hint=2)
def test_views(submission: Submission, seed: int) -> None:
    """A view takes no memory, but keeps its tensor's memory in use"""
    expect_peaks(submission, VIEWS, seed)


@pytest.mark.points(1, hint=3)
def test_apart(submission: Submission, seed: int) -> None:
    """Each measurement starts from zero"""
    draw = Random(seed)
    probes = [kind(draw) for kind in (pieces_at_once, some_overlap, nothing)]
    given = [submission.given(each.source, NAME) for each in probes]
    for place in (0, 1, 2, 0):
        size = submission.peak_bytes(given[place], 16)
        expect_peak(size, probes[place].size, probes[place].says)


def measured_growth(
    submission: Submission, source: str, seed: int, *about: int
) -> tuple[float, str]:
    """The power of T that its memory grows with, and the sizes in words.

    The lengths, near those in `about`, come in random order.
    """
    draw = Random(seed)
    lengths = [length + draw.randrange(length // 16) for length in about]
    given, sizes = submission.given(source, NAME), {}
    for length in draw.sample(lengths, len(lengths)):
        sizes[length] = max(1, submission.peak_bytes(given, length))
    known = [sizes[length] for length in lengths]
    return slope(lengths, known), f"{', '.join(map(mib, known))} for {tuple(lengths)}"


@pytest.mark.points(1, hint=3)
def test_plain(submission: Submission, seed: int) -> None:
    """For plain attention the memory grows with the square of T"""
    growth, sizes = measured_growth(submission, PLAIN, seed, 128, 512, 1024)
    # 2.00 by the profiler, 1.95 by a mode with the output, 1.87 with inputs and output.
    if not is_between(growth, 1.75, 2.1):
        raise CheckFailed(
            f"The measured growth of plain attention is wrong\n"
            f"  expected  about the power 2 of T\n"
            f"  got       the power {growth:.2f}: {sizes}"
        )


@pytest.mark.points(1)
def test_fused(submission: Submission, seed: int) -> None:
    """For PyTorch's fused attention the memory grows with T"""
    growth, sizes = measured_growth(submission, FUSED, seed, 128, 512, 1024, 4096)
    # 1.00 by a mode, a little more by the profiler, which sees the kernel's own blocks too.
    if not is_between(growth, 0.8, 1.25):
        raise CheckFailed(
            f"The measured growth of F.scaled_dot_product_attention is wrong\n"
            f"  expected  about the power 1 of T\n"
            f"  got       the power {growth:.2f}: {sizes}"
        )


@pytest.mark.points(1, stand_in="held")
def test_gpu(submission: Submission, seed: int, device: torch.device) -> None:
    """On a GPU it measures the GPU's memory"""
    expect_peaks(submission, (*HELD, *FREED), seed, device=str(gpu_or_skip(device)))


# --- the exponent ----------------------------------------------------------------------------


@pytest.mark.points(2, hint=6)
@pytest.mark.parametrize("p", [2.0, 1.0, 0.0, 1.5, 3.0])
@pytest.mark.parametrize("lengths", [[128, 256], [100, 150, 400, 1000], [4096, 1024, 2048]])
def test_exponent(submission: Submission, lengths: list[int], p: float) -> None:
    """Sizes c · T^p have the exponent p, whatever c is"""
    for c in (1.0, 12345.0, 1e-9):  # bytes, or gigabytes
        sizes = [c * length**p for length in lengths]
        got = submission.growth_exponent(lengths, sizes)
        # A fit in float32 is off by 1e-5 at most.
        expect_exponent(got, p, 1e-3, f"sizes {c:g} T^{p:g} at T = {lengths}")


@pytest.mark.points(2, hint=7)
@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [
        ([1, 10, 100], [1, 1, 100]),
        ([128, 256, 512, 1024], [70000, 200000, 900000, 3000000]),
        ([10, 100, 120, 140], [30, 5000, 9000, 6000]),
        ([64, 2048, 4096], [1 << 20, 1 << 34, 1 << 40]),
    ],
)
def test_fit(submission: Submission, seed: int, lengths: list[int], sizes: list[int]) -> None:
    """The slope is that of the line that fits all measurements best"""
    factor = Random(seed).uniform(1, 1.5)
    sizes = [round(size * factor**place) for place, size in enumerate(sizes, start=1)]
    given: tuple[Sequence[int], Sequence[int]]
    for given in ((lengths, sizes), (tuple(lengths), tuple(sizes))):  # which cannot be changed
        got = submission.growth_exponent(seq_lens=given[0], sizes=given[1])
        expect_exponent(got, slope(lengths, sizes), 1e-3, f"the sizes {sizes} at T = {lengths}")
