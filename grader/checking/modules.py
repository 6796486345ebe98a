"""What a check may expect of the learner's modules: parameters, starting values and dropout.

A module here is the learner's, in a process of its own, or any nn.Module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grader.checking.comparing import (
    are_close,
    expect_all_different,
    expect_close,
    expect_gradients_close,
    is_between,
)
from grader.checking.wording import CheckFailed, contrast, expect_sizes
from grader.types.report import Way

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from grader.checking.fixtures import Module, Rand

Shapes = Mapping[str, Sequence[int]]

_NOTHING = (
    "layers count if __init__ sets each as an attribute, such as self.layer = nn.Linear(4, 4); "
    "those in a list or made in forward do not, nor do plain tensors"
)
_TOO_MUCH = (
    "layers, nn.Parameter and buffers count here; a plain attribute does not, such as "
    "self.scale = 0.5"
)
_STANDARD_ERRORS = 8  # starting values may be off by this many: chance alone fails no answer
_ENOUGH = 150  # pairs expected to differ: of this many, more than half do, whatever the draw


def linear_shapes(layers: Shapes, bias: bool = True) -> dict[str, tuple[int, ...]]:
    """The shapes of the parameters of nn.Linear layers, by name.

    `layers` gives the rows (outputs) and columns (inputs) of each layer's weight.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for name, (rows, columns) in layers.items():
        shapes[f"{name}.weight"] = (rows, columns)
        if bias:
            shapes[f"{name}.bias"] = (rows,)
    return shapes


def draw_state(rand: Rand, shapes: Shapes, dtype: torch.dtype | None = None) -> dict[str, Tensor]:
    """Draw a state of these shapes: weights that keep the scale of their input, and large biases.

    The default dtype is float32.
    """
    state = {}
    for name, shape in shapes.items():
        if len(shape) == 2:
            row, column = shape
            state[name] = rand(row=row, column=column, scale=column**-0.5, dtype=dtype)
        else:
            state[name] = rand(row=shape[0], scale=0.5, dtype=dtype)
    return state


def with_state(module: Module, state: Mapping[str, Tensor], *, evaluate: bool = True) -> Module:
    """The module with these parameters, on their device; after eval() unless `evaluate` is False.

    Everything else in the module keeps its values. If the state does not fit, the message names the
    parameters that are missing, have another shape, or are lazy and still have none.
    """
    missing: object = True
    try:
        missing = module.load_state_dict(dict(state), strict=False)
    finally:
        if missing:
            wanted = {name: tuple(tensor.shape) for name, tensor in state.items()}
            expect_parameters(named_parameters(module), wanted, others=True)
    if isinstance(missing, list) and missing:
        found = named_parameters(module)
        layers = {name.rpartition(".")[0] for name in state}
        lazy = [n for n in missing if n not in found and n.rpartition(".")[0] in layers]
        some = next(iter(state.values()))  # any tensor will do
        expect_parameters({**dict.fromkeys(lazy, some), **state}, wanted)
    device = next(iter(state.values())).device
    if device.type != "cpu":
        module.to(device)
    if evaluate:
        module.eval()
    return module


def named_parameters(module: Module) -> dict[str, Tensor]:
    """The parameters of a module by name, without lazy ones that have no shape yet."""
    from torch.nn.parameter import is_lazy

    return {name: each for name, each in module.named_parameters() if not is_lazy(each)}


def trained_parameters(module: Module, state: Mapping[str, Any]) -> dict[str, Tensor]:
    """The parameters of these names. Expects these shapes, and that all can learn.

    If you pass the state that the module was given, its values are expected too: a module that
    shows other values, such as zeros, would choose what a check compares its answers with.
    """
    found = named_parameters(module)
    shapes = {name: getattr(each, "shape", each) for name, each in state.items()}
    expect_parameters(found, shapes, others=True)
    frozen = [name for name in state if not found[name].requires_grad]
    if frozen:
        raise CheckFailed(f"A frozen parameter cannot learn\n  frozen  {_listed(frozen)}")
    for name, given in state.items():
        if hasattr(given, "shape") and not given.equal(found[name].to(given)):
            raise CheckFailed(
                f"{name} has other values than those that it was given\n"
                "  in words  load_state_dict() must copy them, and named_parameters() show them",
                Way.VALUES,
            )
    return {name: found[name] for name in state}


