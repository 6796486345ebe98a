"""What the server does about workers that use too much; it is started for real in run/."""

import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from grader.run.worker import server
from grader.run.worker.scratch import mark_unused


@pytest.mark.skipif(sys.platform == "win32", reason="no server watches workers on Windows")
def test_on_a_disk_that_fills_up_only_a_worker_with_files_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files without a name take room too, and only the disk shows that."""
    ours, theirs = socket.socketpair()
    lock: Any = None
    watching = server._Server(ours, {"scratch_root": str(tmp_path), "scratch_bytes": 99}, lock, ())
    workers = {}
    for name in ("used", "unused"):
        folder = tmp_path / name
        folder.mkdir()
        mark_unused(str(folder))
        workers[name] = subprocess.Popen(["sleep", "60"])
        watching._scratch[workers[name].pid] = str(folder)
    (tmp_path / "used" / "file").touch()
    (tmp_path / "used" / "file").unlink()
    for free, is_stopped in ((50, False), (49, True)):
        watching._free = 100
        monkeypatch.setattr(server, "free_bytes", lambda folder, free=free: free)
        request = threading.Timer(0.2, theirs.send, [b"x"])
        request.start()
        watching._watch()
        request.join()
        ours.recv(1)
        assert watching._stopped == ({workers["used"].pid: "files"} if is_stopped else {})
    for worker in workers.values():
        worker.kill()
        worker.wait()
    ours.close()
    theirs.close()
