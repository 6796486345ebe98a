"""Hidden checks of memory_benchmark: functions whose memory is known, and powers that are known.

`PROBES` runs where the learner's code does. Each of its functions takes a number of bytes that can
be told beforehand; whether inputs and output are counted as well is free, so they are kept small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from grader.checking import CheckFailed, expect_equal, is_between

MIB = 1 << 20
ROOM = 1 << 16  # for inputs, output and small things of 16 tokens: 16 KiB by default
PROBES = """
import torch
import torch.nn.functional as F
from torch import nn

MIB = 1 << 20


def room(q, mib, dtype=torch.uint8):
    return torch.empty(round(mib * MIB) // dtype.itemsize, dtype=dtype, device=q.device)


def makes_nothing(q, k, v):
    return v


def takes_3_mib(q, k, v):
    taken = room(q, 3)
    return v


def takes_4_times_1_mib_at_once(q, k, v):
    taken = [room(q, 1) for _ in range(4)]
    return v


def takes_8_mib_of_float64(q, k, v):
    taken = room(q, 8, torch.float64)
    return v


def computes_with_1_mib_tensors(q, k, v):
    x = torch.ones(MIB // 4, device=q.device)
    y = x + 1
    z = y * x[0].item()
    return v


def changes_2_mib_in_place(q, k, v):
    taken = torch.zeros(2 * MIB // 4, device=q.device)
    for _ in range(5):
        taken.add_(1)
    return v


def takes_1_mib_5_times_in_turn(q, k, v):
    for _ in range(5):
        taken = room(q, 1)
        del taken
    return v


def takes_5_8_and_9_mib_in_turn(q, k, v):
    for size in (5, 8, 9):  # no sum of them is 9: wherever each lies, all are told apart
        taken = room(q, size)
        del taken
    return v


def takes_2_then_5_then_1_mib(q, k, v):
    first = room(q, 2)
    second = room(q, 3)
    del first
    third = room(q, 1)
    del second, third
    last = room(q, 1)
    return v


def frees_6_mib_at_its_end(q, k, v):
    taken = room(q, 6)
    del taken
    return v * 1


def looks_at_2_mib_50_times(q, k, v):
    taken = room(q, 2)
    views = [taken[i:] for i in range(50)] + [taken[:1].expand(9 * MIB)]
    return v


def keeps_6_mib_by_small_views(q, k, v):
    views = [room(q, 1)[:1] for _ in range(6)]
    return v


class Shapes(nn.Module):
    def forward(self, q, k, v):
        shapes = [list(x.shape) for x in (q, k, v)]
        self.register_buffer("shapes", torch.tensor(shapes))
        return v


def plain(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1) @ v


def fused(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)

"""
HELD = {
    "makes_nothing": 0,
    "takes_3_mib": 3,
    "takes_4_times_1_mib_at_once": 4,
    "takes_8_mib_of_float64": 8,
    "computes_with_1_mib_tensors": 3,
    "changes_2_mib_in_place": 2,
}
FREED = {
    "takes_1_mib_5_times_in_turn": 1,
    "takes_5_8_and_9_mib_in_turn": 9,
    "takes_2_then_5_then_1_mib": 5,
    "frees_6_mib_at_its_end": 6,
}
VIEWS = {"looks_at_2_mib_50_times": 2, "keeps_6_mib_by_small_views": 6}


def slope(lengths: Sequence[float], sizes: Sequence[float]) -> float:
    """The least-squares slope of log size over log length, by the normal equations."""
    points = torch.tensor([[1.0, math.log(length)] for length in lengths], dtype=torch.float64)
    logs = torch.tensor([math.log(size) for size in sizes], dtype=torch.float64)
    return torch.linalg.solve(points.T @ points, points.T @ logs)[1].item()


def mib(size: float) -> str:
    return f"{size / MIB:.2f} MiB"


def expect_peak(size: float, known: float, what: str) -> None:
    """Expect this many MiB, and no more than inputs, output and small things beside them."""
    leeway = 0.05 * known * MIB + ROOM
    if not is_between(size, known * MIB - leeway, known * MIB + leeway):
        told = what.replace("_", " ").replace("mib", "MiB")
        raise CheckFailed(
            f"The peak is wrong for a function that {told}\n"
            f"  expected  {mib(known * MIB)}, give or take inputs and output of 0.02 MiB\n"
            f"  got       {mib(size)}"
        )


def expect_exponent(got: float, want: float, leeway: float, what: str) -> None:
    """Expect the power of T that these sizes grow with."""
    if not is_between(got, want - leeway, want + leeway):
        raise CheckFailed(
            f"The exponent is wrong for {what}\n  expected  {want:.4g}\n  got       {got:.6g}"
        )


# --- the peak --------------------------------------------------------------------------------


@pytest.mark.points(1)
def test_kind(submission: Any) -> None:
    """The peak is a whole number of bytes"""
    probe = submission.given(PROBES, "takes_3_mib")
    size = submission.peak_bytes(probe, 16)
    expect_equal(type(size).__name__, "int", "the type of the result")
    expect_peak(size, 3, "takes_3_mib")


@pytest.mark.points(1)
@pytest.mark.parametrize(
    ("T", "options", "shape"),
    [
        (16, {}, [1, 4, 16, 16]),
        (3, {"num_heads": 1}, [1, 1, 3, 64]),
        (7, {"d_model": 12, "num_heads": 2}, [1, 2, 7, 6]),
        (5, {"d_model": 24, "num_heads": 3, "device": "cpu"}, [1, 3, 5, 8]),
    ],
)
def test_inputs(submission: Any, T: int, options: dict[str, Any], shape: list[int]) -> None:
    """It is called with q, k and v of shape [1, H, T, d_k]"""
    probe = submission.given(PROBES, "Shapes")
    submission.peak_bytes(probe, T, **options)
    seen = dict(probe.named_buffers()).get("shapes")
    if seen is None:
        raise CheckFailed("The function that is to be measured is never called")
    expect_equal(seen.tolist(), [shape] * 3, "the list of the shapes of q, k and v")


@pytest.mark.points(3)
@pytest.mark.parametrize("name", HELD)
def test_held(submission: Any, name: str) -> None:
    """What a function holds at once is counted"""
    size = submission.peak_bytes(submission.given(PROBES, name), seq_len=16)
    expect_peak(size, HELD[name], name)


@pytest.mark.points(2)
@pytest.mark.parametrize("name", FREED)
def test_freed(submission: Any, name: str) -> None:
    """What was freed before does not count, and the end is not the peak"""
    size = submission.peak_bytes(submission.given(PROBES, name), 16)
    expect_peak(size, FREED[name], name)


@pytest.mark.points(1)
@pytest.mark.parametrize("name", VIEWS)
def test_views(submission: Any, name: str) -> None:
    """A view takes no memory, but it keeps what it looks at"""
    size = submission.peak_bytes(submission.given(PROBES, name), 16)
    expect_peak(size, VIEWS[name], name)


@pytest.mark.points(1)
def test_apart(submission: Any) -> None:
    """Nothing of one measurement is left in the next"""
    names = ("takes_3_mib", "frees_6_mib_at_its_end", "makes_nothing", "takes_3_mib")
    probes = {name: submission.given(PROBES, name) for name in names}
    for name in names:
        size = submission.peak_bytes(probes[name], 16)
        expect_peak(size, (HELD | FREED)[name], name)


@pytest.mark.points(1)
def test_plain(submission: Any) -> None:
    """Of plain attention it shows the growth with the square of T"""
    lengths = (128, 512, 1024)
    probe = submission.given(PROBES, "plain")
    sizes = [submission.peak_bytes(probe, length) for length in lengths]
    growth = slope(lengths, [max(1, size) for size in sizes])
    # 2.00 by the profiler, 1.95 by a mode with the output, 1.87 with inputs and output.
    if not is_between(growth, 1.75, 2.1):
        raise CheckFailed(
            f"The measured growth of plain attention is wrong\n"
            f"  expected  about the power 2 of T\n"
            f"  got       the power {growth:.2f}: {', '.join(map(mib, sizes))} for {lengths}"
        )


@pytest.mark.points(1)
def test_fused(submission: Any) -> None:
    """Of PyTorch's fused attention it shows the growth with T"""
    lengths = (128, 1024, 4096)
    probe = submission.given(PROBES, "fused")
    sizes = [submission.peak_bytes(probe, length) for length in lengths]
    growth = slope(lengths, [max(1, size) for size in sizes])
    # 1.00 by a mode, 1.03 by the profiler, which sees the kernel's own blocks too.
    if not is_between(growth, 0.8, 1.25):
        raise CheckFailed(
            f"The measured growth of F.scaled_dot_product_attention is wrong\n"
            f"  expected  about the power 1 of T\n"
            f"  got       the power {growth:.2f}: {', '.join(map(mib, sizes))} for {lengths}"
        )


@pytest.mark.points(1, stand_in="held")
def test_gpu(submission: Any) -> None:
    """On a GPU it measures the memory of the GPU"""
    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
    for name, known in {**HELD, **FREED}.items():
        size = submission.peak_bytes(submission.given(PROBES, name), 16, device="cuda")
        expect_peak(size, known, name)


# --- the exponent ----------------------------------------------------------------------------


@pytest.mark.points(2)
@pytest.mark.parametrize("p", [2.0, 1.0, 0.0, 1.5, 3.0])
@pytest.mark.parametrize("lengths", [[128, 256], [100, 150, 400, 1000], [4096, 1024, 2048]])
def test_exponent(submission: Any, lengths: list[int], p: float) -> None:
    """Sizes c · T^p have the exponent p, whatever c is"""
    for c in (1.0, 12345.0):
        sizes = [c * length**p for length in lengths]
        got = submission.growth_exponent(lengths, sizes)
        # A fit in float32 is off by 1e-5 at most.
        expect_exponent(got, p, 1e-3, f"sizes {c:g} T^{p:g} at T = {lengths}")


@pytest.mark.points(2)
@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [
        ([1, 10, 100], [1, 1, 100]),
        ([128, 256, 512, 1024], [70000, 200000, 900000, 3000000]),
        ([10, 100, 120, 140], [30, 5000, 9000, 6000]),
        ([64, 2048, 4096], [1 << 20, 1 << 34, 1 << 40]),
    ],
)
def test_fit(submission: Any, lengths: list[int], sizes: list[int]) -> None:
    """All measurements count: the slope is that of the best line"""
    given: tuple[Sequence[int], Sequence[int]]
    for given in ((lengths, sizes), (tuple(lengths), tuple(sizes))):  # which cannot be changed
        got = submission.growth_exponent(seq_lens=given[0], sizes=given[1])
        expect_exponent(got, slope(lengths, sizes), 1e-3, f"the sizes {sizes} at T = {lengths}")
