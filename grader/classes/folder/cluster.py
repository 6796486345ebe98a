"""Grades on the machines of a Dask cluster: sends submissions, receives reports.

The kit does not start the cluster (https://docs.dask.org/en/stable/deploying.html); its Dask
workers need the kit installed.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from grader.classes.folder.course_files import read_course_files
from grader.classes.folder.grading import Job, Result, Results
from grader.classes.folder.types import ClusterWork
from grader.classes.folder.versions import read_version
from grader.run.lanes import LaneLost
from grader.types.course import Course, Stage
from grader.types.errors import KitError

_ANSWER_SECONDS = 20
_TRIES = 3  # how many processes one submission may end before it counts as lost
_AHEAD = 2  # submissions sent for each thread of a Dask worker, so that none waits for the next
_COUNT_SECONDS = 5.0  # between two counts of the workers: more may come


def graded_on_cluster(
    address: str,
    course: Course,
    stages: Sequence[Stage],
    device: str,
    jobs: Iterable[Job],
    *,
    unlocked: bool,
) -> Results:
    """Each job with its result, from the cluster whose scheduler has this address.

    If a Dask worker is lost, another one does the job that it was doing. A job that ends several
    of them gets a LaneLost. Raises KitError if there is no cluster, if it has another version of
    the kit, if the course's solutions do not pass there, and, unless `unlocked`, if a machine's
    lock is incomplete.
    """
    try:
        import distributed
    except ImportError:
        raise KitError(
            "--dask: Dask is not installed: pip install 'course-grader[cluster]'"
        ) from None
    from grader.classes.folder.dask_worker import OnWorker, grade_job

    files, engine = dict(read_course_files(course)), read_version(course).engine
    slugs = tuple(stage.slug for stage in stages)
    work = ClusterWork(files, engine, slugs, course.limits, device, unlocked)
    left = iter(jobs)
    dask: Any = distributed  # it has no type hints
    client = _client(dask, address)
    name = f"course-grader-{uuid.uuid4()}"  # others may grade on the same cluster
    with client:
        client.register_plugin(OnWorker(work), name)
        try:
            done = dask.as_completed(loop=client.loop)
            sent: dict[Any, Job] = {}
            threads, counted = 0, -_COUNT_SECONDS

            def send() -> None:
                nonlocal threads, counted
                if time.monotonic() - counted > _COUNT_SECONDS:
                    threads, counted = sum(client.nthreads().values()), time.monotonic()
                while len(sent) < _AHEAD * threads:
                    job = next(left, None)
                    if job is None:
                        return
                    future = client.submit(grade_job, name, job, pure=False, retries=_TRIES)
                    sent[future] = job
                    done.add(future)

            send()
            if not threads:
                raise KitError(f"--dask {address}: the scheduler has no workers")
            for future in done:
                job = sent.pop(future)
                result = _result(future)
                send()
                if isinstance(result, KitError):
                    raise result
                yield job, result
        finally:
            with suppress(OSError, dask.TimeoutError):  # the scheduler may be gone
                client.unregister_worker_plugin(name)


def _client(dask: Any, address: str) -> Any:
    try:
        return dask.Client(address, timeout=_ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise KitError(f"--dask {address}: no scheduler answers there: {error}") from None


def _result(future: Any) -> Result | KitError:
    """The result of a job, a LaneLost if the workers that did it ended."""
    fault = future.exception()
    if fault is None:
        result: Result | KitError = future.result()
        return result
    return LaneLost(f"on the cluster: {type(fault).__name__}: {fault}"[:300])
