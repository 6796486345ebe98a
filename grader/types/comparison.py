"""What a check has compared, and how close it was."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Comparison:
    """A check's comparison of an answer with the expected value.

    `share` is the largest difference as a share of the tolerance: up to 1 passes; infinite if the
    difference is not finite. `kind` is the kind of comparison, `tolerance` the allowed difference;
    it `is_usual` if it is at most the dtype's default.
    """

    kind: str
    tolerance: str
    share: float
    is_usual: bool = False
