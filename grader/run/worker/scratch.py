"""A worker's scratch folder: whether it has grown too large, and how to remove it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

OWNER = ".grade-scratch-owner"  # the file that a run keeps locked in its folder
_ENTRIES_CAP = 5000  # files and folders in one scratch folder, at most
_PATH_CAP = 500  # characters of a path below it: reading deep folders is slow


def is_overfull(root: str, size: int) -> bool:
    """Whether the folder's contents take more than `size` bytes, or are too many to count.

    Strangers' code may fill it meanwhile. A folder without permissions is opened; one that stays
    closed counts as too much.
    """
    left, entries, longest = size, 0, len(root) + _PATH_CAP
    pending = [root]
    for folder in pending:
        try:
            with os.scandir(folder) as found:
                for entry in found:
                    entries += 1
                    if entry.is_dir(follow_symlinks=False):
                        open_up(entry.path)
                        pending.append(entry.path)
                    else:
                        with suppress(FileNotFoundError):
                            left -= (
                                512 * entry.stat(follow_symlinks=False).st_blocks
                            )  # holes take none
                    if left < 0 or entries > _ENTRIES_CAP or len(entry.path) > longest:
                        return True
        except FileNotFoundError:
            continue
        except OSError:
            return True
    return False


def mark_unused(root: str) -> None:
    """Set the folder's time, so that `is_used` sees the first change."""
    with suppress(OSError):  # where there is no lock, another worker may have removed it
        os.utime(root, (0, 0))


def is_used(root: str) -> bool:
    """Whether anything was put into the folder since `mark_unused`."""
    try:
        return os.stat(root).st_mtime != 0
    except OSError:
        return True


def free_bytes(folder: str) -> int:
    """The room that is left on a folder's disk for an ordinary user."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return 0
    return disk.f_bavail * disk.f_frsize


def open_up(folder: str) -> None:
    """Give this user access to a folder of theirs, whatever mode the code has set."""
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        with suppress(OSError):
            os.chmod(folder, 0o700)


def remove_tree(root: str, last: str | None = None) -> OSError | None:
    """Remove a folder that strangers' code has filled, however deep, as far as possible.

    Returns the first refusal if something is left. The file `last` is removed after everything
    else, and stays if something is left. A folder found inside is first moved up into the root,
    under an unpredictable name, so that no path grows long and nothing recurses.
    """
    refusals: list[OSError] = []
    unforeseen = os.urandom(8).hex()
    pending = [root]
    for folder in pending:
        open_up(folder)
        for entry in _listed(folder, refusals):
            if entry.path == last:
                continue
            with _noting(refusals):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                open_up(entry.path)  # moving a folder requires the right to write in it
                moved = os.path.join(root, f"{unforeseen}.{len(pending)}")
                try:
                    os.rename(entry.path, moved)
                except OSError:
                    moved = entry.path  # it could not be moved: empty it in its place
                pending.append(moved)
    for folder in reversed(pending[1:]):
        with _noting(refusals):
            os.rmdir(folder)
    with _noting(refusals):
        if last is not None and not refusals:
            os.unlink(last)
        os.rmdir(root)
    return refusals[0] if refusals and os.path.lexists(root) else None


def _listed(folder: str, refusals: list[OSError]) -> list[os.DirEntry[str]]:
    with _noting(refusals), os.scandir(folder) as entries:
        return list(entries)
    return []


@contextmanager
def _noting(refusals: list[OSError]) -> Iterator[None]:
    """Continue after a refusal and note it; a missing file is no refusal."""
    try:
        yield
    except FileNotFoundError:
        pass
    except OSError as error:
        refusals.append(error)
