"""Keeps verdicts with full points in `.grade/kept.json`, so that `grade` can skip those stages.

A verdict counts as long as everything it depends on is the same. Losing the file costs a rerun.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.read.files import read_table, write_whole
from grader.read.progress import make_memory_folder, memory_folder
from grader.types.course import Course, Stage
from grader.types.report import Report, Status, from_json, to_json

_FILE = "kept.json"
_GPU = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")  # variables that hide a GPU


class Kept:
    """The verdicts that are kept for the learner who works in `root`.

    `device` is what they asked for, such as "auto". Make it before torch is imported: the kit hides
    GPUs from torch, and what the learner's environment says counts.
    """

    def __init__(self, root: Path, course: Course, device: str) -> None:
        self._root = root
        self._course = course
        self._machine = _machine(course, device)

    def read(self, stages: Iterable[Stage], texts: Mapping[str, str]) -> dict[str, Report]:
        """The verdicts of these stages that still hold, by slug, each in a report of its own.

        `texts` are digests of what the verdicts depend on, by slug.
        """
        known, kept = read_table(memory_folder(self._root) / _FILE), {}
        for stage in stages:
            # What is in the file may be damaged in any way.
            with suppress(ValueError, TypeError, KeyError, RecursionError):
                entry = known[stage.slug]
                if entry["seal"] == self._seal(texts[stage.slug], entry["report"]):
                    report = from_json(entry["report"])
                    (result,) = report.stages
                    result = replace(result, is_partial=self._course.is_partial)
                    kept[stage.slug] = replace(report, stages=(result,))
        return kept

    def keep(self, report: Report, texts: Mapping[str, str]) -> None:
        """Keep the report's verdicts with full points, and forget any others on its stages."""
        before = read_table(memory_folder(self._root) / _FILE)
        after = {slug: entry for slug, entry in before.items() if slug in texts}
        for result in report.stages:
            after.pop(result.slug, None)
            if result.status is Status.PASSED and result.score == result.max_score:
                checks = tuple(replace(check, seconds=0.0) for check in result.checks)
                alone = (replace(result, checks=checks),)
                data = to_json(replace(report, stages=alone, unchanged=()))
                after[result.slug] = {"seal": self._seal(texts[result.slug], data), "report": data}
        if after != before:
            with suppress(OSError):  # the next command grades again
                write_whole(make_memory_folder(self._root) / _FILE, json.dumps(after))

    def _seal(self, text: str, report: Any) -> str:
        """The SHA-256 of a verdict and of all that it depends on."""
        sealed = f"{text} {self._machine} {json.dumps(report)}"
        return hashlib.sha256(sealed.encode()).hexdigest()


def _machine(course: Course, device: str) -> str:
    """What a verdict depends on besides the kit, the course and the learner's files."""
    hides = [os.environ.get(name) for name in _GPU]
    libraries = [library_version(name) for name in (*course.preload, "numpy", "pytest")]
    return repr((device, os.path.exists("/dev/nvidiactl"), hides, sys.version, libraries))


def library_version(library: str) -> str:
    """The installed version of a library, "" if it is not installed."""
    from importlib import metadata  # slow to import, and most commands need no versions

    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""
