"""Lets one command at a time grade into a folder, and says who is at work there."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timezone
from pathlib import Path

from grader.types.errors import KitError, writing

_FILE = ".at-work.sqlite"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Run the block if no other command is at work in this folder. Raises KitError, which says who.

    The lock is SQLite's, on a file of its own. It works on every system, ends with its process
    however that ends, and is not passed on to forked processes.
    """
    file = folder / _FILE
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        database = sqlite3.connect(file, timeout=0, isolation_level=None)
    except sqlite3.Error as error:
        raise unusable(file, error) from None
    with closing(database):
        _claim(database, file)
        yield


def unusable(file: Path, error: Exception, advice: str = "") -> KitError:
    """What SQLite says of a file, and the `advice`, or another if it cannot be written."""
    places = [place for place in (file.parent, file) if place.exists()]
    if not all(os.access(place, os.W_OK) for place in places):
        advice = ": make the folder and its files writable, or choose another folder"
    elif "disk is full" in str(error):
        advice = ": free some space and rerun the command"
    return KitError(f"{file}: {error}{advice}")


def _claim(database: sqlite3.Connection, file: Path) -> None:
    """Write who is at work, and keep the lock for writing, which leaves that readable."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M")
    who = f"process {os.getpid()} on {platform.node()} has been grading here since {now} UTC"
    try:
        database.execute("CREATE TABLE IF NOT EXISTS at_work (who TEXT)")
        database.execute("BEGIN IMMEDIATE")
        database.execute("DELETE FROM at_work")
        database.execute("INSERT INTO at_work VALUES (?)", (who,))
        database.execute("COMMIT")
        database.execute("BEGIN IMMEDIATE")
    except sqlite3.Error as error:
        if "locked" not in str(error):
            raise unusable(file, error, ": delete this file and rerun the command") from None
        raise KitError(
            f"{file.parent}: {_other(database)}; wait until it ends, or stop it with Ctrl-C and "
            "rerun this command: no verdict is lost"
        ) from None


def _other(database: sqlite3.Connection) -> str:
    try:
        return str(database.execute("SELECT who FROM at_work").fetchone()[0])
    except (sqlite3.Error, TypeError):
        return "another command is grading here"
