"""How a new stage's files are written for the library that its course uses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Style:
    """The words of one library.

    `kind` is the kind of a result in course.toml, `type` its annotation, and `make` the function
    that makes one from a list. `base` is the class of the classes that learners write, and `call`
    the method that is called with their objects. A style with `has_gradients` has checks of them,
    and of dtypes. A stage that `is_done` doubles its input: only sentences are left to write.
    """

    kind: str
    type: str
    imports: str
    make: str
    base: str = ""
    call: str = "__call__"
    has_arrays: bool = True
    has_gradients: bool = False
    is_done: bool = False


_STYLES = {
    "torch": Style(
        "tensor",
        "torch.Tensor",
        "import torch\n",
        "torch.tensor",
        base="nn.Module",
        call="forward",
        has_gradients=True,
    ),
    "numpy": Style("array", "np.ndarray", "import numpy as np\n", "np.array"),
}
_PLAIN = Style("number", "float", "", "", has_arrays=False)


def style_of(preload: tuple[str, ...]) -> Style:
    """The style of a course that loads these libraries: torch's, else numpy's, else Python's."""
    return next((style for name, style in _STYLES.items() if name in preload), _PLAIN)
