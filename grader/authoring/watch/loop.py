"""Proves the stage whose file was saved; within a stage, only what the save can have changed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from grader.authoring.verify.author_files import files_of
from grader.authoring.verify.types import CourseProof, Progress
from grader.authoring.verify.verify import Prover
from grader.read.course_file import FILE_NAME, read_course
from grader.read.faults import shared_files
from grader.read.stubs import StubState, write_stubs
from grader.run.workers import Interpreter
from grader.types.course import Course, Stage
from grader.types.errors import KitError

_Stamps = Mapping[Path, tuple[int, int]]


@dataclass(frozen=True)
class Proved:
    """A stage's proof after a save, or the `fault` that prevents it.

    `stub` is the exercise file if that was rewritten first, `users` the stages that require it.
    """

    slug: str
    proof: CourseProof | None = None
    fault: str = ""
    seconds: float = 0.0
    stub: str = ""
    users: tuple[str, ...] = ()


def watch(
    course: Course, slug: str, moments: Iterator[None], progress: Progress
) -> Iterator[Proved]:
    """A proof of the stage `slug` now, and of each stage one of whose files is saved later.

    `moments` yields whenever something may have been saved, and this ends when it ends. After a
    save while a proof is under way it begins again. Raises KeyboardInterrupt.
    """
    with closing(_Watch(course, progress)) as watching:
        waiting = [slug]
        while True:
            while waiting:
                try:
                    yield watching.prove(waiting[0])
                    del waiting[0]
                except _Saved:
                    pass
                waiting += [each for each in watching.saved() if each not in waiting]
            for _ in moments:
                waiting = watching.saved()
                if waiting:
                    break
            else:
                return


class _Saved(Exception):
    """A file has been saved while its stage was being proven."""


class _Watch:
    """The course as its files are now, and what is known of it."""

    def __init__(self, course: Course, progress: Progress) -> None:
        self._course = course
        self._progress = progress
        self._prover: Prover | None = None
        self._ends = ExitStack()
        self._slug = course.stages[0].slug
        self._stamps = _stamps(course)

    def close(self) -> None:
        """End the interpreter."""
        self._ends.close()
        self._prover = None

    def saved(self) -> list[str]:
        """The slugs of the stages whose files have changed since the last look.

        If course.toml has changed, that is the stage of the last proof.
        """
        before, course = self._stamps, self._course
        self._stamps = _stamps(course)
        changed = {path for path, _ in set(before.items()) ^ set(self._stamps.items())}
        if course.root / FILE_NAME in changed:
            return [self._slug]
        return [s.slug for s in course.stages if any(_is_of(s, path) for path in changed)]

    def prove(self, slug: str) -> Proved:
        """The proof of a stage. Raises _Saved if one of its files is saved meanwhile."""
        began = time.perf_counter()
        self._slug = slug
        try:
            course = read_course(self._course.root / FILE_NAME)
            stage = course.stage(slug)
            prover = self._prover_of(course)
            states = write_stubs(replace(course, stages=(stage,)))
        except KeyError:
            return Proved(slug, fault=f"{FILE_NAME}: there is no stage '{slug}' any more")
        except KitError as error:
            return Proved(slug, fault=str(error))
        is_written = states[stage] in (StubState.ABSENT, StubState.OLD)
        stub = stage.place(stage.exercise_file) if is_written else ""
        self._stamps = _stamps(course)
        started = self._stamps

        def progress(slug: str, done: int, total: int) -> None:
            self._progress(slug, done, total)
            if _stamps(course) != started:
                raise _Saved

        try:
            proof = prover.prove(course, [stage], progress)
        except KitError as error:
            return Proved(slug, fault=str(error))
        users = [each.slug for each in course.stages if stage in course.required(each)]
        seconds = time.perf_counter() - began
        return Proved(slug, proof, "", seconds, stub, tuple(users))

    def _prover_of(self, course: Course) -> Prover:
        """The prover, a new one if another interpreter is needed. Raises KitError."""
        old, self._course = self._course, course
        if (old.preload, old.limits) != (course.preload, course.limits):
            self.close()
        if self._prover is None:
            interpreter = Interpreter(course.preload, course.limits, gpu=False)
            self._prover = Prover(self._ends.enter_context(interpreter))
        return self._prover


def _stamps(course: Course) -> _Stamps:
    """A stamp of every file of the course: when it was saved, and its size."""
    files = [course.root / FILE_NAME, *(file for s in course.stages for file in files_of(s))]
    found = {}
    for file in files:
        with suppress(OSError):
            stat = file.stat()
            found[file] = stat.st_mtime_ns, stat.st_size
    return found


def _is_of(stage: Stage, file: Path) -> bool:
    """Whether a file is, or was, one of the stage's that its author writes."""
    own = (*stage.files, *shared_files(stage.misconceptions_file))
    is_own = file in own or file.parent == stage.accepted_folder
    return is_own and file != stage.exercise_file


def newest(course: Course) -> Stage:
    """The stage one of whose files was saved last."""
    stamps = _stamps(course)

    def saved(stage: Stage) -> int:
        return max((at for file, (at, _) in stamps.items() if _is_of(stage, file)), default=0)

    return max(course.stages, key=saved)
