"""Run a command as an ordinary user or in an unprivileged container.

Root may read every folder and remove every file, so its tests miss errors that others meet.
"""

import os
import shutil
import subprocess

import pytest

ORDINARY = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
CONTAINER = (
    *("bwrap", "--unshare-all", "--uid", "1000", "--gid", "1000", "--die-with-parent"),
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
    *("--setenv", "TMPDIR", "/dev/shm"),  # the kit may be in /tmp, so that stays visible
)


def runs_here(prefix: tuple[str, ...]) -> bool:
    """Whether this system can run a command with this prefix."""
    if shutil.which(prefix[0]) is None:
        return False
    return subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0


def ordinary() -> tuple[str, ...]:
    """What to write before a command that is to run as an ordinary user."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return ()
    if not runs_here(ORDINARY):
        pytest.skip("root needs `unshare --user` to become an ordinary user")
    return ORDINARY


def container() -> tuple[str, ...]:
    """What to write before a command that is to run in an unprivileged container."""
    if not runs_here(CONTAINER):
        pytest.skip("bubblewrap cannot make a container here")
    return CONTAINER