def expect_parameters(
    found: Mapping[str, Tensor],
    shapes: Shapes,
    *,
    others: bool = False,
    where: str = "named_parameters()",
    when: str = "",
) -> None:
    """Expect tensors of these names and shapes in `found`, and no others unless `others`.

    `where` names the origin of `found`, and `when` ends the first line of the message.
    """
    missing = [name for name in shapes if name not in found]
    extra = [name for name in found if name not in shapes]
    if missing or (extra and not others):
        label = "found     " if others else "unexpected"
        is_own = not missing and not any("." in name for name in extra)
        words = (_TOO_MUCH if is_own else "") if found else _NOTHING
        raise CheckFailed(
            (f"The names in {where} are wrong" if found else f"{where} is empty")
            + when
            + (f"\n  missing     {_listed(missing)}" if missing else "")
            + (f"\n  {label}  {_listed(extra)}" if extra else "")
            + (f"\n  in words    {words}" if words else ""),
            Way.SHAPE,
        )
    for name, shape in shapes.items():
        expect_sizes(f"The shape of {name} is wrong{when}", shape, found[name].shape)


def expect_start(weight: Tensor, spread: float, name: str) -> None:
    """Expect starting values drawn independently around 0 with this standard deviation.

    `weight` is a matrix [rows, columns] of at least a few thousand numbers, uniform or normal, so
    that chance alone never fails a right answer.
    """
    import torch

    weight = weight.detach().cpu().double()
    rows = weight.shape[0]
    # Of n normal numbers the standard deviation has a relative standard error of 0.71 / sqrt(n),
    # of n uniform ones less; the mean has one of 1 / sqrt(n).
    error = weight.numel() ** -0.5
    got, room = weight.std().item(), _STANDARD_ERRORS * 0.71 * error
    if not is_between(got / spread, 1 - room, 1 + room):
        own = (3 * weight.shape[1]) ** -0.5  # the spread that nn.Linear itself starts with
        is_own = is_between(got / own, 1 - room, 1 + room)
        raise contrast(
            f"{name} starts with the wrong spread",
            f"a standard deviation of {spread:.4f}, give or take {room:.0%}",
            f"{got:.4f}" + (", as nn.Linear starts by itself" if is_own else ""),
        )
    mean, room = weight.mean().item(), _STANDARD_ERRORS * error * spread
    if not is_between(mean, -room, room):
        raise contrast(
            f"{name} is not centred at zero", f"a mean of 0, give or take {room:.4f}", f"{mean:.4f}"
        )
    different = len(torch.unique(weight, dim=0))
    if different != rows:
        raise contrast(
            f"Rows of {name} start out equal",
            f"{rows} different rows",
            f"{different} different rows",
        )
    # The squared lengths of independent rows vary by some percent; those of a matrix that is
    # orthogonal, or of a permutation, are equal.
    lengths = weight.square().sum(1)
    if not lengths.std() > 0.01 * lengths.mean():
        raise contrast(
            f"The values of {name} are not drawn independently",
            f"{rows} rows whose lengths vary a little",
            "rows that are all equally long",
        )


def expect_xavier_start(
    start: Mapping[str, Tensor],
    other: Mapping[str, Tensor],
    shapes: Shapes,
    *,
    where: str = "state_dict()",
) -> None:
    """Expect Xavier weights for the sizes of each layer, each drawn for itself, and biases of 0.

    `start` and `other` come from two new modules, by the call `where`, and have these shapes.
    """
    import torch

    expect_parameters(start, shapes, others=True, where=where)
    for name, shape in shapes.items():
        if len(shape) == 2:
            expect_start(start[name], (2 / sum(shape)) ** 0.5, name)
        else:
            expect_close(start[name], torch.zeros(*shape), axes="row", rtol=0, atol=0, what=name)
    weights = [name for name, shape in shapes.items() if len(shape) == 2]
    drawn = {
        f"{name}{of}": state[name]
        for name in weights
        for state, of in ((start, ""), (other, " of another module"))
    }
    expect_all_different(drawn, "Two layers start with the same weights")


