"""A Dask cluster on this machine, whose workers are processes as on a real one."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.kit.support.checkout import ROOT


class Cluster:
    """A scheduler and workers of one thread, which write their log to a folder."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self._folder = folder
        self._log = (folder / "log").open("w+b")
        self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard")
        self.address = self._said(r"Scheduler at: +(tcp://\S+)")
        self.workers = [self.worker() for _ in range(workers)]
        self._said(rf"(?s)(?:Registered to.*?){{{workers}}}()")

    def worker(self) -> subprocess.Popen[bytes]:
        """One worker more."""
        words = ("--nworkers", "1", "--nthreads", "1", "--no-nanny", "--no-dashboard")
        return self._start("worker", self.address, *words)

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        log = {"DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": "100000"}
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "distributed.cli.dask_" + words[0], *words[1:]],
            cwd=self._folder,
            env={**os.environ, **log, "PYTHONPATH": str(ROOT)},
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def _said(self, pattern: str) -> str:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = re.search(pattern, (self._folder / "log").read_text("utf-8", "replace"))
            if found is not None:
                return found.group(1)
            time.sleep(0.1)
        raise AssertionError((self._folder / "log").read_text("utf-8", "replace"))

    def close(self) -> None:
        """End all of it."""
        for process in (*self.workers, self.scheduler):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._log.close()
