"""A process of a Dask worker that grades one job after the other.

`dask_worker.py` starts one for each thread: the engine forks, and a Dask worker has threads.
"""

from __future__ import annotations

import os
import pickle
import select
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

from grader.classes.folder.grading import Job, Result, graded
from grader.classes.folder.types import ClusterWork
from grader.classes.folder.versions import read_version
from grader.classes.grading import all_graded, with_locked_engine
from grader.classes.sharing.earned import Earned
from grader.engine import Engine
from grader.read.course_file import FILE_NAME, read_course
from grader.types.errors import KitError
from grader.types.report import Report

_IDLE_SECONDS = 600.0  # a process that gets no job for this long ends


def _main() -> None:
    """The process: reads the work and then jobs from stdin, writes a result for each to stdout."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that nothing printed mixes with the results
    work: ClusterWork = pickle.load(sys.stdin.buffer)

    def answer(result: Result | KitError) -> None:
        pickle.dump(result, answers)
        answers.flush()

    with tempfile.TemporaryDirectory(prefix="grade-course-") as folder, answers:
        try:
            _grade_all(work, Path(folder), answer)
        except KitError as error:
            answer(error)


def _grade_all(work: ClusterWork, folder: Path, answer: Callable[[Result], None]) -> None:
    """Grade each job until no more come. Raises KitError if none can be graded."""
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
                return lambda job: graded(engine, job, stages, earned.of)

            for first in jobs:  # its seed is that of the class
                every = chain([first], jobs)
                for _, result in all_graded(engine, every, 1, stages, first.seed, lane):
                    answer(result)

    with_locked_engine(course, stages, work.device, body, unlocked=work.unlocked)


def _jobs() -> Iterator[Job]:
    """The jobs from stdin, until it is closed or no job comes for `_IDLE_SECONDS`."""
    with suppress(EOFError):
        is_there = True  # the first job may already be in the buffer, with the work
        while is_there:
            yield pickle.load(sys.stdin.buffer)
            is_there = sys.platform == "win32" or any(select.select([0], [], [], _IDLE_SECONDS))


if __name__ == "__main__":
    _main()
