"""Grades what a class has handed in: joins the engine, the notebooks and nbgrader's gradebook."""

from __future__ import annotations

import gc
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from grader.engine import Engine, Request
from grader.read.files import write_whole
from grader.read.gradebook import (
    Entry,
    ReleasedNotebook,
    read_deadlines,
    read_released,
    write_entries,
)
from grader.read.handed_in import HandedIn, companions, read_handed_in
from grader.read.mending import Mended, mended
from grader.read.nbgrader_course import CONFIG
from grader.read.notebook import solution_id
from grader.read.progress import make_memory_folder
from grader.read.submission import parse_cells
from grader.run.earned import Earned
from grader.run.lanes import LaneLost, can_fork, give_back_memory, in_lanes
from grader.run.solutions import solution_files
from grader.show.grade_cells import (
    notebook_verdict,
    put_verdict,
    unknown_verdict,
    unreadable_verdict,
)
from grader.types.course import Course, Stage
from grader.types.errors import KitError, SubmissionFileError
from grader.types.gradebook import Graded, NotebookVerdict, ReleasedCell
from grader.types.submission import Submission

_READ_ONLY = 0o444
_COLLECTED = 10  # submissions after which garbage is looked for


def verdict_on(
    engine: Engine,
    course: Course,
    seed: int,
    found: HandedIn,
    released: Sequence[ReleasedCell],
    notes: Sequence[str],
    earned: Earned | None = None,
) -> NotebookVerdict:
    """The verdict on the stages that have a cell among the `released`.

    The code is taken as it was handed in, as `grade --submission` takes it; `earned` is what the
    class has earned so far. `notes` are what was odd about it. Raises KitError if the course's
    points are no longer those that were released.
    """
    stages = released_stages(course, released)
    try:
        if found.file is None:
            raise SubmissionFileError(" ".join(found.notes))
        cells = parse_cells(found.data, found.file.name)
    except SubmissionFileError:
        return unreadable_verdict([(s.slug, solution_id(s), s.points) for s in stages], notes)
    submission = Submission(found.file.name, {}, cells=cells)
    report = engine.grade(Request(submission, stages, seed), earned=earned)
    return notebook_verdict(report, {stage.slug: solution_id(stage) for stage in stages}, notes)


