"""What a node is, as far as its syntax tells."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, TypeGuard

FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITION = (*FUNCTION, ast.ClassDef)
OVER_AXIS = frozenset(
    {
        *("softmax", "log_softmax", "logsumexp", "sum", "mean", "std", "var", "prod", "norm"),
        *("max", "min", "amax", "amin", "argmax", "argmin", "any", "all", "cumsum", "sort"),
        *("normalize", "unsqueeze", "squeeze", "select", "size", "unbind", "flip", "roll"),
        *("cat", "stack", "concat", "chunk", "split", "topk", "gather", "index_select"),
        *("repeat_interleave", "unflatten", "concatenate", "expand_dims"),
    }
)
TWO_AXES = frozenset({"transpose", "swapaxes", "swapdims", "movedim", "flatten"})
SHAPING = frozenset({"view", "reshape"})
NO_TENSORS = frozenset({"torch", "math", "np", "numpy", "F", "nn", "einops"})
# Calls that change what all code after them computes.
_SETTINGS = frozenset(
    {"manual_seed", "set_default_device", "set_default_dtype", "set_grad_enabled"}
)


def called(node: ast.Call) -> str:
    """The last name of what is called."""
    func = node.func
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def is_method(node: ast.Call) -> bool:
    """Whether a tensor's method is called, it seems, not a library's function."""
    return isinstance(node.func, ast.Attribute) and not is_module(node.func.value)


def is_setting(node: ast.stmt) -> bool:
    """Whether it is a call that changes what all code after it computes."""
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and called(call) in _SETTINGS


def is_module(node: ast.expr) -> bool:
    """Whether it looks like a library, not like a tensor: torch, nn.functional, self."""
    while isinstance(node, ast.Attribute):
        node = node.value
        if isinstance(node, ast.Name) and node.id == "self":
            return False
    return isinstance(node, ast.Name) and node.id in NO_TENSORS | {"self"}


def is_axis(above: Any) -> bool:
    """Whether a number just below this node is an axis or a size's."""
    if isinstance(above, ast.keyword):
        return above.arg in ("dim", "axis", "dim0", "dim1", "start_dim", "keepdim")
    if isinstance(above, ast.Subscript):
        return is_size(above)
    return isinstance(above, ast.Call) and called(above) in OVER_AXIS | TWO_AXES | {"permute"}


def is_size(node: ast.Subscript) -> bool:
    """Whether it is `x.shape[...]` or `x.size()[...]`."""
    value = node.value
    if isinstance(value, ast.Attribute):
        return value.attr == "shape"
    return isinstance(value, ast.Call) and called(value) == "size"


def is_words(node: ast.AST) -> bool:
    """Whether it is a docstring, or a string that stands alone."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def is_of_self(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """Whether it is `self.name`."""
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def integer(node: ast.AST) -> int | None:
    """The value of an integer, maybe with a minus."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = integer(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None


def own(node: Any) -> Iterator[ast.AST]:
    """What is in a function, but not in another one within it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (*DEFINITION, ast.Lambda)):
            yield child
            yield from own(child)
