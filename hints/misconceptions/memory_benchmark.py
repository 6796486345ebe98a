"""Known misconceptions of the stage memory_benchmark: what people really write, and a sentence."""

from __future__ import annotations

import math
import statistics
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from grader.misconceptions import misconception, symptom

Attention = Callable[..., Tensor]


class _Watch(TorchDispatchMode):
    """Keeps the bytes of every storage that is there; `level` says what is compared."""

    def __init__(self, level: Callable[[list[int]], int] = sum) -> None:
        super().__init__()
        self.alive: dict[int, int] = {}
        self.seen: list[int] = []
        self.peak = 0
        self._level = level

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # or torch imports its compiler

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self.note(tensor)
        self.peak = max(self.peak, self._level(list(self.alive.values()) or [0]))
        return result

    def note(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self.alive:
            self.alive[key] = self.size(tensor)
            self.seen.append(self.size(tensor))
            weakref.finalize(storage, self.alive.pop, key, None)

    def size(self, tensor: Tensor) -> int:
        return tensor.untyped_storage().nbytes()


class _EveryView(_Watch):
    def note(self, tensor: Tensor) -> None:
        key = id(tensor)
        if key not in self.alive:
            self.alive[key] = tensor.numel() * tensor.element_size()
            weakref.finalize(tensor, self.alive.pop, key, None)


class _Results(_Watch):
    def note(self, tensor: Tensor) -> None:
        self.seen.append(tensor.numel() * tensor.element_size())


class _Numbers(_Watch):
    def size(self, tensor: Tensor) -> int:
        return tensor.untyped_storage().nbytes() // tensor.element_size()


def _inputs(seq_len: int, d_model: int, num_heads: int, device: str) -> list[Tensor]:
    shape = (1, num_heads, seq_len, d_model // num_heads)
    return [torch.randn(shape, device=device) for _ in range(3)]


# The peak


@symptom(
    "memory_next_to_nothing",
    of="peak_bytes",
    says="Your peak is far below what the function takes. Count the memory of its tensors while "
    "they exist: tracemalloc, for one, sees only Python's own objects, not what PyTorch allocates.",
    hint=2,
)
def memory_next_to_nothing(got: int, expected: int, **given: Any) -> bool:
    """What a tool measures of Python's objects is never twice the same: no name can equal it."""
    in_other_units = any(
        abs(got - expected / unit) <= 1 + 0.1 * expected / unit for unit in (1e3, 2**10, 1e6, 2**20)
    )
    return expected > 1e5 and 0 <= got < expected / 100 and not in_other_units


@symptom(
    "memory_other_unit",
    of="peak_bytes",
    says="Your peak is right in another unit: numbers of 4 or 8 bytes, bits, KiB or MiB, for "
    "example. Return bytes.",
    hint=5,
)
def memory_other_unit(got: float, expected: int, **given: Any) -> bool:
    units = (0.125, 0.25, 8, 1 / 2**10, 1 / 2**20, 1e-3, 1e-6)
    return any(abs(got - expected * unit) <= 0.5 + 0.02 * expected * unit for unit in units)


@misconception(
    "memory_sum",
    replaces="peak_bytes",
    says="You add up all allocations. Freed memory is used again: the peak is the most that was "
    "in use at one moment.",
    hint=3,
)
def memory_sum(
    attention: Attention, seq_len: int, d_model: int = 64, num_heads: int = 4, device: str = "cpu"
) -> int:
    with _Watch() as watch:
        attention(*_inputs(seq_len, d_model, num_heads, device))
    return sum(watch.seen[3:])


@misconception(
    "memory_sum_of_results",
    replaces="peak_bytes",
    says="You add up the results of all operations. Freed memory is used again, and views and "
    "results in place take none: the peak is the most that was in use at one moment.",
    hint=3,
)
def memory_sum_of_results(
    attention: Attention, seq_len: int, d_model: int = 64, num_heads: int = 4, device: str = "cpu"
) -> int:
    q, k, v = _inputs(seq_len, d_model, num_heads, device)
    with _Results() as watch:
        attention(q, k, v)
    return sum(watch.seen)


@misconception(
    "memory_zero",
    replaces="peak_bytes",
    says="Your peak is always 0, as when nothing is watched while the function runs, or when you "
    "ask torch.cuda, which counts only the memory of a GPU. On a CPU use PyTorch's profiler or a "
    "TorchDispatchMode.",
    hint=2,
)
def memory_zero(
    attention: Attention, seq_len: int, d_model: int = 64, num_heads: int = 4, device: str = "cpu"
) -> int:
    attention(*_inputs(seq_len, d_model, num_heads, device))
    return 0


@misconception(
    "memory_at_the_end",
    replaces="peak_bytes",
    says="You count what is in use before or after the call. The big tensors exist only in "
    "between, so the peak is somewhere in the middle.",
    hint=3,
)
def memory_at_the_end(
    attention: Attention, seq_len: int, d_model: int = 64, num_heads: int = 4, device: str = "cpu"
) -> int:
    q, k, v = _inputs(seq_len, d_model, num_heads, device)
    with _Watch() as watch:
        attention(q, k, v)
    return sum(watch.alive.values())


@misconception(
    "memory_largest",
    replaces="peak_bytes",
    says="You take the largest single tensor. Several exist at the same time: add up those that "
    "are alive.",
    hint=3,
)
def memory_largest(
    attention: Attention, seq_len: int, d_model: int = 64, num_heads: int = 4, device: str = "cpu"
) -> int:
    q, k, v = _inputs(seq_len, d_model, num_heads, device)
    with _Watch(max) as watch:
        attention(q, k, v)
    return watch.peak


@misconception(
    "memory_every_view",
    replaces="peak_bytes",
    says="You count every tensor by its shape, so views and expanded tensors count as memory of "
    "their own. Count storages.",
    hint=5,
)
def memory_every_view(
    attention: Attention, seq_len: int, d_model: int = 64, num_heads: int = 4, device: str = "cpu"
) -> int:
    q, k, v = _inputs(seq_len, d_model, num_heads, device)
    with _EveryView() as watch:
        attention(q, k, v)
    return watch.peak


@misconception(
    "memory_numbers",
    replaces="peak_bytes",
    says="You count numbers, not bytes. A float32 takes 4 bytes, a float64 takes 8; a storage "
    "knows its size in bytes.",
    hint=5,
)
def memory_numbers(
    attention: Attention, seq_len: int, d_model: int = 64, num_heads: int = 4, device: str = "cpu"
) -> int:
    q, k, v = _inputs(seq_len, d_model, num_heads, device)
    with _Numbers() as watch:
        attention(q, k, v)
    return watch.peak


@misconception(
    "memory_tokens_first",
    replaces="peak_bytes",
    says="Your inputs are [1, T, H, d_k]. An attention function takes the heads before the tokens, "
    "[1, H, T, d_k].",
    hint=1,
)
def memory_tokens_first(
    attention: Attention, seq_len: int, d_model: int = 64, num_heads: int = 4, device: str = "cpu"
) -> int:
    shape = (1, seq_len, num_heads, d_model // num_heads)
    q, k, v = (torch.randn(shape, device=device) for _ in range(3))
    with _Watch() as watch:
        attention(q, k, v)
    return watch.peak


# The exponent


def _logs(seq_lens: Sequence[float], sizes: Sequence[float]) -> tuple[list[float], list[float]]:
    return [math.log(length) for length in seq_lens], [math.log(size) for size in sizes]


@symptom(
    "exponent_two_bases",
    of="growth_exponent",
    says="Your exponent is off by a factor between two kinds of logarithm, such as log and log2. "
    "Any base will do, but the same for the lengths and the sizes.",
    hint=6,
)
def exponent_two_bases(got: float, expected: float, **given: Any) -> bool:
    steps = (math.log(2), math.log(10), math.log(10) / math.log(2))
    factors = (*steps, *(1 / step for step in steps))
    return any(math.isclose(got, expected * factor, rel_tol=1e-4) for factor in factors)


@misconception(
    "exponent_ends",
    replaces="growth_exponent",
    says="You use only the first and the last measurement. Each is a little off: fit all of them.",
    hint=7,
)
def exponent_ends(seq_lens: Sequence[int], sizes: Sequence[float]) -> float:
    x, y = _logs(seq_lens, sizes)
    return (y[-1] - y[0]) / (x[-1] - x[0])


@misconception(
    "exponent_last_two",
    replaces="growth_exponent",
    says="You use only the last two measurements. Each is a little off: fit all of them.",
    hint=7,
)
def exponent_last_two(seq_lens: Sequence[int], sizes: Sequence[float]) -> float:
    x, y = _logs(seq_lens, sizes)
    return (y[-1] - y[-2]) / (x[-1] - x[-2])


@misconception(
    "exponent_mean_of_steps",
    replaces="growth_exponent",
    says="You average the slopes from one point to the next. That is not the best line: a short "
    "step would count as much as a long one.",
    hint=7,
)
def exponent_mean_of_steps(seq_lens: Sequence[int], sizes: Sequence[float]) -> float:
    x, y = _logs(seq_lens, sizes)
    steps = range(len(x) - 1)
    return statistics.fmean((y[i + 1] - y[i]) / (x[i + 1] - x[i]) for i in steps)


@misconception(
    "exponent_without_logs",
    replaces="growth_exponent",
    says="You fit a line to the sizes themselves, so its slope is in bytes per token. Take "
    "logarithms first: then a power is a slope.",
    hint=6,
)
def exponent_without_logs(seq_lens: Sequence[int], sizes: Sequence[float]) -> float:
    return statistics.linear_regression(seq_lens, sizes).slope


@misconception(
    "exponent_log_of_lengths_alone",
    replaces="growth_exponent",
    says="You take logarithms of the lengths, but not of the sizes. A power is a slope only if "
    "both axes are logarithmic.",
    hint=6,
)
def exponent_log_of_lengths_alone(seq_lens: Sequence[int], sizes: Sequence[float]) -> float:
    return statistics.linear_regression([math.log(T) for T in seq_lens], sizes).slope


@misconception(
    "exponent_log_of_sizes_alone",
    replaces="growth_exponent",
    says="You take logarithms of the sizes, but not of the lengths. A power is a slope only if "
    "both axes are logarithmic.",
    hint=6,
)
def exponent_log_of_sizes_alone(seq_lens: Sequence[int], sizes: Sequence[float]) -> float:
    return statistics.linear_regression(seq_lens, [math.log(size) for size in sizes]).slope


@misconception(
    "exponent_through_origin",
    replaces="growth_exponent",
    says="You force your line through the origin, as if a single token took one byte. The "
    "constant must be free: subtract the means first.",
    hint=7,
)
def exponent_through_origin(seq_lens: Sequence[int], sizes: Sequence[float]) -> float:
    x, y = _logs(seq_lens, sizes)
    return sum(a * b for a, b in zip(x, y, strict=True)) / sum(a * a for a in x)


@misconception(
    "exponent_intercept",
    replaces="growth_exponent",
    says="You return where the line begins, log c. The power is its slope: np.polyfit, for one, "
    "returns the slope first.",
    hint=7,
)
def exponent_intercept(seq_lens: Sequence[int], sizes: Sequence[float]) -> float:
    return statistics.linear_regression(*_logs(seq_lens, sizes)).intercept


@misconception(
    "exponent_axes_exchanged",
    replaces="growth_exponent",
    says="You exchange the axes: your line gives the length by the size. It must give the size by "
    "the length, with log T as x and log size as y.",
    hint=7,
)
def exponent_axes_exchanged(seq_lens: Sequence[int], sizes: Sequence[float]) -> float:
    lengths, bytes_ = _logs(seq_lens, sizes)
    if len(set(sizes)) == 1:  # no slope
        return math.inf
    return statistics.linear_regression(bytes_, lengths).slope


@misconception(
    "growth_logs_in_place",
    replaces="growth_exponent",
    says="You write the logarithms into the caller's own sequences. Put them into new lists.",
    hint=6,
)
def growth_logs_in_place(seq_lens: Any, sizes: Any) -> float:
    for at in range(len(sizes)):
        seq_lens[at], sizes[at] = math.log(seq_lens[at]), math.log(sizes[at])
    return statistics.linear_regression(seq_lens, sizes).slope
