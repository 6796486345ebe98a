"""Records the tensors that a call of the learner's code makes, and the lines that make them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

_TENSORS = 300  # of one call
LARGEST = 1 << 12  # values of one tensor that is kept
_BYTES = 1 << 22  # of all


def recorder(
    line: Callable[[str, int], str | None],
) -> tuple[AbstractContextManager[Any], list[tuple[Any, str, int]]]:
    """A block and the list that each tensor made in it is added to, with a file and a line.

    That is a copy, as the tensor was when it was made; only small tensors of real numbers are
    kept, and none if there are too many. `line` gives the text of a line of the learner's own
    files. The line is one of the file that was called first; it is 0 if there is none.
    """
    import torch
    from torch.nn.parameter import is_lazy
    from torch.overrides import TorchFunctionMode

    made: list[tuple[Any, str, int]] = []
    size = 0
    is_full = False

    def note(value: Any) -> None:
        nonlocal size, is_full
        if isinstance(value, (tuple, list)):
            for each in value[: _TENSORS + 1]:
                note(each)
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return
        if is_lazy(value) or value.numel() > LARGEST or is_full:
            return
        size += value.numel() * value.element_size()
        if len(made) == _TENSORS or size > _BYTES:
            made.clear()  # else one that is missing would look as if it was never made
            is_full = True
            return
        made.append((value.detach().clone(), *_place(line)))

    class Recorder(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            note(args[:1] if result is None else result)  # None of what sets values in place
            return result

    return Recorder(), made


def _place(line: Callable[[str, int], str | None]) -> tuple[str, int]:
    """The file of the learner's that was called first, and the last line in it."""
    frame = sys._getframe(1)
    own: list[tuple[str, int]] = []
    while frame is not None:
        place = frame.f_code.co_filename, frame.f_lineno
        if line(*place) is not None:
            own.append(place)
        frame = frame.f_back  # type: ignore[assignment]
    return next((place for place in own if place[0] == own[-1][0]), ("", 0))
