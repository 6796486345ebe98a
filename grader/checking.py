"""The language of the hidden checks: everything that a course author may expect of an answer.

Each `expect_...` is silent when the answer is right and raises CheckFailed when it is wrong. The
message is written for the learner: a first line that stands alone, then `expected` and `got`, with
named axes and the first position that differs. It never tells how the right answer is computed.

Two fixtures belong to the language too: `rand(B=2, T=3, D=8)` draws an input (see `draw`) and
`submission` holds the learner's functions; the engine provides both.

torch is imported by those who need it: a course of plain Python or numpy never waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# (rtol, atol) by the dtype of the answer. Half precision admits answers computed in it throughout.
TOLERANCES = {
    "torch.float64": (1e-9, 1e-10),
    "torch.float32": (1e-4, 1e-5),
    "torch.float16": (4e-3, 4e-3),
    "torch.bfloat16": (2e-2, 2e-2),
}
EXACT = (0.0, 0.0)
COTANGENT_SEED = 1729
ROW_WIDTH = 8  # a last axis of at most so many values is shown whole
LINE = 76  # the engine may indent a message by up to four columns


class CheckFailed(AssertionError):
    """The learner's answer is wrong; the message says how."""


def expect_shape(actual: Tensor, /, **axes: int) -> None:
    """Expect the shape given by the axes in keyword order: `expect_shape(out, B=2, T=3)`."""
    if tuple(actual.shape) != tuple(axes.values()):
        raise CheckFailed(
            _contrast("The shape is wrong", _sizes(axes.values(), list(axes)), _sizes(actual.shape))
        )


def expect_dtype(actual: Tensor, dtype: torch.dtype) -> None:
    """Expect this dtype."""
    if actual.dtype != dtype:
        raise CheckFailed(_contrast("The dtype is wrong", str(dtype), str(actual.dtype)))


def expect_device(actual: Tensor, device: torch.device) -> None:
    """Expect this device; `cuda` and `cuda:0` are the same."""
    same_index = device.index is None or actual.device.index in (None, device.index)
    if actual.device.type != device.type or not same_index:
        raise CheckFailed(
            _contrast("The result is on another device", str(device), str(actual.device))
        )


def expect_equal(actual: object, expected: object, what: str) -> None:
    """Expect two plain values to be equal; `what` names the value to the learner."""
    if actual != expected:
        raise CheckFailed(_contrast(f"{_capital(what)} is wrong", repr(expected), repr(actual)))


def expect_close(
    actual: Tensor,
    expected: Tensor,
    *,
    axes: str,
    rtol: float | None = None,
    atol: float | None = None,
    what: str = "the result",
) -> None:
    """Expect the shape and, up to the tolerance of the answer's dtype, the values of `expected`.

    The comparison is in float64 on the CPU. NaN and infinities must be where `expected` has them.
    """
    names = axes.split()
    if len(names) != expected.dim():
        raise ValueError(f"axes {axes!r} name {len(names)} axes, expected has {expected.dim()}")
    _compare(actual, expected, names, _tolerance(actual.dtype, rtol, atol), what)


def expect_gradients_close(
    actual: Tensor,
    expected: Tensor,
    inputs: Mapping[str, Tensor],
    *,
    axes: Mapping[str, str] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    where: Mapping[str, Tensor] | None = None,
) -> None:
    """Expect the gradients of `actual` with respect to each input to be those of `expected`.

    Both are outputs computed from the same leaf tensors `inputs`, by the learner and by the
    reference. No gradient at all counts as zero. `axes` names the axes of an input where `rand`
    did not draw it. `where` says of an input at which positions its gradient is compared; at the
    others any finite number will do.
    """
    import torch

    if actual.shape != expected.shape:
        raise CheckFailed(
            _contrast("The shape is wrong", _sizes(expected.shape), _sizes(actual.shape))
        )
    for (name, tensor), got, want in zip(
        inputs.items(), _gradients(actual, inputs), _gradients(expected, inputs), strict=True
    ):
        wanted = torch.zeros_like(tensor) if want is None else want
        if got is None and bool(wanted.any()):
            raise CheckFailed(
                f"No gradient reaches {name}\n"
                f"  expected  a result that depends on {name} through torch's operations\n"
                f"  got       a result that is cut off from {name}"
            )
        given = torch.zeros_like(tensor) if got is None else got
        if where is not None and name in where:
            given = torch.where(where[name] | ~given.isfinite(), given, wanted)
        names = _axis_names(tensor, (axes or {}).get(name))
        _compare(
            given,
            wanted,
            names,
            _tolerance(tensor.dtype, rtol, atol),
            f"the gradient of {name}",
        )


