"""Comparing answers: each `expect_...` returns nothing if the answer is right, else it raises.

The message never reveals how to compute the right answer. Answers are tensors of torch or arrays of
numpy, compared in the same way. Only functions that need torch import it, so a course of plain
Python or numpy never waits for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import combinations, islice
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from grader.checking.wording import (
    LINE,
    CheckFailed,
    apart,
    axis_names,
    capital,
    contrast,
    drawn,
    expect_sizes,
    extent,
    first_place,
    position,
    shorten,
)
from grader.types.comparison import Comparison
from grader.types.report import Way

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy
    import torch
    from torch import Tensor

    Values: TypeAlias = numpy.ndarray[Any, Any]
    Array: TypeAlias = Tensor | Values

# (rtol, atol) by the dtype of the answer; in half precision even for half-precision arithmetic.
TOLERANCES = {
    "float64": (1e-9, 1e-10),
    "float32": (1e-4, 1e-5),
    "float16": (4e-3, 4e-3),
    "bfloat16": (2e-2, 2e-2),
}
_ROUNDED = (1e-6, 1e-6)  # what float32 costs
EXACT = (0.0, 0.0)
ANY_NUMBER = (0.0, float("inf"))
COTANGENT_SEED = 1729
_SHOWN_VALUES = 1000  # of an array
_SHOWN_ENTRIES = 100  # of a list; a message has room for fewer
_ROOM = 4 * LINE  # characters of a value, more than `shorten` leaves
_PARAMETER_AXES = {"weight": "row column", "bias": "row"}  # by the end of a parameter's name


# The comparisons of the checks, if a caller collects them, as `grade verify` does.
_NOTED: ContextVar[list[Comparison] | None] = ContextVar("comparisons", default=None)

# What the running check expects its calls not to change.
_WATCHED: ContextVar[tuple[Array, ...]] = ContextVar("watched", default=())


def expect_shape(actual: Array, what: str = "", /, **axes: int) -> None:
    """Expect the shape given by the axes in keyword order: `expect_shape(out, B=2, T=3)`.

    If there are several results, `what` names this one: `expect_shape(out, "the output", B=2)`.
    """
    whose = f" of {what}" if what else ""
    shape = _array(actual, what or "the result").shape
    expect_sizes(f"The shape{whose} is wrong", [*axes.values()], shape, [*axes])


def expect_dtype(actual: Array, dtype: torch.dtype | type, what: str = "") -> None:
    """Expect this dtype, such as torch.float32 or numpy.float32; `what` names one of several."""
    if _array(actual, what or "the result").dtype != dtype:
        wanted = dtype.__name__ if isinstance(dtype, type) else str(dtype)
        of = f" of {what}" if what else ""
        raise contrast(f"The dtype{of} is wrong", wanted, str(actual.dtype), Way.DTYPE)


def expect_device(actual: Tensor, device: torch.device) -> None:
    """Expect this device; `cuda` and `cuda:0` are the same."""
    same_index = device.index is None or actual.device.index in (None, device.index)
    if actual.device.type != device.type or not same_index:
        raise contrast(
            "The result is on another device", str(device), str(actual.device), Way.DEVICE
        )


def expect_equal(
    actual: object, expected: object, what: str, *, same_types: bool = False, ordered: bool = True
) -> None:
    """Expect two plain values to be equal; `what` names the value to the learner: "the pairs".

    With `same_types`, a list does not equal a tuple of the same entries. Unless `ordered`, the
    entries of a list or a tuple may come in any order.
    """
    if _is_equal(actual, expected, same_types, ordered):
        return
    place, sides = "", [expected, actual]
    if max(len(_written(side)) for side in sides) > LINE:
        place, sides = _apart(expected, actual, same_types, ordered)
    want, got = (shorten(_written(side)) for side in sides)
    raise contrast(f"{capital(what)} came out wrong{place}", want, got)


def _is_equal(one: Any, other: Any, same_types: bool, ordered: bool = True) -> bool:
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        same = isinstance(one, list) == isinstance(other, list)
        if len(one) != len(other) or (same_types and not same):
            return False
        if not ordered:
            return not _beyond(one, other, same_types)
        return all(_is_equal(*pair, same_types) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and not _beyond(one, other, same_types)
    if max(_count(one), _count(other)) > 1:
        return False  # no single True or False would come of it, and perhaps very late
    try:
        return bool(one == other)
    except (ValueError, RuntimeError):  # an array, which says so for each of its entries
        return False


def _apart(one: Any, other: Any, same_types: bool, ordered: bool) -> tuple[str, list[Any]]:
    """Where two long values differ, "" if nowhere in particular, and what differs."""
    kinds: list[Any] = [(list, tuple), dict, (set, frozenset)]
    kind = next((kind for kind in kinds if isinstance(one, kind)), ())
    if not isinstance(other, kind):
        return "", [one, other]
    if kind == (list, tuple) and ordered:
        same = [_is_equal(*pair, same_types) for pair in zip(one, other, strict=False)]
        at = [*same, False].index(False)
        return f" at [{at}]", [side[at : at + 1] for side in (one, other)]
    beyond = [_beyond(one, other, same_types), _beyond(other, one, same_types)]
    return ": these entries differ", beyond


def _beyond(one: Any, other: Any, same_types: bool) -> Any:
    """The entries of `one` that `other` lacks; in lists, the first that it has less often."""
    if isinstance(one, dict):
        return {
            key: value
            for key, value in one.items()
            if key not in other or not _is_equal(value, other[key], same_types)
        }
    if not isinstance(one, (list, tuple)):
        return one - other
    return list(islice(_unmatched(one, other, same_types), _SHOWN_ENTRIES))


def _unmatched(one: Iterable[Any], other: Iterable[Any], same_types: bool) -> Iterator[Any]:
    left = list(other)
    for each in one:
        equal = (at for at, known in enumerate(left) if _is_equal(each, known, same_types))
        found = next(equal, None)
        if found is None:
            yield each
        else:
            del left[found]


def _written(value: Any) -> str:
    """A value as code, or its beginning if it is much longer than a line.

    The entries of a set, which has no order, come in one order. A large array is shown by its
    shape: Python may need minutes for all its values, or for thousands of arrays.
    """
    form: Any = type(value).__repr__
    if form is list.__repr__:
        return f"[{_joined(map(_written, value))}]"
    if form is tuple.__repr__:
        return f"({_joined(map(_written, value))}{',' * (len(value) == 1)})"
    if form is dict.__repr__:
        return f"{{{_joined(f'{key!r}: {_written(each)}' for key, each in value.items())}}}"
    if isinstance(value, (set, frozenset)) and value:
        return f"{{{', '.join(sorted(map(repr, value)))}}}"
    if isinstance(value, SimpleNamespace):  # an object of the learner's
        name = getattr(value, "_type_name", "namespace")
        return f"{name}({_joined(f'{key}={_written(each)}' for key, each in vars(value).items())})"
    if _count(value) > _SHOWN_VALUES:
        return f"{type(value).__name__} of shape {list(value.shape)}"
    return repr(value)


def _joined(parts: Iterable[str]) -> str:
    """The parts with commas between them, as many as a message has room for."""
    text = ""
    for part in parts:
        text += f", {part}" if text else part
        if len(text) > _ROOM:
            break
    return text


def _count(value: Any) -> int:
    """How many values an array has; 1 for any other value."""
    is_array = hasattr(value, "dtype") and hasattr(value, "shape")
    return math.prod(value.shape) if is_array else 1


def expect_no_constant(actual: Array, **inputs: Array) -> None:
    """Expect more than one number, and no unchanged input: for a check that compares no values."""
    values = wide(actual)
    if values.size > 1 and (values == values.flat[0]).all():
        got = f"{values.flat[0]:.6g} everywhere"
        raise contrast("All numbers of the result are the same", "different", got, Way.VALUES)
    for name, array in inputs.items():
        if values.shape == tuple(array.shape) and (values == wide(array)).all():
            got = f"{name} as it was given"
            raise contrast("Nothing was computed", f"not {name} itself", got, Way.VALUES)


def expect_all_different(arrays: Mapping[str, Array], otherwise: str) -> None:
    """Expect no two of these arrays to be equal; `otherwise` is the message's first line.

    The message calls the two by their names here.
    """
    for (one, first), (two, second) in combinations(arrays.items(), 2):
        equal: Any = first == second if first.shape == second.shape else None
        if equal is not None and equal.all():
            raise CheckFailed(f"{otherwise}\n  first   {one}\n  second  {two}")


def expect_close(
    actual: Array | float,
    expected: Array | float,
    *,
    axes: str,
    rtol: float | None = None,
    atol: float | None = None,
    what: str = "the result",
) -> None:
    """Expect the shape and, up to the tolerance of the answer's dtype, the values of `expected`.

    The comparison is in float64 on the CPU. NaN and infinities must be at the positions where
    `expected` has them. A number is an array without axes.
    """
    names = axes.split()
    actual, expected = _array(actual, what), _array(expected)
    if len(names) != expected.ndim:
        raise ValueError(f"axes {axes!r} name {len(names)} axes, expected has {expected.ndim}")
    _compare(actual, expected, names, _tolerance(actual.dtype, rtol, atol), what)


def expect_results(
    actual: Sequence[Array],
    expected: Sequence[Array],
    axes: Mapping[str, str],
    when: str = "",
    *,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Expect several results at once, each as with expect_close.

    `axes` holds the results' names and axes in order: `{"the output": "B T D"}`. The message puts
    `when` after the name: " of the second call".
    """
    for got, want, (what, names) in zip(actual, expected, axes.items(), strict=True):
        named = dict(zip(names.split(), want.shape, strict=True))
        expect_shape(got, what + when, **named)
        one = what.removesuffix("s")  # a message about "the weights" is about one weight
        expect_close(got, want, axes=names, rtol=rtol, atol=atol, what=one + when)


