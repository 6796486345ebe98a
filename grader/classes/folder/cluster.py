"""Grades on the machines of a Dask cluster: sends batches, receives reports.

The kit does not start the cluster (https://docs.dask.org/en/stable/deploying.html); its Dask
workers need the kit installed. Each Dask worker starts a new process for each batch, because the
engine forks and a Dask worker has threads.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from grader.classes.folder.course_files import read_course_files
from grader.classes.folder.grading import Job, Result, graded
from grader.classes.folder.versions import read_version
from grader.classes.grading import expect_sound, with_locked_engine
from grader.engine import Engine
from grader.read.course_file import FILE_NAME, read_course
from grader.run.earned import Earned
from grader.run.lanes import LaneLost
from grader.types.course import Course, Stage
from grader.types.errors import KitError

_BATCH = 50  # submissions; each batch first takes some seconds to import the libraries
_ANSWER_SECONDS = 20
_TRIES = 3  # how many workers one batch may crash


@dataclass(frozen=True)
class Batch:
    """What a Dask worker receives: the course's files by path, and what to grade with them."""

    files: Mapping[str, bytes]
    engine: str
    slugs: tuple[str, ...]
    device: str
    unlocked: bool
    jobs: tuple[Job, ...]


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

    If a Dask worker is lost, another one takes its batch. If a batch fails, each of its jobs is
    tried once more by itself; a job that fails again gets a LaneLost. Raises KitError if there is
    no cluster, if it has another version of the kit, if the course's solutions do not pass there,
    and, unless `unlocked`, if a machine's lock is incomplete.
    """
    try:
        import distributed
    except ImportError:
        raise KitError(
            "--dask: Dask is not installed: pip install 'course-grader[cluster]'"
        ) from None
    about = (dict(read_course_files(course)), read_version(course).engine)
    slugs = tuple(stage.slug for stage in stages)
    left = iter(jobs)
    dask: Any = distributed  # it has no type hints
    try:
        client = dask.Client(address, timeout=_ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise KitError(f"--dask {address}: no scheduler answers there: {error}") from None
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise KitError(f"--dask {address}: the scheduler has no workers")
        done = dask.as_completed(loop=client.loop)
        sent: dict[Any, tuple[Job, ...]] = {}

        def send(some: tuple[Job, ...]) -> None:
            if some:
                batch = Batch(*about, slugs, device, unlocked, some)
                future = client.submit(grade_batch, batch, pure=False, retries=_TRIES)
                sent[future] = some
                done.add(future)

        for _ in range(2 * threads):
            send(tuple(islice(left, _BATCH)))
        for future in done:
            some = sent.pop(future)
            fault = future.exception()
            if isinstance(fault, KitError):
                raise fault
            if fault is None:
                yield from zip(some, future.result(), strict=True)
            elif len(some) > 1:
                for job in some:
                    send((job,))
            else:
                yield some[0], LaneLost(f"on the cluster: {type(fault).__name__}: {fault}"[:300])
            send(tuple(islice(left, _BATCH)))


def grade_batch(batch: Batch) -> list[Result]:
    """On a Dask worker: the result of each job. Raises KitError if no result can be trusted."""
    command = [sys.executable, "-m", "grader.classes.folder.cluster"]
    done = subprocess.run(command, input=pickle.dumps(batch), capture_output=True)
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise RuntimeError(f"exit code {done.returncode} {' '.join(last)}".strip())
    answer: list[Result] | KitError = pickle.loads(done.stdout)
    if isinstance(answer, KitError):
        raise answer
    return answer


def _main() -> None:
    """The process of one batch: reads the batch from stdin, writes the results to stdout."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that nothing printed mixes with the results
    batch: Batch = pickle.loads(sys.stdin.buffer.read())
    with tempfile.TemporaryDirectory(prefix="grade-course-") as folder, answers:
        try:
            answer: list[Result] | KitError = _graded(batch, Path(folder))
        except KitError as error:
            answer = error
        answers.write(pickle.dumps(answer))


def _graded(batch: Batch, folder: Path) -> list[Result]:
    for name, data in batch.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    course = read_course(folder / FILE_NAME)
    if read_version(course).engine != batch.engine:
        raise KitError(
            "a machine of the cluster has another version of the kit, torch or Python: install "
            "the same versions there"
        )
    stages = [course.stage(slug) for slug in batch.slugs]

    def body(engine: Engine) -> list[Result]:
        expect_sound(engine, stages, batch.jobs[0].seed)
        with Earned(shared=False) as earned:
            return [graded(engine, job, stages, earned) for job in batch.jobs]

    return with_locked_engine(course, stages, batch.device, body, unlocked=batch.unlocked)


if __name__ == "__main__":
    # Pickle must find the classes of the imported module, not those of this script.
    from grader.classes.folder import cluster

    cluster._main()
