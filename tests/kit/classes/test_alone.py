"""One command at a time grades into a folder; the second says who is at work."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grader.classes.alone import alone, unusable
from grader.types.errors import KitError

HOLDS = """
import sys, time
from pathlib import Path
from grader.classes.alone import alone, unusable
with alone(Path(sys.argv[1])):
    print("at work", flush=True)
    time.sleep(60)
"""


def test_the_second_is_told_who_is_at_work_until_the_first_ends_however_it_ends(
    tmp_path: Path,
) -> None:
    words = [sys.executable, "-c", HOLDS, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None and first.stdout.readline() == "at work\n"
        with pytest.raises(KitError, match=f"process {first.pid} on .* since 20"), alone(tmp_path):
            pass
        first.send_signal(signal.SIGKILL)
    mine = pytest.raises(KitError, match=f"process {os.getpid()} on ")
    with alone(tmp_path), mine, alone(tmp_path):
        pass
    with alone(tmp_path):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_that_lives_on_keeps_nobody_out(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    with alone(tmp_path):
        child = os.fork()
        if not child:
            os.read(reads, 1)
            os._exit(0)
    with alone(tmp_path):
        os.write(writes, b"x")
    os.waitpid(child, 0)


def test_a_damaged_lock_is_named(tmp_path: Path) -> None:
    (tmp_path / ".at-work.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(KitError, match="delete this file"), alone(tmp_path):
        pass


def test_a_file_that_is_closed_to_us_need_not_be_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert str(unusable(Path("out"), OSError("no"), ": delete it")).startswith("out: no: make the ")


def test_a_full_disk_damages_no_file() -> None:
    full = unusable(Path("out"), OSError("database or disk is full"), ": delete it")
    assert str(full).endswith("disk is full: free some space and rerun the command")
