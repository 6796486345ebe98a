"""Grades on the machines of a Dask cluster: batches out, reports back.

The cluster is somebody else's and there already: https://docs.dask.org/en/stable/deploying.html.
Its workers have the kit installed. A batch is graded by a process of its own, started from the
worker, as the engine forks and a Dask worker has threads.
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

from grader.classroom import expect_sound
from grader.engine import Engine, with_engine
from grader.folder_class import Job, Result, graded
from grader.read.channels import read_course_files
from grader.read.course_file import FILE_NAME, read_course
from grader.read.versions import read_version
from grader.run.earned import Earned
from grader.run.lanes import LaneLost
from grader.types.course import Course, Stage
from grader.types.errors import KitError

_BATCH = 50  # submissions; a batch begins with some seconds in which the libraries are imported
_ANSWER_SECONDS = 20
_TRIES = 3  # workers that may be lost over a batch


@dataclass(frozen=True)
class Batch:
    """What a worker is sent: the course's files by their paths, and what to grade with them."""

    files: Mapping[str, bytes]
    engine: str
    slugs: tuple[str, ...]
    device: str
    jobs: tuple[Job, ...]


def graded_on_cluster(
    address: str, course: Course, stages: Sequence[Stage], device: str, jobs: Iterable[Job]
) -> Iterator[tuple[Job, Result]]:
    """The jobs done by the cluster whose scheduler has this address.

    A batch whose worker is lost is done by another; one that fails is tried once more, each job by
    itself, and what fails again is LaneLost. Raises KitError where there is no cluster, where its
    kit is another version than this one, or where nothing can pass.
    """
    try:
        import distributed
    except ImportError:
        raise KitError(
            "--dask: Dask is not installed: pip install 'attention-course-kit[cluster]'"
        ) from None
    about = (dict(read_course_files(course)), read_version(course).engine)
    rest = (tuple(stage.slug for stage in stages), device)
    left = iter(jobs)
    dask: Any = distributed  # which has no types
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
                batch = Batch(*about, *rest, some)
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
    """On a worker: the result of each job. Raises KitError where none can be trusted."""
    command = [sys.executable, "-m", "grader.cluster"]
    done = subprocess.run(command, input=pickle.dumps(batch), capture_output=True)
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise RuntimeError(f"exit code {done.returncode} {' '.join(last)}".strip())
    answer: list[Result] | KitError = pickle.loads(done.stdout)
    if isinstance(answer, KitError):
        raise answer
    return answer


def _main() -> None:
    """In the process of one batch: it comes on stdin, the results go to stdout."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever anybody prints is no answer
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
        raise KitError("a machine of the cluster has another version of the kit, torch or Python")
    stages = [course.stage(slug) for slug in batch.slugs]

    def body(engine: Engine) -> list[Result]:
        expect_sound(engine, stages, batch.jobs[0].seed)
        with Earned(shared=False) as earned:
            return [graded(engine, job, stages, earned) for job in batch.jobs]

    return with_engine(course, stages, batch.device, body)


if __name__ == "__main__":
    # The classes that are pickled must be those of the module, not of this script.
    from grader import cluster

    cluster._main()