@contextmanager
def expect_unchanged(**inputs: Tensor) -> Iterator[None]:
    """Expect that the calls inside the block leave these tensors as they are."""
    before = {name: tensor.detach().clone() for name, tensor in inputs.items()}
    yield
    for name, tensor in inputs.items():
        was, now = before[name].cpu(), tensor.detach().cpu()
        if was.shape != now.shape:
            raise CheckFailed(
                _contrast(
                    f"Your code changes {name} in place", _sizes(was.shape), _sizes(now.shape)
                )
            )
        changed = (was != now) & ~(was.isnan() & now.isnan())
        if changed.any():
            where = _first(changed)
            raise CheckFailed(
                f"Your code changes {name} in place, at {_position(where, _axis_names(tensor))}\n"
                f"  before  {_number(was[where].item())}\n"
                f"  after   {_number(now[where].item())}"
            )


@contextmanager
def expect_raises(kind: type[Exception], because: str) -> Iterator[None]:
    """Expect an error of this kind inside the block; `because` tells the learner why it is due."""
    try:
        yield
    except kind:
        return
    except (CheckFailed, NotImplementedError):  # our own verdict; a stub that is not started
        raise
    except Exception as error:
        name = _builtin_name(error)
        if name is None:  # no answer at all, such as a time-out: the engine has its own words
            raise
        first_line = str(error).strip().partition("\n")[0].removeprefix(name).lstrip(": ")
        got = _shorten(f"{name}: {first_line}") if first_line else name
        raise CheckFailed(_contrast(because, kind.__name__, got)) from error
    raise CheckFailed(_contrast(because, kind.__name__, "no error"))


