"""Notices changes of the learner's files, by looking at them many times a second."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from grader.read.submission import is_left_out, read_or_refuse
from grader.types.errors import NoSubmissionError
from grader.types.submission import Submission

_LOOK_SECONDS = 0.02  # a look takes a tenth of a millisecond
_UNFINISHED_SECONDS = 0.15  # an editor may remove or empty a file before it writes it
_COARSEST_CLOCK = 3.0  # seconds: a file system may give two writes within it the same stamp

Seen = Submission | NoSubmissionError
_Stamp = tuple[int, int, int, int]
_Stamps = dict[str, _Stamp]


def see(folder: Path) -> Seen:
    """The submission in `folder`, which may be refused, or the error if there is none."""
    try:
        return read_or_refuse(folder, is_own=True)
    except NoSubmissionError as error:
        return error


def changes(folder: Path, before: Seen, stop: threading.Event) -> Iterator[Seen]:
    """The contents of `folder` after each change, starting from `before`.

    Ends when `stop` is set. The folder may vanish and come back. A change is a difference in the
    texts themselves.
    """
    stamps: _Stamps | None = None
    while not stop.wait(_LOOK_SECONDS):
        earlier, stamps = stamps, _stamps(folder)
        if stamps == earlier and not _is_young(stamps):
            continue
        now = see(folder)
        if _is_unfinished(before, now):
            stop.wait(_UNFINISHED_SECONDS)
            now = see(folder)
        if not _is_same(before, now):
            before = now
            yield now


def changed_files(before: Seen, now: Seen) -> set[str]:
    """The names of the files whose texts differ."""
    old, new = _files(before), _files(now)
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def _files(seen: Seen) -> dict[str, bytes]:
    return dict(seen.files) if isinstance(seen, Submission) else {}


def _is_same(before: Seen, now: Seen) -> bool:
    if isinstance(before, Submission) or isinstance(now, Submission):
        return before == now
    return str(before) == str(now)


def _is_unfinished(before: Seen, now: Seen) -> bool:
    old, new = _files(before), _files(now)
    return any(not new.get(name) for name in old if old[name])


def _is_young(stamps: _Stamps) -> bool:
    """Whether a file may have been written again without a change of its stamp."""
    oldest = (time.time() - _COARSEST_CLOCK) * 1e9
    return any(max(written, changed) > oldest for written, changed, _, _ in stamps.values())


def _stamps(folder: Path) -> _Stamps:
    """The stamps of `folder`, its subfolders and their .py files; a new version has a new one.

    The stamp of the folder around it shows what a learner saves beside it by mistake.
    """
    stamps: _Stamps = {}
    with suppress(OSError):
        stamps[str(folder.parent)] = _stamp(os.stat(folder.parent))
    pending = [str(folder)]
    for parent in pending:
        try:
            stamps[parent] = _stamp(os.stat(parent))
            with os.scandir(parent) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending += [] if is_left_out(entry.name) else [entry.path]
                    elif entry.name.endswith(".py"):
                        stamps[entry.path] = _stamp(entry.stat(follow_symlinks=False))
        except OSError:
            pass  # what does not exist now has no stamp
    return stamps


def _stamp(found: os.stat_result) -> _Stamp:
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
