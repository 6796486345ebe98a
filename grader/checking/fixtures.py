"""The types of a check's fixtures, so that an editor completes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, overload

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Rand(Protocol):
    """`rand(B=2, T=3)` draws a tensor of normal(0, scale) values that remembers its axes' names."""

    @overload
    def __call__(
        self,
        *,
        dtype: torch.dtype | None = None,
        grad: bool = False,
        scale: float = 1.0,
        **axes: int,
    ) -> Tensor: ...
    @overload
    def __call__(self, **axes: Any) -> Tensor: ...


class Module(Protocol):
    """A learner's module. The calls and names are those of nn.Module."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def named_parameters(self) -> Iterator[tuple[str, Tensor]]: ...
    def parameters(self) -> Iterator[Tensor]: ...
    def named_buffers(self) -> Iterator[tuple[str, Tensor]]: ...
    def state_dict(self) -> dict[str, Tensor]: ...
    def load_state_dict(self, state: Mapping[str, Tensor], strict: bool = True) -> Any: ...
    def train(self, mode: bool = True) -> Any: ...
    def eval(self) -> Any: ...
    def to(self, *args: Any) -> Any: ...


class Usage(Protocol):
    """The memory of the calls in a block, in bytes: the most at once, and what was left after."""

    peak: int
    held: int


class Trial(Protocol):
    """How the learner's tests judged one implementation."""

    @property
    def ended(self) -> str: ...
    @property
    def said(self) -> str: ...
    @property
    def made(self) -> int: ...
    @property
    def verdict(self) -> str: ...
    def count(self, *outcomes: str) -> int: ...


class Submission(Protocol):
    """The learner's code: `submission.f(x)` calls the entry point `f` where that code runs."""

    def __getattr__(self, name: str) -> Callable[..., Any]: ...

    def given(self, source: str, name: str, *args: Any, **kwargs: Any) -> Any:
        """Make `name(...)`, or the function `name`, of a check's source in that process."""

    def measured(self) -> AbstractContextManager[Usage]:
        """Report, after the block, how much memory its calls took."""

    def held_by(self, module: Any) -> list[tuple[int, ...]]:
        """The shapes of the tensors that a module keeps alive in any way."""

    def tried(
        self, fixture: str, sources: Mapping[str, str], name: str, *, whole: bool = False
    ) -> Mapping[str, Trial]:
        """Run the learner's tests with each of these sources behind their fixture.

        They stop at the first test that fails, unless `whole`.
        """
