"""A worker's scratch folder: whether it has grown too large, and how it is removed."""

from __future__ import annotations

import os
from contextlib import suppress

_ENTRIES_CAP = 5000  # files and folders in one scratch folder
_PATH_CAP = 500  # characters below it: looking into deep folders takes long


def is_overfull(root: str, size: int) -> bool:
    """Whether what lies in the folder takes more than `size` bytes, or is too much to look at.

    Strangers fill it meanwhile. A folder that cannot be looked into is too much, too.
    """
    left, entries, longest = size, 0, len(root) + _PATH_CAP
    pending = [root]
    for folder in pending:
        try:
            with os.scandir(folder) as found:
                for entry in found:
                    entries += 1
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        with suppress(FileNotFoundError):
                            left -= _taken(entry)
                    if left < 0 or entries > _ENTRIES_CAP or len(entry.path) > longest:
                        return True
        except FileNotFoundError:
            continue
        except OSError:
            return True
    return False


def _taken(entry: os.DirEntry[str]) -> int:
    """The bytes that a file takes on the disk: of one with holes only what was written."""
    return 512 * entry.stat(follow_symlinks=False).st_blocks


def remove_tree(root: str) -> None:
    """Remove a folder that strangers have filled, however deep; what cannot be removed is left.

    A folder found inside is first moved beside the root: no path grows long and nothing recurses.
    """
    pending = [root]
    for folder in pending:
        with suppress(OSError):
            os.chmod(folder, 0o700)
            with os.scandir(folder) as entries:
                for entry in list(entries):
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(f"{root}.{len(pending)}")
                        os.rename(entry.path, pending[-1])
                    else:
                        os.unlink(entry.path)
            os.rmdir(folder)
