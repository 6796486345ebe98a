"""A picture as a PNG or SVG file, with a description for those who do not see it."""

from __future__ import annotations

import io
from html import escape
from pathlib import Path
from typing import Any

from grader.types.errors import KitError
from grader.types.text import safe
from grader.types.trace import TracedCurves, TracedHeatmap

KINDS = ("png", "svg")


def write_picture(picture: TracedHeatmap | TracedCurves, file: Path) -> None:
    """Write a picture in the format that the file's name ends with. Raises KitError."""
    try:
        from matplotlib import rc_context

        from grader.show.drawing import curves_figure, figure
    except ImportError as error:
        raise KitError(f"no PNG or SVG is written: {error}: pip install matplotlib") from None
    kind = file.suffix.removeprefix(".")
    drawn = curves_figure(picture) if isinstance(picture, TracedCurves) else figure(picture)
    buffer = io.BytesIO()
    title = safe(picture.title)
    metadata: dict[str, Any] = {"Title": title} | ({} if kind == "png" else {"Date": None})
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "grade"}):  # text stays text
        drawn.savefig(buffer, format=kind, dpi=150, metadata=metadata)
    data = buffer.getvalue()
    if kind == "svg":
        said = escape(safe(_description(picture)))
        data = data.replace(b"</title>", f"</title>\n <desc>{said}</desc>".encode(), 1)
    try:
        file.write_bytes(data)
    except OSError as error:
        raise KitError(f"{file}: cannot be written: {error.strerror}") from None


def _description(picture: TracedHeatmap | TracedCurves) -> str:
    from grader.show.curves import facts
    from grader.show.heatmap import description

    if isinstance(picture, TracedHeatmap):
        return description(picture)
    return " ".join(f"{fact}." for fact in facts(picture))
