"""Grades on the machines of a Dask cluster: sends submissions, receives reports.

The kit does not start the cluster (https://docs.dask.org/en/stable/deploying.html); its Dask
workers need the kit installed. There, `dask_worker.py` starts this module as a process for each
thread of a Dask worker, because the engine forks and a Dask worker has threads.
"""

from __future__ import annotations

import os
import pickle
import select
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from grader.classes.folder.course_files import read_course_files
from grader.classes.folder.grading import Job, Result, graded
from grader.classes.folder.versions import read_version
from grader.classes.grading import all_graded, with_locked_engine
from grader.engine import Engine
from grader.read.course_file import FILE_NAME, read_course
from grader.run.earned import Earned
from grader.run.lanes import LaneLost
from grader.types.course import Course, Limits, Stage
from grader.types.errors import KitError
from grader.types.report import Report

_ANSWER_SECONDS = 20
_TRIES = 3  # how many processes one submission may end before it counts as lost
_AHEAD = 2  # submissions sent for each thread of a Dask worker, so that none waits for the next
_COUNT_SECONDS = 5.0  # between two counts of the workers: more may come
_IDLE_SECONDS = 600.0  # a process ends by itself after so long without a submission


@dataclass(frozen=True)
class Work:
    """What a Dask worker receives once: the course's files by path, and how to grade."""

    files: Mapping[str, bytes]
    engine: str
    slugs: tuple[str, ...]
    limits: Limits
    device: str
    unlocked: bool


def graded_on_cluster(
    address: str,
    course: Course,
    stages: Sequence[Stage],
    device: str,
    jobs: Iterable[Job],
    *,
    unlocked: bool,
) -> Iterator[tuple[Job, Result]]:
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
    work = Work(files, engine, slugs, course.limits, device, unlocked)
    left = iter(jobs)
    dask: Any = distributed  # it has no type hints
    try:
        client = dask.Client(address, timeout=_ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise KitError(f"--dask {address}: no scheduler answers there: {error}") from None
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
                fault = future.exception()
                result: Result | KitError
                if fault is None:
                    result = future.result()
                else:
                    result = LaneLost(f"on the cluster: {type(fault).__name__}: {fault}"[:300])
                send()
                if isinstance(result, KitError):
                    raise result
                yield job, result
        finally:
            with suppress(OSError, dask.TimeoutError):  # the scheduler may be gone
                client.unregister_worker_plugin(name)


def _main() -> None:
    """The process: reads the work and then jobs from stdin, writes a result for each to stdout."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that nothing printed mixes with the results
    work: Work = pickle.load(sys.stdin.buffer)

    def answer(result: Result | KitError) -> None:
        pickle.dump(result, answers)
        answers.flush()

    with tempfile.TemporaryDirectory(prefix="grade-course-") as folder, answers:
        try:
            _grade_all(work, Path(folder), answer)
        except KitError as error:
            answer(error)


def _grade_all(work: Work, folder: Path, answer: Callable[[Result], None]) -> None:
    """Grade each job that comes, until there are no more. Raises KitError if none can be graded."""
    for name, data in work.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    course = replace(read_course(folder / FILE_NAME), limits=work.limits)
    if read_version(course).engine != work.engine:
        raise KitError(
            "a machine of the cluster has another version of the kit, torch or Python: install "
            "the same versions there"
        )
    stages = [course.stage(slug) for slug in work.slugs]

    def body(engine: Engine) -> None:
        jobs = _jobs()
        with Earned(shared=False) as earned:

            def lane(engine: Engine) -> Callable[[Job], tuple[Report, float]]:
                return lambda job: graded(engine, job, stages, earned)

            for first in jobs:  # its seed is that of the class
                every = chain([first], jobs)
                for _, result in all_graded(engine, every, 1, stages, first.seed, lane):
                    answer(result)

    with_locked_engine(course, stages, work.device, body, unlocked=work.unlocked)


def _jobs() -> Iterator[Job]:
    """The jobs from stdin, until it is closed or none comes for long."""
    with suppress(EOFError):
        is_there = True  # the first job may already be in the buffer, with the work
        while is_there:
            yield pickle.load(sys.stdin.buffer)
            is_there = sys.platform == "win32" or any(select.select([0], [], [], _IDLE_SECONDS))


if __name__ == "__main__":
    # Pickle must find the classes of the imported module, not those of this script.
    from grader.classes.folder import cluster

    cluster._main()
