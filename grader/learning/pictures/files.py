"""Writes a picture as a PNG or SVG file, with a description for screen readers."""

from __future__ import annotations

import io
import warnings
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.learning.pictures.types import TracedHeatmap
from grader.read.files import write_whole
from grader.tracing import Curves
from grader.types.errors import writing
from grader.types.text import safe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("png", "svg")


def write_picture(picture: TracedHeatmap | Curves, file: Path) -> None:
    """Write a picture in the format of the file's suffix. Raises KitError."""
    from grader.learning.pictures.curves import facts
    from grader.learning.pictures.drawing import curves_figure, figure
    from grader.learning.pictures.heatmap import description

    if isinstance(picture, Curves):
        words = " ".join(f"{fact}." for fact in facts(picture))
        write_figure(curves_figure(picture), file, picture.title, words)
    else:
        write_figure(figure(picture), file, picture.title, description(picture))


def write_figure(figure: Figure, file: Path, title: str, words: str) -> None:
    """Write a figure in the format of the file's suffix, with words for screen readers.

    Raises KitError.
    """
    from matplotlib import rc_context

    kind = file.suffix.removeprefix(".")
    buffer = io.BytesIO()
    metadata: dict[str, Any] = {"Title": safe(title)} | ({} if kind == "png" else {"Date": None})
    text_stays_text = rc_context({"svg.fonttype": "none", "svg.hashsalt": "grade"})
    with text_stays_text, warnings.catch_warnings():
        if kind == "svg":  # then the viewer's fonts count, not matplotlib's
            warnings.filterwarnings("ignore", "Glyph", UserWarning)
        figure.savefig(buffer, format=kind, dpi=150, metadata=metadata)
    data = buffer.getvalue()
    if kind == "svg":
        told = escape(safe(words))
        data = data.replace(b"</title>", f"</title>\n <desc>{told}</desc>".encode(), 1)
    with writing(file):
        write_whole(file, data)
