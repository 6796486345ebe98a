"""Writes a picture as a PNG or SVG file, with a description for screen readers."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from grader.learning.pictures.types import TracedCurves, TracedHeatmap
from grader.read.files import write_whole
from grader.types.errors import KitError, writing
from grader.types.text import safe

KINDS = ("png", "svg")


def write_picture(picture: TracedHeatmap | TracedCurves, file: Path) -> None:
    """Write a picture in the format of the file's suffix. Raises KitError."""

    def drawn() -> Any:
        from grader.learning.pictures.drawing import curves_figure, figure

        return curves_figure(picture) if isinstance(picture, TracedCurves) else figure(picture)

    write_figure(drawn, file, picture.title, _description(picture))


def write_figure(draw: Callable[[], Any], file: Path, title: str, words: str) -> None:
    """Write the matplotlib figure that `draw` makes, with words for screen readers.

    The suffix of `file` says in which format. Raises KitError.
    """
    try:
        from matplotlib import rc_context

        drawn = draw()
    except ImportError as error:
        raise KitError(f"cannot write PNG or SVG: {error}: type `pip install matplotlib`") from None
    kind = file.suffix.removeprefix(".")
    buffer = io.BytesIO()
    metadata: dict[str, Any] = {"Title": safe(title)} | ({} if kind == "png" else {"Date": None})
    text_stays_text = rc_context({"svg.fonttype": "none", "svg.hashsalt": "grade"})
    with text_stays_text, warnings.catch_warnings():
        if kind == "svg":  # then the viewer's fonts count, not matplotlib's
            warnings.filterwarnings("ignore", "Glyph", UserWarning)
        drawn.savefig(buffer, format=kind, dpi=150, metadata=metadata)
    data = buffer.getvalue()
    if kind == "svg":
        told = escape(safe(words))
        data = data.replace(b"</title>", f"</title>\n <desc>{told}</desc>".encode(), 1)
    with writing(file):
        write_whole(file, data)


def _description(picture: TracedHeatmap | TracedCurves) -> str:
    from grader.learning.pictures.curves import facts
    from grader.learning.pictures.heatmap import description

    if isinstance(picture, TracedHeatmap):
        return description(picture)
    return " ".join(f"{fact}." for fact in facts(picture))
