"""Notices changes of the learner's files: at once if the file system has events, else soon."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from grader.read.submission import is_left_out, read_or_refuse
from grader.types.errors import NoSubmissionError
from grader.types.submission import Submission

_POLL_SECONDS = 0.25
_GROUP_MS = 30  # one save may be several events
_STEP_MS = 5
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
    texts themselves; file system events, if there are any, only say when to look.
    """
    stamps: _Stamps | None = None
    for _ in _moments(folder, stop):
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


def _moments(folder: Path, stop: threading.Event) -> Iterator[None]:
    """Yields at every event in `folder` and, without events, a few times a second."""
    from watchfiles import watch

    while not stop.is_set():
        try:
            for _ in watch(
                folder,
                watch_filter=None,
                debounce=_GROUP_MS,
                step=_STEP_MS,
                stop_event=stop,
                rust_timeout=round(_POLL_SECONDS * 1000),
                yield_on_timeout=True,
                raise_interrupt=False,
                recursive=False,
            ):
                yield
                if not folder.is_dir():
                    break  # a recreated folder needs a new watch
        except (OSError, RuntimeError):  # no such folder, or the system allows no more watches
            yield
        stop.wait(_POLL_SECONDS)


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
    """The stamps of `folder`, its subfolders and their .py files; a new version has a new one."""
    stamps: _Stamps = {}
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
