"""Bonus: measure what attention takes.

"Attention is quadratic in the sequence length." You have read it often; here
you measure it. Two small functions are enough: one says how many bytes a call
needs at its peak, the other which power of T such numbers follow.

With both you can test any attention: yours, PyTorch's or the one in tomorrow's
paper. The command

    grade trace memory_benchmark --out memory.svg

draws your measurements beside the lines of T and T^2.
"""

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def peak_bytes(
    attention: Callable[..., torch.Tensor],
    seq_len: int,
    d_model: int = 64,
    num_heads: int = 4,
    device: str = "cpu",
) -> int:
    """Measure the most memory that one call of `attention` takes at once.

    Draw q, k and v, each (1, num_heads, seq_len, d_model / num_heads), on the
    device, call attention(q, k, v) and return the largest number of bytes that
    its tensors took at any one moment, beyond the inputs.

    It is a peak, not a sum: freed memory no longer counts. Nor is it what is
    left at the end: the biggest tensors are usually gone by then. Measure
    every call by itself: nothing from an earlier call counts.

    Whether you count the three inputs and the output is up to you: they grow
    with T and are small beside what you want to see.

    >>> def wasteful(q, k, v):
    ...     table = torch.zeros(1000, 1000)  # 4 million bytes
    ...     del table
    ...     other = torch.zeros(500, 1000)  # 2 million more, but not at the same time
    ...     return v
    >>> round(peak_bytes(wasteful, seq_len=8) / 1e6, 1)
    4.0

    Traps:
    - tracemalloc, and the size of the process as the system sees it, do not
      help: PyTorch allocates its memory outside Python, and keeps what is
      freed.
    - A view has no memory of its own, but it keeps alive that of the tensor it
      looks at. What counts are storages.
    - Two ways that work: a profiler that records every allocation and release
      (torch.profiler has profile_memory=True), or a mode that sees the result
      of every operation, TorchDispatchMode, with a weakref for each storage
      to learn when it is gone. On a GPU torch.cuda keeps count itself.
    """
    ### BEGIN SOLUTION
    shape = (1, num_heads, seq_len, d_model // num_heads)
    q, k, v = (torch.randn(shape, device=device) for _ in range(3))
    given = {x.untyped_storage().data_ptr() for x in (q, k, v)}
    alive: dict[int, int] = {}  # the bytes of every live storage, by its address
    peak = 0

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            nonlocal peak
            result = function(*args, **(kwargs or {}))
            for tensor in tree_leaves(result):
                if not isinstance(tensor, torch.Tensor):
                    continue
                storage = tensor.untyped_storage()
                address = storage.data_ptr()
                if address not in given and address not in alive:  # else it is a view
                    alive[address] = storage.nbytes()
                    weakref.finalize(storage, alive.pop, address, None)
            peak = max(peak, sum(alive.values()))
            return result

    with Watch():  # type: ignore[no-untyped-call]
        attention(q, k, v)
    return peak
    ### END SOLUTION


def growth_exponent(seq_lens: Sequence[int], sizes: Sequence[float]) -> float:
    """Fit the power of T that these sizes follow.

        size = c * T^p   means   log(size) = log(c) + p * log(T)

    So on two logarithmic axes the measurements lie on a line, and its slope
    is p. Return the slope of the line that fits all of them best, in the
    least-squares sense:

        p = sum (x - mean x) (y - mean y) / sum (x - mean x)^2

    with x = log T and y = log size. There are at least two different lengths,
    and all sizes are positive.

    >>> round(growth_exponent([10, 20, 40], [5, 20, 80]), 6)
    2.0
    >>> round(growth_exponent([1, 10, 100], [1, 1, 100]), 6)
    1.0

    In the second example the steps have slopes 0 and 2: all points count, not
    only the last two.
    """
    ### BEGIN SOLUTION
    x = [math.log(length) for length in seq_lens]
    y = [math.log(size) for size in sizes]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    together = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return together / sum((a - mean_x) ** 2 for a in x)
    ### END SOLUTION
