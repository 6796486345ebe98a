"""What runs in a Dask worker: starts the processes that grade, and passes jobs to them."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress

from distributed import WorkerPlugin, get_worker

from grader.classes.folder.grading import Job, Result
from grader.classes.folder.types import ClusterWork
from grader.types.errors import KitError

_MOST = 1000  # jobs of one process: Python does not return the memory of a thousand jobs


class OnWorker(WorkerPlugin):
    """The grading processes of a Dask worker, one for each of its threads.

    Dask gives the plugin to the workers that come later, too.
    """

    def __init__(self, work: ClusterWork) -> None:
        self._work = work
        self._graders: dict[int, _Grader] = {}

    def teardown(self, worker: object) -> None:
        """End the processes: the class is graded, or the Dask worker ends."""
        for grader in self._graders.values():
            grader.end()

    def grade(self, job: Job) -> Result | KitError:
        """The result of a job, or why none can be trusted. Raises RuntimeError if it was lost."""
        thread = threading.get_ident()
        grader = self._graders.get(thread)
        if grader is None or not grader.is_ready:
            grader = self._graders[thread] = _Grader(self._work)
        return grader.grade(job)


def grade_job(name: str, job: Job) -> Result | KitError:
    """The result of a job, from the plugin with this name."""
    plugin = get_worker().plugins[name]
    assert isinstance(plugin, OnWorker)
    return plugin.grade(job)


class _Grader:
    """A process that grades one job after the other."""

    def __init__(self, work: ClusterWork) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", "grader.classes.folder.dask_grader"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._work: ClusterWork | None = work
        self._left = _MOST

    @property
    def is_ready(self) -> bool:
        """Whether it can take another job."""
        return self._left > 0 and self._process.poll() is None

    def grade(self, job: Job) -> Result | KitError:
        """The result of a job. Raises RuntimeError if the process ends without one."""
        self._left -= 1
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None and answers is not None
        try:
            if self._work is not None:
                pickle.dump(self._work, asked)
                self._work = None
            pickle.dump(job, asked)
            asked.flush()
            result: Result | KitError = pickle.load(answers)
        except (EOFError, OSError, pickle.UnpicklingError):
            self._left = 0
            self.end()
            raise RuntimeError(self._last_words()) from None
        if not self.is_ready or isinstance(result, KitError):
            self._left = 0
            self.end()
        return result

    def end(self) -> None:
        """Let it end: it does when there are no more jobs."""
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()

    def _last_words(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        last = self._errors.read().decode(errors="replace").strip().splitlines()[-1:]
        return f"exit code {code} {' '.join(last)}".strip()
