"""The page to play with as HTML: live, beside `grade explore`, or with all results inside."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from grader.learning.explore.example import start_of
from grader.tracing import Control
from grader.types.resources import filled, resource

Answer = Callable[[list[Any], str], dict[str, Any]]  # of settings and a swap


@dataclass(frozen=True)
class About:
    """What the page is about; `source` names the learner's code."""

    course: str
    title: str
    controls: Sequence[Control]
    swaps: Sequence[dict[str, Any]]
    source: str


def live_page(about: About) -> str:
    """The page that asks its server for each result."""
    return _page(about, {"live": True})


def whole_page(about: About, answer: Answer) -> str:
    """The page with the results of `planned_runs` inside."""
    parts: dict[str, int] = {}  # most runs share most parts, so each is written once
    runs = {}
    for numbers, swap in planned_runs(about):
        pairs = zip(about.controls, numbers, strict=True)
        found = answer([c.values[n] if c.kind == "text" else n for c, n in pairs], swap)
        found["parts"] = [parts.setdefault(_json(part), len(parts)) for part in found["parts"]]
        runs[_json([numbers, swap])] = found
    return _page(about, {"live": False, "runs": runs, "parts": [json.loads(p) for p in parts]})


def planned_runs(about: About) -> Iterator[tuple[list[int], str]]:
    """The numbers of the controls' values, and a swap, of each result in a file.

    Every combination without a swap; then each swap, with the controls as they start.
    """
    for numbers in itertools.product(*(range(len(c.values)) for c in about.controls)):
        yield list(numbers), ""
    for swap in about.swaps:
        yield [_start(control) for control in about.controls], swap["id"]


def _start(control: Control) -> int:
    return list(control.values).index(start_of(control))


def _page(about: About, known: dict[str, Any]) -> str:
    style, script = (resource(__package__, f"templates/page.{kind}") for kind in ("css", "js"))
    controls = [{**asdict(c), "start": _start(c)} for c in about.controls]
    data = {"source": about.source, "controls": controls, "swaps": about.swaps, **known}
    return filled(
        __package__,
        "templates/page.html",
        title=escape(about.title),
        course=escape(about.course),
        style=style,
        script=script,
        style_hash=source_digest(style),
        script_hash=source_digest(script),
        data=_json(data).replace("<", "\\u003c"),
    )


def source_digest(text: str) -> str:
    """The name by which a page's policy allows this style or script, and no other."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _json(value: Any) -> str:
    """JSON as JavaScript's JSON.stringify writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
