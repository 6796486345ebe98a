"""Reads the stages' figures for a notebook, which `grade trace STAGE --out` draws for an author."""

from __future__ import annotations

from collections.abc import Iterable

from grader.types.course import Stage


def read_figures(stages: Iterable[Stage]) -> dict[str, bytes]:
    """The PNG files of the stages that have one, by slug."""
    return {s.slug: s.figure_file.read_bytes() for s in stages if s.figure_file.is_file()}
