"""An engine that grades submissions it does not trust, stage by stage, and says why."""

from __future__ import annotations

__version__ = "0.1.0"


def load_ipython_extension(shell: object) -> None:
    """`%load_ext grader`: what IPython calls to add %%grade and grade_here to a notebook."""
    from grader.notebook import load

    load(shell)


def unload_ipython_extension(shell: object) -> None:
    """`%unload_ext grader`: undo that."""
    from grader.notebook import unload

    unload(shell)
