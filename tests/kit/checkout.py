"""The checkout: its folder, its course, and the tests' small course without torch."""

from __future__ import annotations

from pathlib import Path

from grader.read.course_file import read_course

ROOT = Path(__file__).parents[2]
COURSE = read_course(ROOT / "course.toml")
TINY = read_course(ROOT / "tests" / "kit" / "courses" / "tiny" / "course.toml")