def expect_dropped(
    seen: Tensor,
    again: Tensor | None,
    full: Tensor,
    p: float,
    *,
    axes: Mapping[str, str],
    inputs: Mapping[str, Tensor] | None = None,
    returned: Tensor | None = None,
    what: str = "weight",
) -> None:
    """Expect dropout on single numbers, once, with the remaining ones divided by 1 - p.

    `full` are the numbers before dropout, `seen` those after it; `axes` gives the axes' names and
    what lies along them, in the plural; `what` is one number to the learner. If they are not the
    result itself, `seen` and `again` are each read from the output in another place: a dropped
    number is dropped in both. `returned`, if given, must be the numbers before or after dropout.
    `inputs`, if given, are leaf tensors that the gradients of the remaining numbers must reach.
    """
    import torch

    learned, formula = seen, full
    seen, full = (x.detach().cpu().double() for x in (seen, full))
    if torch.allclose(seen, full, rtol=1e-3, atol=1e-6):
        raise contrast(
            f"dropout={p} drops nothing",
            f"about {p:.0%} of the {what}s dropped",
            f"every {what} kept",
            Way.VALUES,
        )
    off = seen.abs() < 1e-6
    wrong = ~are_close(seen, full / (1 - p), rtol=1e-4, atol=1e-6, where=~off)
    if wrong.any():
        factor = (seen / full)[~off].median().item()
        if are_close(seen, full * factor, rtol=1e-4, atol=1e-6, where=~off).all():
            raise contrast(
                f"With dropout={p} the {what}s that are kept grow by the wrong factor",
                f"{1 / (1 - p):.4g}: each divided by {1 - p:g}, so the sum is right on average",
                f"{factor:.4g}",
                Way.VALUES,
            )
        where = tuple(int(index) for index in wrong.nonzero()[0])
        place = ", ".join(f"{axis}={at}" for axis, at in zip(axes, where, strict=True))
        right = full[where].item()
        hidden = "\n  where     in the output, for inputs that make the weights visible there"
        raise contrast(
            f"dropout={p} leaves a wrong {what} at {place}",
            f"0 if dropped or {right / (1 - p):.6g} if kept, for {right:.6g}",
            f"{seen[where].item():.6g}{'' if again is None else hidden}",
            Way.VALUES,
        )
    other = seen if again is None else again.detach().cpu().double()
    if not are_close(seen, other, rtol=1e-4, atol=1e-6).all():
        raise contrast(
            "Dropout acts on something other than the weights",
            "a weight that is dropped for all features of its value",
            "a weight that is dropped for some features and kept for others",
            Way.VALUES,
        )
    _expect_single_draws(off, full != 0, p, axes, what)
    if returned is not None:
        _expect_own_weights(returned.detach().cpu().double(), full, seen)
    if inputs is not None:
        expect_gradients_close(learned, formula * ~off / (1 - p), inputs, rtol=1e-4, atol=1e-5)


def expect_new_draws(first: Tensor, second: Tensor, when: str = "") -> None:
    """Expect that two calls in training mode, both as `when` says, drop different numbers."""
    import torch

    if torch.equal(first, second):
        raise contrast(
            f"In training mode two calls{when} give the same output",
            "a new draw in each call",
            "the same output twice",
            Way.VALUES,
        )


def _expect_single_draws(
    off: Tensor, drawn: Tensor, p: float, axes: Mapping[str, str], what: str
) -> None:
    """Expect the share `p` of the `drawn` numbers to be `off`, each by a draw of its own."""
    share = off[drawn].double().mean().item()
    leeway = 8 * (p * (1 - p) / int(drawn.sum())) ** 0.5  # eight standard deviations
    if not is_between(share, p - leeway, p + leeway):
        to_keep = is_between(share, 1 - p - leeway, 1 - p + leeway)
        raise contrast(
            f"dropout={p} drops the wrong share of the {what}s",
            f"{p:.0%}, give or take {leeway:.0%}",
            f"{share:.0%}" + (", the share to keep" if to_keep else ""),
            Way.VALUES,
        )
    for axis, things in enumerate(axes.values()):
        for step in range(1, off.shape[axis]):
            count = off.shape[axis] - step
            both = drawn.narrow(axis, 0, count) & drawn.narrow(axis, step, count)
            differ = off.narrow(axis, 0, count) != off.narrow(axis, step, count)
            # Two independent numbers differ with probability 2 p (1-p).
            if step > 1 and int(both.sum()) * 2 * p * (1 - p) < _ENOUGH:
                continue
            if differ[both].double().mean().item() <= p * (1 - p):
                some = "all" if step == 1 else "some"
                raise contrast(
                    f"Dropout treats {some} {things} alike",
                    f"a draw for each {what}",
                    f"the same draw for {some} {things}",
                    Way.VALUES,
                )


def _expect_own_weights(got: Tensor, full: Tensor, seen: Tensor) -> None:
    """Expect the returned weights to be those before dropout, `full`, or after it, `seen`."""
    import torch

    what = "The shape of the weights returned in training mode is wrong"
    expect_sizes(what, full.shape, got.shape)
    meant = full if torch.allclose(got, full, rtol=1e-3, atol=1e-5) else seen
    if not are_close(got, meant, rtol=1e-4, atol=1e-6).all():
        raise contrast(
            "The weights returned in training mode are not the module's own",
            "the weights from before dropout, or those from after it",
            "neither",
            Way.VALUES,
        )


def draw_truths(rand: Rand, seed: int, **axes: int) -> Tensor:
    """Draw random booleans, with at least one True and one False in every row of the last axis."""
    truths = rand(**axes) > 0
    truths[..., seed % truths.shape[-1]] = True
    truths[..., (seed + 1) % truths.shape[-1]] = False
    return truths


def _listed(names: Sequence[str]) -> str:
    """The first names of a list, which may be long."""
    shown = ", ".join(f"{name:.24}" for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown
