"""The page to play with as HTML: live, beside `grade explore`, or with all results inside."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

from grader.learning.explore.example import Example, start_of
from grader.learning.explore.explorer import described
from grader.tracing import Control
from grader.types.course import Course, Stage
from grader.types.resources import filled, resource

Settings = list[Any]
Runs = Callable[[Settings, str], dict[str, Any]]


def live_page(
    course: Course, stage: Stage, example: Example, swaps: Sequence[dict[str, Any]], source: str
) -> str:
    """The page that asks its server for each result; `source` names the learner's code."""
    return _page(course, stage, example, swaps, {"live": True, "source": source})


def whole_page(
    course: Course,
    stage: Stage,
    example: Example,
    swaps: Sequence[dict[str, Any]],
    source: str,
    run: Runs,
) -> str:
    """The page with the results of `planned_runs` inside."""
    parts: dict[str, int] = {}  # most runs share most parts, so each is written once
    runs = {}
    for settings, swap in planned_runs(example, swaps):
        found = run(settings, swap)
        found["parts"] = [parts.setdefault(_json(part), len(parts)) for part in found["parts"]]
        runs[_json([_numbers(example, settings), swap])] = found
    known = {"live": False, "source": source, "runs": runs}
    return _page(course, stage, example, swaps, known | {"parts": [json.loads(p) for p in parts]})


def planned_runs(
    example: Example, swaps: Sequence[dict[str, Any]]
) -> Iterator[tuple[Settings, str]]:
    """Every combination of the controls; then each swap, with the controls as they start."""
    for values in itertools.product(*(control.values for control in example.controls)):
        yield _settings(example, values), ""
    for swap in swaps:
        yield _settings(example, [start_of(control) for control in example.controls]), swap["id"]


def _settings(example: Example, values: Sequence[Any]) -> Settings:
    pairs = zip(example.controls, values, strict=True)
    return [value if c.kind == "text" else _place(c, value) for c, value in pairs]


def _numbers(example: Example, settings: Settings) -> list[int]:
    """The settings, with the number of each text among the control's values."""
    pairs = zip(example.controls, settings, strict=True)
    return [_place(c, setting) if c.kind == "text" else setting for c, setting in pairs]


def _place(control: Control, value: Any) -> int:
    return list(control.values).index(value)


def _page(
    course: Course,
    stage: Stage,
    example: Example,
    swaps: Sequence[dict[str, Any]],
    known: dict[str, Any],
) -> str:
    style, script = (resource(__package__, f"templates/page.{kind}") for kind in ("css", "js"))
    controls = [described(control) for control in example.controls]
    return filled(
        __package__,
        "templates/page.html",
        title=escape(stage.title),
        course=escape(course.title),
        style=style,
        script=script,
        style_hash=_digest(style),
        script_hash=_digest(script),
        data=_json({"controls": controls, "swaps": swaps, **known}).replace("<", "\\u003c"),
    )


def _digest(text: str) -> str:
    """The name by which the page's policy allows this style or script, and no other."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _json(value: Any) -> str:
    """JSON as JavaScript's JSON.stringify writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
