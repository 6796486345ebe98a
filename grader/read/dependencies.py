"""SHA-256 digests of what a verdict depends on: the kit, the course and the learner's files.

A verdict is about the current text as long as its digest is the same.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from grader import __version__
from grader.read.course_file import FILE_NAME
from grader.types.course import Course, Stage
from grader.types.submission import Submission

# The files of the kit that make verdicts; the others show them, or read other things.
_JUDGING = ("checking", "diagnosis", "engine.py", "judge", "misconceptions.py", "run", "types")
_GRADING = (FILE_NAME, "solutions", "tests/checks", "hints/misconceptions")  # a course's own
_PROVEN = (FILE_NAME, "solutions", "tests/checks", "tests/accepted", "hints")
_CONTINUED = re.compile(rb"\\(\r\n|\r|\n)")
_QUOTED = re.compile(rb"[\"']([A-Za-z0-9_]+)[.\"']")
_WORD = re.compile(rb"[A-Za-z0-9_]+")
# Ways to import a module whose name is not in the text.
_UNTOLD = (
    *(b"importlib", b"__import__", b"__builtins__", b"__loader__", b"builtins", b"runpy"),
    *(b"pkgutil", b"pickle", b"sys.", b"import sys", b"exec(", b"eval("),
)
_METHOD = re.compile(rb"\.\s*(exec|eval)\(")  # of a module of torch
_ENCODED = re.compile(rb"([^\n]*\n)?[^\n]*coding[:=]")  # so it may not be what it looks like


def course_digest(course: Course) -> str:
    """A digest of the kit and of all the course's files that a verdict depends on."""
    return digest_of(_texts(course.root, _GRADING), kit_digest())


def proof_digest(course: Course) -> str:
    """A digest of the kit and of all the course's files that `grade verify` reads."""
    return digest_of(_texts(course.root, _PROVEN), kit_digest())


def text_digests(course: Course, submission: Submission, of_course: str) -> dict[str, str]:
    """For each stage of a folder, a digest of all that its verdict depends on, by slug.

    `of_course` is the course's own digest. A stage depends on its file, on the files of required
    stages, on every file that belongs to no stage, and on everything that these may import.
    """
    about = of_course, submission.refused, sorted(submission.links)
    looks = {name: _look(data) for name, data in submission.files.items()}
    digests = {}
    for stage in course.stages:
        needed = [(name, looks[name].digest) for name in _needed(course, stage, looks)]
        digests[stage.slug] = hashlib.sha256(repr((about, stage.slug, needed)).encode()).hexdigest()
    return digests


@dataclass(frozen=True)
class _Look:
    """A file's digest and the modules that it may import, None for any module."""

    digest: str
    modules: frozenset[bytes] | None

    def may_import(self, stage: Stage) -> bool:
        return self.modules is None or stage.slug.encode() in self.modules


def _needed(course: Course, stage: Stage, looks: Mapping[str, _Look]) -> list[str]:
    """The names of the existing files that a stage depends on."""
    of_stages = {each.file_name for each in course.stages}
    needed = [each.file_name for each in (stage, *course.required(stage))]
    needed += looks.keys() - of_stages  # any of them may shadow a library
    for name in needed:
        if name in looks:
            found = {each.file_name for each in course.stages if looks[name].may_import(each)}
            needed += found - set(needed)
    return sorted(looks.keys() & needed)


@lru_cache(maxsize=256)
def _look(data: bytes) -> _Look:
    joined = _CONTINUED.sub(b" ", data) if b"\\" in data else data
    lines = [line for line in joined.splitlines() if b"import" in line]
    plain = _METHOD.sub(b"", data) if b"eval(" in data or b"exec(" in data else data
    is_told = all(word not in plain for word in _UNTOLD) and not _ENCODED.match(data)
    modules = None
    if is_told and all(line.isascii() for line in lines):
        words = (word for line in lines for word in _WORD.findall(line))
        modules = frozenset((*_QUOTED.findall(data), *words))
    return _Look(hashlib.sha256(data).hexdigest(), modules)


@cache
def kit_digest() -> bytes:
    """A digest of the running kit and of Python's version."""
    package = Path(__file__).resolve().parents[1]
    version = ".".join(map(str, sys.version_info[:2]))
    kit = f"{__version__}, Python {version}".encode()
    return digest_of(_texts(package, _JUDGING), kit).encode()


def _texts(root: Path, names: Iterable[str]) -> Iterator[bytes]:
    """The path and bytes of each file in `root` with one of these names, or in a folder so named.

    Skips compiled files.
    """
    for name in names:
        yield from _text(root, name)
        for folder, folders, files in os.walk(root / name):
            folders.sort()
            for file in sorted(files):
                if not file.endswith(".pyc"):
                    yield from _text(root, os.path.relpath(os.path.join(folder, file), root))


def _text(root: Path, name: str) -> Iterator[bytes]:
    with suppress(OSError), open(os.path.join(root, name), "rb") as file:
        yield from (os.fsencode(name), file.read())


def digest_of(parts: Iterable[bytes], start: bytes = b"") -> str:
    """A digest of these parts and of where each of them ends, after what it starts with."""
    hashed = hashlib.sha256(start)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part)
    return hashed.hexdigest()
