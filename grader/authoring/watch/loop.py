"""Proves the stage whose file was saved; within a stage, only what the save can have changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

from grader.authoring.verify.author_files import files_of
from grader.authoring.verify.types import CourseProof
from grader.authoring.verify.verify import Prover
from grader.read.course_file import FILE_NAME, read_course
from grader.read.stubs import StubState, write_stubs
from grader.types.course import Course, Stage
from grader.types.errors import KitError

Progress = Callable[[str, int, int], None]
_Stamps = Mapping[Path, tuple[int, int]]


@dataclass(frozen=True)
class Proved:
    """A stage's proof after a save, or the `fault` that prevents it.

    `stubs` are the exercise files that were rewritten first, `users` the stages that require it.
    """

    slug: str
    proof: CourseProof | None = None
    fault: str = ""
    seconds: float = 0.0
    stubs: tuple[str, ...] = ()
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
        """The slugs of the stages whose files have changed since the last look."""
        before, course = self._stamps, self._course
        if _stamp(course.root / FILE_NAME) != before.get(course.root / FILE_NAME):
            self._stamps = _stamps(course)
            return [self._slug]
        self._stamps = _stamps(course)
        changed = {path for path, _ in set(before.items()) ^ set(self._stamps.items())}
        return [each.slug for each in course.stages if changed & _owned(each, changed)]

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
        written = [s.place(s.exercise_file) for s, state in states.items() if state in _WRITTEN]
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
        return Proved(slug, proof, "", seconds, tuple(written), tuple(users))

    def _prover_of(self, course: Course) -> Prover:
        """The prover, a new one if another interpreter is needed. Raises KitError."""
        old, self._course = self._course, course
        if (old.preload, old.limits) != (course.preload, course.limits):
            self.close()
        if self._prover is None:
            self._prover = self._ends.enter_context(Prover(course))
        return self._prover


_WRITTEN = (StubState.ABSENT, StubState.OLD)


def _stamps(course: Course) -> _Stamps:
    """A stamp of every file of the course that an author writes."""
    files = [course.root / FILE_NAME, *(file for s in course.stages for file in files_of(s))]
    return {file: stamp for file in files if (stamp := _stamp(file))}


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _owned(stage: Stage, files: set[Path]) -> set[Path]:
    """Those of the files that are, or were, the stage's; its stub is none of the author's."""
    own = {*files_of(stage), *(each for each in files if each.parent == stage.accepted_folder)}
    fixed = {stage.solution_file, stage.check_file, stage.hints_file, stage.misconceptions_file}
    return (own | fixed) & files - {stage.exercise_file}


def newest(course: Course) -> Stage:
    """The stage one of whose files was saved last."""

    def saved(stage: Stage) -> int:
        stamps = (_stamp(file) for file in files_of(stage) if file != stage.exercise_file)
        return max((stamp[0] for stamp in stamps if stamp), default=0)

    return max(course.stages, key=saved)
