"""Finds the requests that a case makes whatever the answers: it is asked with noise for answers.

The solution answers, but every number in its tensors and arrays is replaced by a random one. What
the case still asks alike depends on no earlier answer, so a worker may see it early: it holds no
right answer. A plain number or text cannot be replaced so, and ends the case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

from grader.run.failures import AnswerError
from grader.run.local_answers import LocalAnswers
from grader.run.worker.wire import Frame

if TYPE_CHECKING:
    import numpy

_NOT_AHEAD = ("try", "usage")  # requests that are not the conversation's
_SEED = 20  # of the noise: any


class NoisyAnswers(LocalAnswers):
    """Noise in the form of the answers that the functions of `find` give.

    `asked` holds the requests of the current case.
    """

    def __init__(self, find: Callable[[str], Any]) -> None:
        import numpy

        super().__init__(find)
        self._random = numpy.random.default_rng(_SEED)
        self.asked: list[Frame] = []

    def begin(self, case: str = "") -> None:
        """Forget the case before."""
        super().begin(case)
        self.asked = []

    def answer(self, request: Frame, known: Container[bytes] = ()) -> Frame:
        """Noise as the reply to a request. Raises AnswerError where the case must end."""
        if request.header.get("op") in _NOT_AHEAD or "measured" in request.header:
            raise AnswerError("it cannot be asked ahead of its turn")
        reply = super().answer(request)
        self.asked.append(request)
        header = reply.header
        if "method" not in request.target and _is_plain(header.get("value")):
            raise AnswerError("the answer has no noise")
        arrays = header.get("arrays", ())
        noise = b"".join(_noise(self._random, entry["dtype"], entry["shape"]) for entry in arrays)
        return Frame(header, noise).sealed()


def _is_plain(value: Any) -> bool:
    """Whether a packed value has numbers or text of its own, and not only tensors and arrays."""
    if isinstance(value, dict):
        return not value.keys() & {"tensor", "ndarray", "handle"} and any(
            map(_is_plain, value.values())
        )
    return any(map(_is_plain, value)) if isinstance(value, list) else value is not None


def _noise(random: numpy.random.Generator, dtype: str, shape: list[int]) -> bytes:
    """The bytes of random numbers of a dtype."""
    count = math.prod(shape)
    if dtype == "bool":
        return random.integers(0, 2, count, "uint8").tobytes()
    if dtype.startswith(("int", "uint")):
        return random.integers(0, 100, count, dtype).tobytes()
    if dtype == "bfloat16":
        wide = random.standard_normal(count, "float32").view("uint32")
        return (wide >> 16).astype("uint16").tobytes()
    if dtype.startswith("complex"):
        count *= 2
        dtype = "float32" if dtype == "complex64" else "float64"
    return random.standard_normal(count).astype(dtype).tobytes()