def expect_sound(engine: Engine, stages: Sequence[Stage], seed: int) -> None:
    """Raises KitError unless the course's own solutions get all points, here and now.

    So a course or a machine on which nothing can pass makes no class of failures.
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
            said = next((check.message for check in stage.checks if check.message), "")
            raise KitError(
                f"nobody is graded, for the course's own solution of {stage.slug} gets "
                f"{stage.score:g} of {stage.max_score:g} points here: {said.partition(chr(10))[0]}"
            )


Job = TypeVar("Job")
Result = TypeVar("Result")


def all_graded(
    engine: Engine,
    jobs: Iterable[Job],
    lanes: int,
    stages: Sequence[Stage],
    seed: int,
    work: Callable[[Engine], Callable[[Job], Result]],
) -> Iterator[tuple[Job, Result | LaneLost]]:
    """Each job with its result, as they come, from so many `lanes` at a time.

    `work` gives what does a job with the engine of a lane. The engine first proves that it can
    grade the `stages`, each lane that it can grade the first of them. A job whose process is lost
    is tried once more in another: what is lost twice is LaneLost. Raises KitError where nothing can
    pass, and whatever `work` does.
    """
    expect_sound(engine, stages, seed)
    if lanes == 1 or not can_fork(engine.device):
        one = _Lane(engine, (), seed, work)
        yield from ((job, one(job)) for job in jobs)
        return
    engine.read_misconceptions(stages)  # now, for all lanes
    gc.collect()
    gc.freeze()  # what is there already is looked at by no lane, and so stays shared by all
    lost: list[Job] = []
    for count, some, once_more in ((lanes, jobs, False), (2, lost, True)):
        for job, result in in_lanes(
            count, some, lambda: _Lane(engine.forked(), stages[:1], seed, work)
        ):
            if isinstance(result, LaneLost) and not once_more:
                lost.append(job)
            elif isinstance(result, Exception) and not isinstance(result, LaneLost):
                raise result
            else:
                yield job, result


class _Lane(Generic[Job, Result]):
    """One job after the other, with the engine of one process."""

    def __init__(
        self,
        engine: Engine,
        probed: Sequence[Stage],
        seed: int,
        work: Callable[[Engine], Callable[[Job], Result]],
    ) -> None:
        self._engine = engine
        self._probed = probed
        self._seed = seed
        self._work = work(engine)
        self._done = 0

    def __call__(self, job: Job) -> Result:
        if self._probed:
            expect_sound(self._engine, self._probed, self._seed)
            self._probed = ()
        done = self._work(job)
        self._engine.interpreter.prepare()
        self._done += 1
        if self._done % _COLLECTED == 0:
            gc.collect()  # few objects may hold large tensors: Python would be slow to look
        give_back_memory()
        return done

    def close(self) -> None:
        self._engine.interpreter.close()


def mend(found: HandedIn, released: Sequence[ReleasedCell]) -> Mended:
    """What was handed in as a notebook that nbgrader can work on; all that was odd about it."""
    result = mended(found.data, released)
    notes = result.notes if found.file is not None else ()
    return Mended(result.notebook, (*found.notes, *notes))


def released_stages(course: Course, released: Sequence[ReleasedCell]) -> tuple[Stage, ...]:
    """The stages with a cell that grades among the `released`. Raises KitError."""
    points = {cell.grade_id: cell.points for cell in released if cell.points is not None}
    stages = tuple(stage for stage in course.stages if stage.slug in points)
    for stage in stages:
        if points[stage.slug] != stage.points:
            raise KitError(
                f"{stage.slug} was released with {points[stage.slug]:g} points and has "
                f"{stage.points:g} in course.toml: type `grade release nbgrader` and "
                "`nbgrader generate_assignment` again"
            )
    if not stages:
        raise KitError("no cell of this notebook belongs to a stage of the course")
    return stages


class NbgraderClass:
    """One assignment of an nbgrader course: submitted/ in, autograded/ and the gradebook out.

    Raises KitError for a course in which there is nothing to grade.
    """

    def __init__(self, root: Path, assignment: str, course: Course) -> None:
        self._root = root
        self.assignment = assignment
        self.course = course
        self._notebook = self._ours(read_released(root, assignment))
        self._staging = make_memory_folder(root) / "autograded"
        self.stages = released_stages(course, self._notebook.cells)

    def students(self, *, force: bool) -> list[str]:
        """Who has handed in; without `force` only those not graded since."""
        submitted = self._root / "submitted"
        if not submitted.is_dir():
            raise KitError(f"{submitted}: is not there: type `nbgrader collect` first")
        found = sorted(
            entry.name
            for entry in submitted.iterdir()
            if not entry.name.startswith(".") and (entry / self.assignment).is_dir()
        )
        return [student for student in found if force or not self._is_done(student)]

    def grade(
        self,
        engine: Engine,
        students: Sequence[str],
        seed: int,
        lanes: int,
        tell: Callable[[Graded], None],
    ) -> None:
        """Grade these students, in so many `lanes` at a time; `tell` is told of each one.

        The gradebook gets all of it at the end, or what there is when the run is interrupted.
        Raises KitError where the gradebook or the folder cannot be written.
        """
        shutil.rmtree(self._staging, ignore_errors=True)
        entries: list[Entry] = []
        deadlines = read_deadlines(self._root, self.assignment)
        try:
            with Earned(shared=can_fork(engine.device)) as earned:

                def work(lane: Engine) -> Callable[[str], tuple[Entry, Graded]]:
                    return lambda student: self._one(lane, student, seed, deadlines, earned)

                results = all_graded(engine, students, lanes, self.stages, seed, work)
                for student, result in results:
                    if isinstance(result, LaneLost):
                        result = self._unknown(student, str(result), deadlines)
                    entry, graded = result
                    entries.append(entry)
                    tell(graded)
        finally:
            if entries:
                self._write(entries)

    def _one(
        self,
        engine: Engine,
        student: str,
        seed: int,
        deadlines: Mapping[str | None, datetime],
        earned: Earned,
    ) -> tuple[Entry, Graded]:
        """Grade one student's and put the notebook aside."""
        found, result = self._read(student)
        released, notes = self._notebook.cells, result.notes
        verdict = verdict_on(engine, self.course, seed, found, released, notes, earned)
        return self._put_aside(found, result, verdict, deadlines)

    def _read(self, student: str) -> tuple[HandedIn, Mended]:
        released = self._notebook.cells
        ids = [cell.grade_id for cell in released]
        folder = self._folder("submitted", student)
        found = read_handed_in(folder, student, self._notebook.name, ids)
        return found, mend(found, released)

    def _unknown(
        self, student: str, why: str, deadlines: Mapping[str | None, datetime]
    ) -> tuple[Entry, Graded]:
        """Points that nobody knows, for one that has ended a process of ours twice."""
        found, result = self._read(student)
        cells = [(stage.slug, solution_id(stage), stage.points) for stage in self.stages]
        verdict = unknown_verdict(cells, why)
        return self._put_aside(found, result, verdict, deadlines)

    def _put_aside(
        self,
        found: HandedIn,
        result: Mended,
        verdict: NotebookVerdict,
        deadlines: Mapping[str | None, datetime],
    ) -> tuple[Entry, Graded]:
        student = found.student
        put_verdict(result.notebook["cells"], verdict)
        self._stage_files(student, result.notebook)
        known = [cell.points for cell in verdict.cells if cell.points is not None]
        points, late = sum(known), _seconds_late(found, deadlines)
        penalty = self._penalty(student, points, late) if late else None
        complete = len(known) == len(verdict.cells)
        most = sum(cell.max_points for cell in verdict.cells)
        graded = Graded(student, points if complete else None, most, result.notes)
        return Entry(student, found.when, verdict.cells, penalty), graded

    def _stage_files(self, student: str, notebook: Mapping[str, Any]) -> None:
        """Write what will be the student's autograded folder, aside. Raises KitError."""
        folder = self._staging / student
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        try:
            folder.mkdir(parents=True)
            write_whole(folder / f"{self._notebook.name}.ipynb", text)
            for name, data in companions(self._folder("submitted", student)).items():
                (folder / name).write_bytes(data)
            for file in folder.iterdir():
                file.chmod(_READ_ONLY)
        except OSError as error:
            raise _unwritable(error, folder) from None

    def _write(self, entries: Sequence[Entry]) -> None:
        """The gradebook first: a student without the folder is graded again by the next run."""
        try:
            write_entries(self._root, self.assignment, self._notebook.name, entries)
            for entry in entries:
                folder = self._folder("autograded", entry.student)
                shutil.rmtree(folder, ignore_errors=True)
                folder.parent.mkdir(parents=True, exist_ok=True)
                os.replace(self._staging / entry.student, folder)
        except OSError as error:
            raise _unwritable(error, self._root) from None
        shutil.rmtree(self._staging, ignore_errors=True)

    def _ours(self, notebooks: Sequence[ReleasedNotebook]) -> ReleasedNotebook:
        for notebook in notebooks:
            if notebook.name == self.assignment:
                return notebook
        raise KitError(
            f"assignment '{self.assignment}' has no notebook {self.assignment}.ipynb: was it "
            "made by `grade release nbgrader`?"
        )

    def _folder(self, step: str, student: str) -> Path:
        return self._root / step / student / self.assignment

    def _is_done(self, student: str) -> bool:
        """Whether there is a verdict on what was handed in last, as nbgrader tells."""
        done = self._folder("autograded", student)
        if not (done / f"{self._notebook.name}.ipynb").exists():
            return False
        before = read_handed_in(done, student, self._notebook.name).when
        now = read_handed_in(self._folder("submitted", student), student, self._notebook.name).when
        return not (now is not None and before is not None and now > before)

    def _penalty(self, student: str, points: float, late: float) -> float | None:
        """What being late costs, by the plugin that the course's own configuration names."""
        from traitlets.config.loader import PyFileConfigLoader
        from traitlets.utils.importstring import import_item

        config = PyFileConfigLoader(CONFIG, str(self._root)).load_config()
        default = "nbgrader.plugins.LateSubmissionPlugin"
        chosen = config.AssignLatePenalties.get("plugin_class", default)
        plugin = (import_item(chosen) if isinstance(chosen, str) else chosen)(config=config)
        penalty = plugin.late_submission_penalty(student, points, late)
        return None if penalty is None else min(max(float(penalty), 0.0), points)


def _unwritable(error: OSError, folder: Path) -> KitError:
    # A full disk has no file's name.
    return KitError(f"{error.filename or folder}: cannot be written: {error.strerror}")


def _seconds_late(found: HandedIn, deadlines: Mapping[str | None, datetime]) -> float:
    due = deadlines.get(found.student, deadlines.get(None))
    if due is None or found.when is None:
        return 0.0
    return max(0.0, (found.when - due).total_seconds())
