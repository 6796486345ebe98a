"""Grades the submissions of a class, whoever keeps the results: side by side, and only if sound."""

from __future__ import annotations

import ctypes
import errno
import gc
import itertools
import os
import platform
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

from grader.engine import Engine, Request, with_engine
from grader.run.lanes import LaneLost, Work, can_fork, give_back_memory, in_lanes
from grader.run.solutions import solution_files
from grader.types.course import Course, Stage
from grader.types.errors import KitError
from grader.types.submission import Submission

Job = TypeVar("Job")
Result = TypeVar("Result")

_INCOMPLETE = (
    "nothing was graded: this machine ({machine}) has no complete lock, missing: {missing}; one "
    "student's code could read or change the work and the points of others. {way_out}; or add "
    "{option} if you trust all students"
)
_CREATE_RULESET = 444  # landlock_create_ruleset(2), on every processor
_VERSION = 1  # its flag that only asks for the version
_ELSEWHERE = (
    "Grade on a Linux machine, real or virtual, that locks everything (docs/instructors.md)"
)
_LANDLOCK = {
    errno.ENOSYS: "Landlock needs Linux 5.13, and in a container a seccomp profile that knows it "
    "(docs/containers.md)",
    errno.EPERM: "The seccomp profile of this container forbids Landlock: use one that allows it "
    "(docs/containers.md)",
    errno.EOPNOTSUPP: "Landlock is off: add landlock to lsm= on the kernel's command line",
}

_COLLECTED = 10  # submissions between two garbage collections


def with_locked_engine(
    course: Course,
    stages: Sequence[Stage],
    device: str,
    body: Callable[[Engine], Result],
    *,
    unlocked: bool,
    option: str = "--unlocked",
) -> Result:
    """Call `body` with an engine that may run strangers' code; returns its result.

    Raises KitError as `with_engine` does, and, unless `unlocked`, if the lock is incomplete.
    `option` is the command's option that sets `unlocked`.
    """
    if sys.platform == "linux":
        # Else each answer would interrupt the worker that gives it, to wake the process that waits.
        with suppress(OSError):  # a container may forbid it
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))

    def locked(engine: Engine) -> Result:
        missing = engine.interpreter.missing_layers
        if missing and not unlocked:
            named = ", ".join(missing)
            raise KitError(
                _INCOMPLETE.format(
                    machine=platform.node(), missing=named, way_out=_way_out(missing), option=option
                )
            )
        return body(engine)

    return with_engine(course, stages, device, locked)


def _way_out(missing: Sequence[str]) -> str:
    """What the instructor can do about the missing layers, as a sentence without its full stop."""
    if sys.platform != "linux" or "landlock" not in missing:
        return _ELSEWHERE
    libc = ctypes.CDLL(None, use_errno=True)
    works = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION) >= 0
    return _LANDLOCK.get(0 if works else ctypes.get_errno(), _ELSEWHERE)


def expect_sound(engine: Engine, stages: Sequence[Stage], seed: int) -> None:
    """Raise KitError unless the course's own solutions earn all points on this machine.

    Otherwise a broken course or machine would fail a whole class.
    """
    submission = Submission("the solutions", solution_files(engine.course))
    report = engine.grade(Request(submission, tuple(stages), seed))
    files = {stage.slug: stage.check_file.name for stage in stages}
    for stage in report.stages:
        worth = sum(check.max_score for check in stage.checks)
        if stage.checks and worth != stage.max_score:
            raise KitError(
                f"course.toml: stage '{stage.slug}': has {stage.max_score:g} points, but the "
                f"checks in {files[stage.slug]} are worth {worth:g}: change one or the other"
            )
        if stage.score != stage.max_score:
            failed = next((check for check in stage.checks if check.message), None)
            why = f": {failed.id}: {failed.message.partition(chr(10))[0]}" if failed else ""
            raise KitError(
                f"grading stopped: the course's own solution of '{stage.slug}' earns only "
                f"{stage.score:g} of {stage.max_score:g} points on this machine"
                f"{why.rstrip(': ')}"
            )


def all_graded(
    engine: Engine,
    jobs: Iterable[Job],
    lanes: int,
    stages: Sequence[Stage],
    seed: int,
    work: Callable[[Engine], Callable[[Job], Result]],
) -> Generator[tuple[Job, Result | LaneLost], None, None]:
    """Each job with its result, in the order in which `lanes` processes finish them.

    `work` makes, for the engine of a lane, the function that does a job. The engine first proves
    that the course's solutions pass in `stages`, and each lane that they pass in the first. If a
    lane's process is lost or the kit fails on a job, the job is tried once more in another lane; a
    job lost twice gets a LaneLost. Raises KitError if the solutions do not pass, and what `work`
    raises of KitError and OSError, because every job would meet it.
    """
    expect_sound(engine, stages, seed)
    engine.rehearse(stages, seed)
    if lanes == 1 or not can_fork(engine.device):
        one, _ = lane_work(engine, (), seed, work)
        for job in jobs:
            try:
                alone: Result | LaneLost = one(job)
            except Exception as error:  # noqa: BLE001 - as in a lane
                alone = _lost(error)
            yield job, alone
        return
    gc.collect()
    gc.freeze()  # no lane's collector touches what exists now, so all lanes share its memory
    lost: list[Job] = []
    for count, some, once_more in ((lanes, jobs, False), (2, lost, True)):
        for job, result in in_lanes(
            count, some, lambda: lane_work(engine.forked(), stages[:1], seed, work)
        ):
            known = _lost(result) if isinstance(result, Exception) else result
            if isinstance(known, LaneLost) and not once_more:
                lost.append(job)
            else:
                yield job, known


def _lost(error: Exception) -> LaneLost:
    """What ended one job; raises what would end every other one, too."""
    if isinstance(error, (KitError, OSError)):
        raise error
    if isinstance(error, LaneLost):
        return error
    return LaneLost(f"the kit failed on it: {type(error).__name__}: {error}"[:300])


def lane_work(
    engine: Engine,
    probed: Sequence[Stage],
    seed: int,
    work: Callable[[Engine], Callable[[Job], Result]],
) -> Work[Job, Result]:
    """One job after the other, with the engine of one process, which first has to be sound."""
    do, numbers, unproven = work(engine), itertools.count(1), [*probed]

    def one(job: Job) -> Result:
        if unproven:
            expect_sound(engine, unproven, seed)
            unproven.clear()
        done = do(job)
        engine.interpreter.prepare()
        if next(numbers) % _COLLECTED == 0:
            gc.collect()  # a few objects may hold large tensors; Python itself would collect late
        give_back_memory()
        return done

    return one, engine.interpreter.close
