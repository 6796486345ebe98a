"""Inputs that remember the names of their axes, and which of them a device can hold."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import numpy
    import torch
    from torch import Tensor

FEW = 12  # numbers of an input; this many are easy to read


def gpu_or_skip(device: torch.device) -> torch.device:
    """The run's device if it is an NVIDIA GPU; if not, skips the rest of a check."""
    if device.type != "cuda":
        pytest.skip("only with a GPU (--device cuda)")
    return device


def skip_unless_supported(dtype: torch.dtype, device: torch.device) -> None:
    """Skip the rest of a check if the run's device lacks the dtype (Apple's has no float64)."""
    if device.type == "mps" and str(dtype) == "torch.float64":
        pytest.skip("this GPU has no float64")


def draw(
    generator: torch.Generator,
    device: torch.device,
    dtype: torch.dtype | None = None,
    grad: bool = False,
    scale: float = 1.0,
    /,
    **axes: int,
) -> Tensor:
    """Draw a leaf tensor of normal(0, scale) values that remembers the names of its axes.

    The values are drawn on the CPU, so a seed gives the same input on every device. Values of a
    small tensor have one decimal, because a learner may want to compute with them.
    """
    import torch

    dtype = dtype or torch.float32
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    values = torch.randn(tuple(axes.values()), generator=generator, dtype=wide) * scale
    if values.numel() <= FEW:
        values = (values * 10).round() / 10
    tensor = values.to(dtype).to(device).requires_grad_(grad)
    tensor.axes = tuple(axes)  # type: ignore[attr-defined]
    return tensor


def draw_array(generator: numpy.random.Generator, scale: float = 1.0, /, **axes: int) -> Any:
    """Draw a numpy array of normal(0, scale) values that remembers the names of its axes."""
    array = _named_array()(tuple(axes.values()))
    array[...] = generator.normal(scale=scale, size=array.shape)
    if array.size <= FEW:
        array[...] = array.round(1)
    array.axes = tuple(axes)
    return array


@cache  # only functions that need numpy import it
def _named_array() -> Any:
    import numpy

    class NamedArray(numpy.ndarray[Any, Any]):
        axes: tuple[str, ...] = ()

    return NamedArray
