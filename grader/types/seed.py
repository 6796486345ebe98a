"""Seeds of the checks' random inputs."""

from __future__ import annotations

import secrets


def fresh_seed() -> int:
    """A random seed that fits the generators of random, numpy and torch."""
    return secrets.randbelow(1 << 31)
