"""Grades an assignment of an nbgrader course: connects the engine, notebooks and the gradebook."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from grader.classes.grading import all_graded
from grader.classes.late import lateness, zoned
from grader.classes.nbgrader.course import CONFIG
from grader.classes.nbgrader.feedback import (
    notebook_verdict,
    put_verdict,
    unknown_verdict,
    unreadable_verdict,
)
from grader.classes.nbgrader.gradebook import (
    GradebookEntry,
    ReleasedNotebook,
    read_deadlines,
    read_released,
    write_entries,
)
from grader.classes.nbgrader.restore import Restored, restored
from grader.classes.nbgrader.submitted import Submitted, companions, read_submitted, time_of
from grader.classes.nbgrader.types import Graded, NotebookVerdict, ReleasedCell
from grader.classes.sharing.earned import Earned
from grader.engine import Engine, Request, Shared
from grader.read.course_file import assignment_named
from grader.read.files import listed_names, name_in_text, write_whole
from grader.read.progress import make_memory_folder
from grader.read.submission import is_systems, parse_cells
from grader.run.lanes import LaneLost, can_fork
from grader.types.course import Course, Stage
from grader.types.errors import KitError, SubmissionFileError, writing
from grader.types.submission import Submission

TIMELESS = "No timestamp.txt says when it was submitted, so it does not count as late."
_READ_ONLY = 0o444


def verdict_on(
    engine: Engine,
    seed: int,
    found: Submitted,
    released: Sequence[ReleasedCell],
    notes: Sequence[str],
    shared: Shared | None = None,
) -> NotebookVerdict:
    """Grade the stages that have a cell among the `released`.

    The submitted code is graded unchanged, as by `grade --submission`. `shared` is what the class
    knows already; `notes` say what was unusual. Raises KitError if the course's points have changed
    since the release.
    """
    stages = released_stages(engine.course, released)
    ids = {stage.slug: cell_ids(stage, released) for stage in stages}
    try:
        if found.file is None:
            raise SubmissionFileError(" ".join(found.notes))
        cells = parse_cells(found.data, found.file.name)
    except SubmissionFileError:
        return unreadable_verdict([(*ids[stage.slug], stage.points) for stage in stages], notes)
    submission = Submission(found.file.name, {}, cells=cells)
    report = engine.grade(Request(submission, stages, seed), shared=shared)
    return notebook_verdict(report, ids, notes)


def restore_notebook(found: Submitted, released: Sequence[ReleasedCell]) -> Restored:
    """The submission as a notebook that nbgrader can work on, and notes on what was unusual."""
    result = restored(found.data, released)
    notes = result.notes if found.file is not None else ()
    return Restored(result.notebook, (*found.notes, *notes))


def cell_ids(stage: Stage, released: Sequence[ReleasedCell]) -> tuple[str, str]:
    """The grade_ids of a stage's graded cell and of its answer's, as they were released."""
    there = {cell.grade_id for cell in released}
    name = next(name for name in (*stage.formerly, stage.slug) if name in there)
    return name, f"{name}-code"


def released_stages(course: Course, released: Sequence[ReleasedCell]) -> tuple[Stage, ...]:
    """The stages with a graded cell among the `released`. Raises KitError."""
    points = {cell.grade_id: cell.points for cell in released if cell.points is not None}
    stages = tuple(
        stage for stage in course.stages if points.keys() & {stage.slug, *stage.formerly}
    )
    for stage in stages:
        worth = points[cell_ids(stage, released)[0]]
        if worth != stage.points:
            raise KitError(
                f"{stage.slug} was released with {worth:g} points and has "
                f"{stage.points:g} in course.toml: type `grade release nbgrader` and "
                "`nbgrader generate_assignment` again"
            )
    if not stages:
        raise KitError("no cell of this notebook belongs to a stage of the course")
    return stages


class NbgraderClass:
    """One assignment of an nbgrader course: submitted/ in, autograded/ and the gradebook out.

    Raises KitError if the course has nothing to grade.
    """

    def __init__(self, root: Path, assignment: str, course: Course) -> None:
        self._root = root
        self.assignment = assignment
        self.course = course
        self._notebook = self._ours(read_released(root, assignment))
        self._deadlines = read_deadlines(root, assignment)
        self.memory = make_memory_folder(root)  # a folder of the kit's own
        self._staging = self.memory / "autograded"
        self.stages = released_stages(course, self._notebook.cells)
        ours = {cell_ids(stage, self._notebook.cells)[0] for stage in self.stages}
        graded = (cell.grade_id for cell in self._notebook.cells if cell.points is not None)
        self.others = [name for name in graded if name not in ours]  # cells of no stage
        self.skipped: list[str] = []  # a sentence about each submission in the wrong place

    def students(self, *, force: bool) -> list[str]:
        """The students who submitted; without `force` only those with an ungraded submission."""
        submitted = self._root / "submitted"
        if not submitted.is_dir():
            raise KitError(f"{submitted}: is not there: type `nbgrader collect` first")
        entries = [each for each in sorted(submitted.iterdir()) if not is_systems(each.name)]
        why = {entry.name: self._why_skipped(entry) for entry in entries}
        self.skipped = [
            f"{name_in_text(Path('submitted', name))} was skipped: {reason}."
            for name, reason in why.items()
            if reason
        ]
        there = [each.name for each in entries if _is_there(each / self.assignment)]
        students = [name for name in there if not why[name]]
        return [student for student in students if force or not self._is_done(student)]

    def _why_skipped(self, entry: Path) -> str:
        """Why something in submitted/ is not graded; "" if it is, or holds no work."""
        own = f"submitted/NAME/{self.assignment}/"
        if not _is_there(entry / self.assignment):
            names = listed_names(entry) if entry.is_dir() else [entry.name]
            is_work = any(name.lower().endswith(".ipynb") for name in names)
            return f"move the notebook to {own}" if is_work else ""
        is_utf8 = entry.name == entry.name.encode("utf-8", "ignore").decode()
        if "\n" in entry.name or not is_utf8:  # nbgrader's own commands would end there
            return "its name is not a line of text, so rename it"
        is_hidden = entry.name.startswith(".")
        return "nbgrader ignores a name that begins with a dot, so rename it" if is_hidden else ""

    def grade(
        self,
        engine: Engine,
        students: Sequence[str],
        seed: int,
        lanes: int,
        tell: Callable[[Graded], None],
    ) -> None:
        """Grade these students in `lanes` processes; calls `tell` with each result.

        The results go to the gradebook at the end, or when the run is interrupted. Raises KitError
        if the gradebook or the folder cannot be written.
        """
        shutil.rmtree(self._staging, ignore_errors=True)
        entries: list[GradebookEntry] = []
        try:
            with Earned(shared=can_fork(engine.device)) as earned:

                def work(lane: Engine) -> Callable[[str], tuple[GradebookEntry, Graded]]:
                    return lambda student: self._one(lane, student, seed, earned.of)

                graded = all_graded(engine, students, lanes, self.stages, seed, work)
                with closing(graded):
                    for student, result in graded:
                        if isinstance(result, LaneLost):
                            result = self._unknown(student, str(result))
                        entries.append(result[0])
                        tell(result[1])
        finally:
            if entries:
                self._write(entries)

    def _one(
        self, engine: Engine, student: str, seed: int, shared: Shared
    ) -> tuple[GradebookEntry, Graded]:
        """Grade one student and stage the notebook."""
        found, result = self._read(student)
        verdict = verdict_on(engine, seed, found, self._notebook.cells, result.notes, shared)
        return self._put_aside(found, result, verdict)

    def _unknown(self, student: str, why: str) -> tuple[GradebookEntry, Graded]:
        """Unknown points, for a submission that ended the grader's process twice."""
        found, result = self._read(student)
        cells = [(*cell_ids(s, self._notebook.cells), s.points) for s in self.stages]
        return self._put_aside(found, result, unknown_verdict(cells, why))

    def _read(self, student: str) -> tuple[Submitted, Restored]:
        released = self._notebook.cells
        ids = [cell.grade_id for cell in released]
        folder = self._folder("submitted", student)
        found = read_submitted(folder, student, self._notebook.name, ids)
        return found, restore_notebook(found, released)

    def _put_aside(
        self, found: Submitted, result: Restored, verdict: NotebookVerdict
    ) -> tuple[GradebookEntry, Graded]:
        """Stage the notebook with its verdict; what to write into the gradebook and to print."""
        student = found.student
        put_verdict(result.notebook["cells"], verdict)
        self._stage_files(student, result.notebook)
        known = [cell.points for cell in verdict.cells if cell.points is not None]
        penalty, late = self._penalty(found, sum(known))
        points = sum(known) if len(known) == len(verdict.cells) else None
        most = sum(cell.max_points for cell in verdict.cells)
        notes = (*result.notes, *verdict.notes, *late, *self._near(verdict.seconds))
        graded = Graded(student, points, most, notes, bool(penalty))
        return GradebookEntry(student, found.when, verdict.cells, penalty), graded

    def _near(self, seconds: float) -> Iterator[str]:
        """A note on a submission that used more than half of its time limit."""
        limits = self.course.limits
        if limits.is_near(seconds):
            most = f"{limits.submission_seconds:g} seconds"
            yield f"It used {seconds:.0f} of the {most} that one submission may take."
        if limits.is_spent(seconds):
            yield (
                "Some checks may not have run. To give it more time, regrade with --force "
                "--seconds-per-submission N."
            )

    def _stage_files(self, student: str, notebook: Mapping[str, Any]) -> None:
        """Write the student's autograded folder in the staging area. Raises KitError."""
        folder = self._staging / student
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        with writing(folder):
            folder.mkdir(parents=True)
            write_whole(folder / f"{self._notebook.name}.ipynb", text)
            for name, data in companions(self._folder("submitted", student)).items():
                (folder / name).write_bytes(data)
            for file in folder.iterdir():
                file.chmod(_READ_ONLY)

    def _write(self, entries: Sequence[GradebookEntry]) -> None:
        """Write the gradebook first: the next run regrades a student without a folder."""
        with writing(self._root):
            write_entries(self._root, self.assignment, self._notebook.name, entries)
            for entry in entries:
                folder = self._folder("autograded", entry.student)
                shutil.rmtree(folder, ignore_errors=True)
                folder.parent.mkdir(parents=True, exist_ok=True)
                os.replace(self._staging / entry.student, folder)
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
        """Whether the latest submission has a verdict, by nbgrader's own time stamps."""
        done = self._folder("autograded", student)
        if not (done / f"{self._notebook.name}.ipynb").exists():
            return False
        now = time_of(self._folder("submitted", student))
        return now == time_of(done)  # a later submission is earlier if a clock was set back

    def _penalty(self, found: Submitted, points: float) -> tuple[float | None, list[str]]:
        """What being late costs by the rule in course.toml, else by nbgrader's; and a note on it.

        The gradebook's deadline counts, and that of course.toml if it has none.
        """
        due = self._deadlines.get(found.student, self._deadlines.get(None))
        terms = assignment_named(self.course, self.assignment)
        if found.when is None and points and (due or (terms and terms.due)):
            return None, [TIMELESS]
        if terms is not None and terms.late is not None:
            late = lateness(terms, [found.student], zoned(found.when), zoned(due))
            return (late.penalty(points), [f"It came {late.words}."]) if late else (None, [])
        if due is None or found.when is None or found.when <= due:
            return None, []
        return self._by_plugin(found.student, points, (found.when - due).total_seconds()), []

    def _by_plugin(self, student: str, points: float, late: float) -> float | None:
        """The late penalty in points, from the plugin that the course's configuration names."""
        from traitlets.config.loader import PyFileConfigLoader
        from traitlets.utils.importstring import import_item

        config = PyFileConfigLoader(CONFIG, str(self._root)).load_config()
        default = "nbgrader.plugins.LateSubmissionPlugin"
        chosen = config.AssignLatePenalties.get("plugin_class", default)
        plugin = (import_item(chosen) if isinstance(chosen, str) else chosen)(config=config)
        penalty = plugin.late_submission_penalty(student, points, late)
        return None if penalty is None else min(max(float(penalty), 0.0), points)


def _is_there(folder: Path) -> bool:
    """Whether a student submitted something: a link counts, and gets no points."""
    return os.path.isdir(folder) or os.path.islink(folder)