def skip_unless_supported(dtype: torch.dtype, device: torch.device) -> None:
    """Skip the rest of a check where the run's device lacks the dtype (Apple's has no float64)."""
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

    The values are drawn on the CPU, so a seed gives the same input on every device.
    """
    import torch

    dtype = dtype or torch.float32
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    values = torch.randn(tuple(axes.values()), generator=generator, dtype=wide) * scale
    tensor = values.to(dtype).to(device).requires_grad_(grad)
    tensor.axes = tuple(axes)  # type: ignore[attr-defined]
    return tensor


# --- comparing -------------------------------------------------------------------------------


def _gradients(output: Tensor, inputs: Mapping[str, Tensor]) -> tuple[Tensor | None, ...]:
    """The gradient of each input for one fixed random cotangent, None where none arrives."""
    import torch

    if not output.requires_grad:
        return (None,) * len(inputs)
    generator = torch.Generator().manual_seed(COTANGENT_SEED)
    cotangent = torch.randn(output.shape, generator=generator).to(output.dtype).to(output.device)
    # A weighted sum in place of grad_outputs, for which torch imports its symbolic shapes: 0.4 s.
    return torch.autograd.grad(
        (output * cotangent).sum(), list(inputs.values()), retain_graph=True, allow_unused=True
    )


def _tolerance(dtype: torch.dtype, rtol: float | None, atol: float | None) -> tuple[float, float]:
    default_rtol, default_atol = TOLERANCES.get(str(dtype), EXACT)
    return (default_rtol if rtol is None else rtol, default_atol if atol is None else atol)


def _compare(
    actual: Tensor,
    expected: Tensor,
    names: Sequence[str],
    tolerance: tuple[float, float],
    what: str,
) -> None:
    """Raise CheckFailed at the first position where `actual` is not `expected`."""
    import torch

    if actual.shape != expected.shape:
        raise CheckFailed(
            _contrast(
                f"The shape of {what} is wrong",
                _sizes(expected.shape, names),
                _sizes(actual.shape),
            )
        )
    if actual.is_complex() and not expected.is_complex():
        raise CheckFailed(
            _contrast(f"{_capital(what)} is complex", "real numbers", str(actual.dtype))
        )
    got = actual.detach().cpu().to(torch.float64)
    want = expected.detach().cpu().to(torch.float64)
    if want.isnan().any():  # no reference gives NaN: the learner's code gave or made it
        raise CheckFailed(f"{_capital(what)} holds NaN")
    rtol, atol = tolerance
    close = torch.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
    if close.all():
        return
    where = _first(~close)
    as_bool = actual.dtype == torch.bool and expected.dtype == torch.bool
    verb = "holds NaN" if got[where].isnan() else "is wrong"
    place = f" at {_position(where, names)}" if where else ""
    rows = _rows(want, got, where, as_bool)
    raise CheckFailed(
        _contrast(f"{_capital(what)} {verb}{place}", *rows) + _extent(got, want, close, as_bool)
    )


def _first(wrong: Tensor) -> tuple[int, ...]:
    """The first position that is True, in row-major order."""
    return tuple(int(index) for index in wrong.nonzero()[0])


def _extent(got: Tensor, want: Tensor, close: Tensor, as_bool: bool) -> str:
    """How much of the tensor is wrong, as one more line of the message."""
    if close.numel() == 1:
        return ""
    count = int((~close).sum())
    line = f"\n  {count} of {close.numel()} values are wrong"
    gap = (got - want).abs()[~close]
    gap = gap[gap.isfinite()]
    if as_bool or gap.numel() == 0:
        return line
    return f"{line}, by at most {gap.max().item():.3g}"


# --- wording ---------------------------------------------------------------------------------


def _contrast(summary: str, expected: str, got: str) -> str:
    return f"{summary}\n  expected  {expected}\n  got       {got}"


def _sizes(shape: Any, names: Sequence[str] = ()) -> str:
    """A shape as [B=2, T=3], or [2, 3] where the axes have no names."""
    if not names:
        return str(list(shape))
    return "[" + ", ".join(f"{name}={size}" for name, size in zip(names, shape, strict=True)) + "]"


def _axis_names(tensor: Tensor, axes: str | None = None) -> list[str]:
    """The names given, or else those that `rand` has noted, or else none."""
    names = list(getattr(tensor, "axes", ())) if axes is None else axes.split()
    return names if len(names) == tensor.dim() else []


def _position(where: Sequence[int], names: Sequence[str]) -> str:
    """A position as B=0, T=2, or [0, 2] where the axes have no names."""
    return _sizes(where, names).strip("[]") if names else _sizes(where)


def _rows(want: Tensor, got: Tensor, where: tuple[int, ...], as_bool: bool) -> tuple[str, str]:
    """The expected value and the one that came, each with its row along the last axis if short."""
    values = [_number(side[where].item(), as_bool) for side in (want, got)]
    if values[0] == values[1]:  # they differ beyond the digits that are shown
        values = [repr(side[where].item()) for side in (want, got)]
    width = max(map(len, values))
    if not where or not 1 < want.shape[-1] <= ROW_WIDTH:
        return values[0], values[1]
    lines = [
        f"{value:<{width}}  in the row  [{_listed(side[where[:-1]].tolist(), as_bool)}]"
        for value, side in zip(values, (want, got), strict=True)
    ]
    if max(map(len, lines)) > LINE - len("  expected  "):
        return values[0], values[1]
    return lines[0], lines[1]


def _listed(values: Sequence[float], as_bool: bool) -> str:
    return ", ".join(_number(value, as_bool, digits=3) for value in values)


def _number(value: float | bool, as_bool: bool = False, digits: int = 6) -> str:
    if as_bool or isinstance(value, bool):
        return str(bool(value))
    return f"{value:.{digits}g}"


def _capital(text: str) -> str:
    """A capital for `the result`, none for a name such as `d_k`."""
    return "T" + text[1:] if text.startswith("the ") else text


def _shorten(text: str) -> str:
    room = 3 * (LINE - len("  expected  "))  # the screen breaks it into lines
    return text if len(text) <= room else text[: room - 1] + "…"


def _builtin_name(error: Exception) -> str | None:
    """The name of the builtin error that this one is, whatever class carried it here."""
    for kind in type(error).__mro__:
        if kind.__module__ == "builtins" and kind not in (Exception, BaseException, object):
            return kind.__name__
    return None