def expect_within(
    actual: Array | float,
    expected: Array | float,
    leeway: Array | float,
    *,
    axes: str,
    what: str = "the result",
) -> None:
    """Expect the shape, finite numbers, and none further off than its own leeway.

    `leeway` broadcasts to `expected`: use it for a tolerance that follows from how numbers round.
    """
    import numpy

    names = axes.split()
    actual, expected, leeway = _array(actual, what), _array(expected), _array(leeway)
    _compare(actual, expected, names, ANY_NUMBER, what)
    got, want = wide(actual), wide(expected)
    room = numpy.broadcast_to(wide(leeway), want.shape)
    _note(got, want, room, f"up to {room.max(initial=0.0):.2g}", "within")
    wrong = abs(got - want) > room
    if not wrong.any():
        return
    where = first_place(wrong)
    place = f", at {position(where, names)}" if where else ""
    share = extent(got, want, ~wrong, as_bool=False)
    right, wrong_one = apart(want[where], got[where])
    raise contrast(
        f"{capital(what)} is further off than rounding explains{place}{share}",
        f"{right}, give or take {room[where]:.2g}",
        wrong_one,
        Way.VALUES,
    )


def is_between(value: float, low: float, high: float) -> bool:
    """Whether a number is in a range, False for NaN; for a check's own `assert`.

    A right answer is expected near the middle of the range.
    """
    import numpy

    middle, room = numpy.float64(low + high) / 2, numpy.float64(high - low) / 2
    _note(numpy.float64(value), middle, room, f"{low:.4g} to {high:.4g}", "between")
    return low <= value <= high


