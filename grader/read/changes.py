"""Tells when the learner's files change: at once if the file system has events, else soon."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

_POLL_SECONDS = 0.25
_GROUP_MS = 30  # one save may be several events
_STEP_MS = 5
_UNFINISHED_SECONDS = 0.15  # an editor may remove or empty a file before it writes it

_Stamps = dict[str, tuple[int, int, int]]


def changes(folder: Path, stop: threading.Event) -> Iterator[frozenset[str]]:
    """The names of the .py files in `folder` that were written, made or removed, each time any was.

    Ends when `stop` is set. The folder may vanish and come back. Whether something has changed is
    seen in the files themselves; events, where there are any, only tell when to look.
    """
    before = _stamps(folder)
    for _ in _moments(folder, stop):
        now = _stamps(folder)
        if now == before:
            continue
        if _is_unfinished(before, now):
            stop.wait(_UNFINISHED_SECONDS)
            now = _stamps(folder)
        names = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
        before = now
        if names:
            yield frozenset(names)


def _moments(folder: Path, stop: threading.Event) -> Iterator[None]:
    """Comes round at every event in `folder` and, without any, a few times a second."""
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
                    break  # a folder made anew needs a new watch
        except (OSError, RuntimeError):  # no such folder, or no more watches to be had
            yield
        stop.wait(_POLL_SECONDS)


def _is_unfinished(before: _Stamps, now: _Stamps) -> bool:
    gone = before.keys() - now.keys()
    return bool(gone) or any(size == 0 for name, (_, size, _) in now.items() if name in before)


def _stamps(folder: Path) -> _Stamps:
    """What tells one version of each file from another."""
    stamps: _Stamps = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    status = entry.stat(follow_symlinks=False)
                    stamps[entry.name] = (status.st_mtime_ns, status.st_size, status.st_ino)
    except OSError:
        pass  # what is not there now has no stamps
    return stamps
