"""The checkout: its folder, its course, the tests' small course without torch, and its Python."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grader.read.course_file import read_course

ROOT = Path(__file__).parents[3]
COURSE = read_course(ROOT / "course.toml")
TINY = read_course(ROOT / "tests" / "kit" / "courses" / "tiny" / "course.toml")


def run_python(
    *words: str | Path, env: Mapping[str, str] | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run `python ...`, which finds this checkout's kit; what is written is text."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        env=_environment(env),
        **more,
    )


def start_grade(
    *words: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None, **more: Any
) -> subprocess.Popen[str]:
    """Start `grade ...` without a terminal, with this checkout's kit; what is written is text."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [sys.executable, "-m", "grader", *map(str, words)],
        encoding="utf-8",
        cwd=cwd,
        env=_environment(env),
        **{**streams, **more},
    )


def _environment(more: Mapping[str, str] | None) -> dict[str, str]:
    kits = {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    return {**os.environ, **kits, **(more or {})}


def imported_by(*words: str, code: int = 0, shows: str = "", **more: Any) -> set[str]:
    """The modules that `grade ...` imports, for what must be there at once."""
    done = run_python("-X", "importtime", "-m", "grader", *words, **more)
    assert done.returncode == code and shows in done.stdout, done.stderr
    found = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "grader.command.main" in found
    return found