def are_close(
    actual: Array, expected: Array, *, rtol: float, atol: float, where: Array | None = None
) -> Any:
    """Where the values are close to the expected ones, or `where` is False.

    It returns booleans, in numpy or torch as `actual` is; for a check's own `assert`.
    """
    import numpy

    got, want = numpy.broadcast_arrays(wide(actual), wide(expected))
    close = numpy.isclose(got, want, rtol=rtol, atol=atol)
    if where is not None:
        elsewhere = ~numpy.broadcast_to(wide(where) != 0, got.shape)
        close, got = close | elsewhere, numpy.where(elsewhere, want, got)
    _note(got, want, atol + rtol * abs(want), _told(rtol, atol), "close")
    if isinstance(actual, numpy.ndarray):
        return close
    import torch

    return torch.from_numpy(close)


@contextmanager
def comparisons() -> Iterator[list[Comparison]]:
    """Collect the comparisons in the block: how far off each answer is, in tolerances."""
    noted: list[Comparison] = []
    before = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(before)


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
    reference. A missing gradient counts as zero. `axes` names the axes of an input that is neither
    drawn by `rand` nor a layer's weight or bias. `where` holds the positions of an input at which
    to compare its gradient; at the others any finite number will do.
    """
    import torch

    expect_sizes("The shape is wrong", expected.shape, actual.shape)
    for (name, tensor), got, want in zip(
        inputs.items(), _gradients(actual, inputs), _gradients(expected, inputs), strict=True
    ):
        wanted = torch.zeros_like(tensor) if want is None else want
        if got is None and bool(wanted.any()):
            raise contrast(
                f"No gradient reaches {name}",
                f"a result that depends on {name} through torch's operations",
                f"a result that is cut off from {name}",
                Way.GRADIENT,
            )
        given = torch.zeros_like(tensor) if got is None else got
        if where is not None and name in where:
            given = torch.where(where[name] | ~given.isfinite(), given, wanted)
        names = axis_names(
            tensor, (axes or {}).get(name) or _PARAMETER_AXES.get(name.rpartition(".")[2])
        )
        _compare(
            given,
            wanted,
            names,
            _tolerance(tensor.dtype, rtol, atol),
            f"the gradient of {name}",
            Way.GRADIENT,
        )


@contextmanager
def expect_unchanged(**inputs: Array) -> Iterator[None]:
    """Expect the calls inside the block not to change these tensors or arrays.

    Other arguments may change unnoticed: the check compares only these.
    """
    for name, value in inputs.items():
        if not hasattr(value, "dtype"):
            kind = type(value).__name__
            raise TypeError(f"expect_unchanged watches tensors and arrays, not {name}, a {kind}")
    before = {name: wide(array).copy() for name, array in inputs.items()}
    watched = _WATCHED.set((*_WATCHED.get(), *inputs.values()))
    try:
        yield
    finally:
        _WATCHED.reset(watched)
    for name, array in inputs.items():
        was, now = before[name], wide(array)
        expect_sizes(f"Your code changes {name} in place", was.shape, now.shape, (), Way.IN_PLACE)
        changed = (was != now) & ~((was != was) & (now != now))  # NaN stays NaN
        if changed.any():
            where = first_place(changed)
            as_bool = str(array.dtype).endswith("bool")
            old, new = apart(was[where].item(), now[where].item(), as_bool)
            raise CheckFailed(
                f"Your code changes {name} in place, at {position(where, axis_names(array))}\n"
                f"  before    {old}\n  after     {new}",
                Way.IN_PLACE,
            )


def is_watched(array: Array) -> bool:
    """Whether this is, or shares memory with, an argument of the current `expect_unchanged`."""
    return any(_memory(array) == _memory(other) for other in _WATCHED.get())


def _memory(array: Array) -> int:
    """The address at which the memory below an array begins."""
    if hasattr(array, "untyped_storage"):
        return array.untyped_storage().data_ptr()
    while array.base is not None:
        array = array.base
    return int(array.__array_interface__["data"][0])


@contextmanager
def expect_raises(kind: type[Exception], because: str) -> Iterator[None]:
    """Expect an error of this kind inside the block; `because` tells the learner the reason."""
    try:
        yield
    except kind:
        return
    except (CheckFailed, NotImplementedError):  # our own verdict, or a stub that is not started
        raise
    except Exception as error:
        name = _builtin_name(error)
        if getattr(error, "is_answer", False):
            raise contrast(because, kind.__name__, "no error", Way.NO_ERROR) from error
        if name is None:  # no answer at all, such as a timeout: the engine has its own words
            raise
        first_line = str(error).strip().partition("\n")[0].removeprefix(name).lstrip(": ")
        got = shorten(f"{name}: {first_line}") if first_line else name
        raise contrast(because, kind.__name__, got, Way.NO_ERROR) from error
    raise contrast(because, kind.__name__, "no error", Way.NO_ERROR)


def _gradients(output: Tensor, inputs: Mapping[str, Tensor]) -> tuple[Tensor | None, ...]:
    """The gradient of each input for one fixed random cotangent, None if none arrives."""
    import torch

    if not output.requires_grad:
        return (None,) * len(inputs)
    generator = torch.Generator().manual_seed(COTANGENT_SEED)
    cotangent = torch.randn(output.shape, generator=generator).to(output.dtype).to(output.device)
    # A weighted sum, because torch imports its symbolic shapes for grad_outputs: 0.4 s.
    return torch.autograd.grad(
        (output * cotangent).sum(), list(inputs.values()), retain_graph=True, allow_unused=True
    )


def _tolerance(dtype: object, rtol: float | None, atol: float | None) -> tuple[float, float]:
    default_rtol, default_atol = TOLERANCES.get(_name(dtype), EXACT)
    return (default_rtol if rtol is None else rtol, default_atol if atol is None else atol)


def _array(value: Array | float, what: str = "") -> Array:
    """A number as an array without axes, or the array.

    Raises CheckFailed for anything else if it is the learner's, who knows it as `what`, and
    TypeError if it is the author's.
    """
    import numpy

    if isinstance(value, (int, float, complex)):
        return numpy.asarray(value)
    if hasattr(value, "dtype"):
        return value
    right = "a tensor, an array or a number"
    kind = "None" if value is None else f"a {type(value).__name__}"
    if what:
        raise contrast(f"{capital(what)} has the wrong type", right, kind, Way.DTYPE)
    raise TypeError(f"expected {right}, not {kind}: expect_equal compares other values")


def wide(array: Array) -> Values:
    """The values of a tensor or array in double precision, on the CPU."""
    import numpy

    is_complex = "complex" in str(array.dtype)
    if not isinstance(array, numpy.ndarray):
        import torch

        double = torch.complex128 if is_complex else torch.float64
        array = array.detach().cpu().to(double).resolve_conj().resolve_neg().numpy()
    return numpy.asarray(array, dtype=numpy.complex128 if is_complex else numpy.float64)


def _compare(
    actual: Array,
    expected: Array,
    names: Sequence[str],
    tolerance: tuple[float, float],
    what: str,
    way: Way = Way.VALUES,
) -> None:
    """Raise CheckFailed at the first position where `actual` differs from `expected`."""
    import numpy

    expect_sizes(f"The shape of {what} is wrong", expected.shape, actual.shape, names)
    got, want = wide(actual), wide(expected)
    if numpy.iscomplexobj(got) and not numpy.iscomplexobj(want):
        raise contrast(f"{capital(what)} is complex", "real numbers", str(actual.dtype), Way.DTYPE)
    if numpy.isnan(want).any():  # no reference returns NaN: the learner's code made it
        raise CheckFailed(f"{capital(what)} holds NaN", way)
    rtol, atol = tolerance
    if tolerance == ANY_NUMBER:
        close = (got == want) | numpy.isfinite(got) & numpy.isfinite(want)
    else:
        close = numpy.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
        if tolerance != EXACT:
            usual = TOLERANCES.get(_name(actual.dtype), EXACT)
            is_usual = rtol <= usual[0] and atol <= usual[1]
            _note(got, want, atol + rtol * abs(want), _told(rtol, atol), "close", is_usual)
    if close.all():
        return
    where = first_place(~close)
    as_bool = str(actual.dtype).endswith("bool") and str(expected.dtype).endswith("bool")
    verb = "holds NaN" if numpy.isnan(got[where]) else "is wrong"
    is_double = _name(actual.dtype) == "float64" and tolerance == TOLERANCES["float64"]
    if is_double and numpy.allclose(got, want, *_ROUNDED):
        verb = "is too imprecise for float64"
    place = f" at {position(where, names)}" if where else ""
    first = f"{capital(what)} {verb}{place}{extent(got, want, close, as_bool)}"
    axes = zip(names, expected.shape, strict=False)
    raise CheckFailed(f"{first}\n{drawn(want, got, close, where, names, as_bool)}", way, axes)


def _note(got: Any, want: Any, room: Any, told: str, kind: str, is_usual: bool = False) -> None:
    """Add a comparison for `comparisons`, if it is collecting."""
    noted = _NOTED.get()
    if noted is None:
        return
    import numpy

    with numpy.errstate(all="ignore"):
        off = numpy.where(got == want, 0.0, abs(got - want))
        share = numpy.where(off == 0.0, 0.0, off / room)
    largest = float(share.max(initial=0.0))  # NaN if any share is
    finite = largest if numpy.isfinite(largest) else float("inf")
    noted.append(Comparison(kind, told, finite, is_usual))


def _name(dtype: object) -> str:
    return str(dtype).removeprefix("torch.")


def _told(rtol: float, atol: float) -> str:
    """A tolerance as an author writes it."""
    return f"rtol={rtol:g}, atol={atol:g}"


def _builtin_name(error: Exception) -> str | None:
    """The name of the builtin error behind this one, whatever class carried it here."""
    for kind in type(error).__mro__:
        if kind.__module__ == "builtins" and kind not in (Exception, BaseException, object):
            return kind.__name__
    return None
