"""What consoles draw, and the golden files that it is compared with."""

import io
import os
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType


def draw(
    screen: RenderableType,
    width: int = 80,
    kind: type[Console] = Console,
    encoding: str = "utf-8",
    **options: Any,
) -> str:
    """Drawn on a console that knows only `encoding`; raises where a letter does not exist in it."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, errors="strict", newline="\n")
    how = {"force_terminal": False, "_environ": {}, **options}
    kind(file=file, width=width, **how).print(screen, end="")
    file.flush()
    return raw.getvalue().decode(encoding)


def compare_with(goldens: Path, name: str, drawn: str) -> None:
    """Compare with the golden file of this name; REWRITE_GOLDENS=1 rewrites it."""
    path = goldens / f"{name}.txt"
    if os.environ.get("REWRITE_GOLDENS") == "1":
        path.write_text(drawn, encoding="utf-8", newline="\n")
    assert drawn == path.read_text(encoding="utf-8")
