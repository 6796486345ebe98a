"""Seeds of the checks' random inputs."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from grader.types.text import listed

_NAMED = 3  # seeds of one class


def fresh_seed() -> int:
    """A random seed that fits the generators of random, numpy and torch."""
    return secrets.randbelow(1 << 31)


def seeds_named(seeds: Iterable[int]) -> str:
    """The seeds of a class: "seed 5", or "seeds 5, 7, 8 and 2 more"; "" for none."""
    names = [str(seed) for seed in sorted(set(seeds))]
    return f"seed{'s' * (len(names) > 1)} {listed(names, most=_NAMED)}" if names else ""
