"""Checks that the solution makes the values that a stage lists with `@values`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grader.authoring.verify.runs import Find
from grader.checking.comparing import wide
from grader.diagnosis.comparison.replies import arrays
from grader.diagnosis.comparison.values.matching import is_telling, match
from grader.diagnosis.comparison.values.recording import is_answer, is_precise, noting
from grader.misconceptions import Value, Way

if TYPE_CHECKING:
    from grader.diagnosis.comparison.values.recording import Noted


class _WayProof:
    """Compares one list of values with what the solution makes while its checks run."""

    def __init__(self, way: Way, own: Any) -> None:
        self._of = way.of
        self._noted: Noted = []
        self._raised = ""
        self._is_seen = False
        self._missing: dict[str, None] = {}
        watched = replace(way, values=self._without_errors(way.values))
        self.entry = noting(watched, self._compared(own), self._noted)

    def problems(self) -> Iterator[str]:
        """A sentence for each problem."""
        what = f"the values of {self._of}"
        if self._raised:
            yield f"{what} raise {self._raised}"
        elif not self._is_seen:
            yield f"{what}: the last one is never what the solution returns"
        for name in self._missing:
            yield f"{what}: the solution does not make {name!r}"

    def _without_errors(
        self, values: Callable[..., Any]
    ) -> Callable[..., Iterator[Value | tuple[Value, ...]]]:
        def each(*args: Any, **kwargs: Any) -> Iterator[Value | tuple[Value, ...]]:
            try:
                yield from values(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - every fault of an author's file is reported
                self._raised = f"{type(error).__name__}: {error}"

        return each

    def _compared(self, own: Any) -> Any:
        """The solution's function or class, each call of which is compared with the values."""

        def compared(call: Callable[[], Any]) -> Any:
            from grader.run.worker.recording import recorder

            block, made = recorder(lambda file, line: None)
            with block:
                result = call()
            self._compare([wide(array) for array, _, _ in made], result)
            return result

        if not isinstance(own, type):
            return lambda *args, **kwargs: compared(lambda: own(*args, **kwargs))

        class Compared(own):  # type: ignore[misc]
            def forward(self, *args: Any, **kwargs: Any) -> Any:
                return compared(lambda: super(Compared, self).forward(*args, **kwargs))

        return Compared

    def _compare(self, made: Sequence[Any], result: Any) -> None:
        answers = [wide(array) for array in arrays(result)]
        values = [value for step in self._noted for value in step]
        if not self._noted or not any(is_answer(self._noted[-1], each) for each in answers):
            return
        if not made or not is_precise(values):
            return
        self._is_seen = True
        for value in values:
            if is_telling(value.array):
                found = match(value.array, made, value.tolerance)
                if found is None or found.factor != 1.0:
                    self._missing[value.name] = None


def way_problems(ways: Sequence[Way], solution: Find, run: Callable[[Find], object]) -> list[str]:
    """A sentence for each problem with the values that a stage lists.

    `run` runs the stage's checks on an implementation.
    """
    proofs = {way.of: _WayProof(way, solution(way.of)) for way in ways}

    def find(name: str) -> Any:
        return proofs[name].entry if name in proofs else solution(name)

    if proofs:
        run(find)
    return [problem for proof in proofs.values() for problem in proof.problems()]
