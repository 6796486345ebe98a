"""Frames of the learner's own, as a worker tells of them, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grader.types.text import safe

_FRAMES_CAP = 12
_REPEATED = "\n    ... and again from there, over and over"


def frames_told(error: Mapping[str, Any]) -> str:
    """The learner's frames in words, one that repeats itself (a recursion without end) once."""
    lines = ""
    before = None
    frames = error.get("frames")
    for frame in frames[-_FRAMES_CAP:] if isinstance(frames, list) else []:
        if not isinstance(frame, dict) or type(frame.get("line")) is not int:
            continue
        if frame == before:
            lines = lines.removesuffix(_REPEATED) + _REPEATED
            continue
        before = frame
        where = safe(str(frame.get("file", ""))[:200])
        function = safe(str(frame.get("function", ""))[:100])
        inside = f", in {function}" if function and function != "<module>" else ""
        lines += f"\n  {where}, line {frame.get('line')}{inside}"
        lines += f"\n    {safe(str(frame.get('text', ''))[:200])}"
    return lines
