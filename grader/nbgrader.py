"""The classes that nbgrader's configuration names: our grader instead of autograde's kernel.

`AnyNotebook` reads whatever a student submitted, `GradeWithEngine` grades it in the isolated
process, `SaveVerdict` writes points and comments into the gradebook, `LatePenalty` what being late
costs. No kernel starts, so no student's code runs with the rights of the person who grades.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode, from_dict
from nbgrader.api import Gradebook
from nbgrader.preprocessors import AssignLatePenalties, NbGraderPreprocessor
from nbgrader.utils import determine_grade, is_solution
from traitlets import Bool

from grader.classes.grading import expect_sound, with_locked_engine
from grader.classes.late import lateness, zoned
from grader.classes.nbgrader.feedback import put_verdict
from grader.classes.nbgrader.gradebook import FILE, keep_seed
from grader.classes.nbgrader.grading import TIMELESS, restore_notebook, verdict_on
from grader.classes.nbgrader.submitted import Submitted, companions, read_submitted, time_of
from grader.classes.nbgrader.types import NotebookVerdict, ReleasedCell
from grader.engine import Engine
from grader.read.course_file import assignment_named
from grader.read.workspace import locate_whole_course
from grader.types.seed import fresh_seed


def find_notebook(assignment: str, student: str, notebooks: list[str]) -> None:
    """Add the notebook that a submission should hold to the list of its notebooks.

    nbgrader recognizes a submission by its file names, and stops if the notebook has another name.
    `AnyNotebook` then reads whatever notebook there is.
    """
    wanted = Path(notebooks[0]).with_name(f"{assignment}.ipynb")
    if str(wanted) not in notebooks:
        notebooks.append(str(wanted))


class AnyNotebook(NotebookExporter):
    """Reads whatever was submitted, however broken it is, and holds the engine that grades it."""

    unlocked = Bool(
        False, help="Grade even where this machine cannot lock submissions in completely."
    ).tag(config=True)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)  # type: ignore[no-untyped-call]
        self._released: dict[tuple[str, str], list[ReleasedCell]] = {}
        self._notes: tuple[str, ...] = ()
        self.submitted: Submitted | None = None
        self._engine: _EngineThread | None = None
        converter: Any = self.parent
        if converter is not None:  # one invalid timestamp.txt would end the whole run
            converter.coursedir.get_existing_timestamp = lambda folder: time_of(Path(folder))

    def from_filename(
        self, filename: str, resources: Any = None, **options: Any
    ) -> tuple[Any, dict[str, Any]]:
        """The notebook at `filename`, with every cell that nbgrader relies on in its place."""
        known = resources["nbgrader"]
        path = Path(filename)
        converter: Any = self.parent
        if not converter._sanitizing:  # we have just written it ourselves
            return super().from_filename(filename, resources, **options)
        released = self.released(known)
        ids = [cell.grade_id for cell in released]
        found = read_submitted(path.parent, known["student"], known["notebook"], ids)
        self.submitted = found
        graded = Path(converter._format_dest(known["assignment"], known["student"]))
        graded.mkdir(parents=True, exist_ok=True)  # does not exist yet for a notebook alone
        for name, data in companions(path.parent).items():
            (graded / name).unlink(missing_ok=True)
            (graded / name).write_bytes(data)
        result = restore_notebook(found, released)
        self._notes = result.notes
        resources["metadata"] = {"name": path.stem, "path": str(path.parent)}
        notebook = from_dict(result.notebook)  # type: ignore[no-untyped-call]
        output: tuple[Any, dict[str, Any]] = self.from_notebook_node(notebook, resources)  # type: ignore[no-untyped-call]
        return output

    def released(self, known: Mapping[str, str]) -> list[ReleasedCell]:
        """The cells of the current notebook, as the gradebook knows them."""
        key = known["assignment"], known["notebook"]
        if key not in self._released:
            with Gradebook(known["db_url"]) as gradebook:
                notebook = gradebook.find_notebook(known["notebook"], known["assignment"])
                points = {cell.name: cell.max_score for cell in notebook.grade_cells}
                solutions = {cell.name for cell in notebook.solution_cells}
                self._released[key] = [
                    ReleasedCell(
                        cell.name,
                        cell.cell_type,
                        cell.source or "",
                        cell.locked,
                        cell.checksum,
                        cell.name in solutions,
                        points.get(cell.name),
                    )
                    for cell in notebook.source_cells
                ]
        return self._released[key]

    def verdict(self, known: Mapping[str, str]) -> NotebookVerdict:
        """The verdict on the notebook that was read last. Raises KitError."""
        assert self.submitted is not None
        if self._engine is None:
            self._engine = _EngineThread(_seed(known), unlocked=self.unlocked)
            weakref.finalize(self, self._engine.close)
        return self._engine.ask(self.submitted, self.released(known), self._notes)


class GradeWithEngine(NbGraderPreprocessor):  # type: ignore[misc]
    """Puts each stage's points and their reasons where running the notebook would put them."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Grade the notebook that the exporter, an `AnyNotebook`, has read."""
        exporter: Any = self.parent
        verdict = exporter.verdict(resources["nbgrader"])
        put_verdict(nb.cells, verdict)
        resources["nbgrader"]["verdict"] = verdict
        return from_dict(nb), resources  # type: ignore[no-untyped-call]


class SaveVerdict(NbGraderPreprocessor):  # type: ignore[misc]
    """Writes all points and comments of a notebook into the gradebook at once."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Save the verdict of `GradeWithEngine`.

        Other graded cells keep their points, such as those of a stage that was removed, or wait for
        a person.
        """
        known = resources["nbgrader"]
        verdict: NotebookVerdict = known.pop("verdict")
        points = {cell.grade_id: cell.points for cell in verdict.cells}
        comments = {cell.answer_id: cell.comment for cell in verdict.cells}
        about = [(cell.metadata.get("nbgrader", {}), cell) for cell in nb.cells]
        cells = {own["grade_id"]: cell for own, cell in about if "grade_id" in own}
        with Gradebook(known["db_url"]) as gradebook:
            own = gradebook.find_submission_notebook(
                known["notebook"], known["assignment"], known["student"]
            )
            for grade in own.grades:
                if grade.name in points:
                    grade.auto_score = points[grade.name]
                elif is_solution(cells[grade.name]):
                    grade.auto_score, _ = determine_grade(cells[grade.name])
                by_hand = grade.auto_score is None or grade.manual_score is not None
                grade.needs_manual_grade = by_hand
            for comment in own.comments:
                comment.auto_comment = comments.get(comment.name)
            gradebook.db.commit()
        return nb, resources


class LatePenalty(AssignLatePenalties):  # type: ignore[misc]
    """Takes the late rule of course.toml; without one, nbgrader's own penalty."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Write the penalty into the gradebook."""
        known = resources["nbgrader"]
        terms = assignment_named(locate_whole_course(None), known["assignment"])
        if terms is None or terms.late is None:
            done: tuple[NotebookNode, Any] = super().preprocess(nb, resources)
            return done
        with Gradebook(known["db_url"]) as gradebook:
            submission = gradebook.find_submission(known["assignment"], known["student"])
            when, due = zoned(submission.timestamp), zoned(submission.duedate)
            if when is None and (due or terms.due):
                self.log.warning("%s: %s", known["student"], TIMELESS)
            late = lateness(terms, [known["student"]], when, due)
            own = gradebook.find_submission_notebook(
                known["notebook"], known["assignment"], known["student"]
            )
            own.late_submission_penalty = late and late.penalty(own.score)
            gradebook.db.commit()
        return nb, resources


def _seed(known: Mapping[str, str]) -> int:
    """The seed that `grade class` uses for this class; a random one for a gradebook elsewhere."""
    file = Path(known["db_url"].removeprefix("sqlite:///"))
    if file.name == FILE and file.is_file():
        return keep_seed(file.parent, known["assignment"], None)
    return fresh_seed()


class _EngineThread:
    """The warm engine, in a thread of its own; callers wait for its answer."""

    def __init__(self, seed: int, *, unlocked: bool) -> None:
        self._unlocked = unlocked
        self._questions: SimpleQueue[Any] = SimpleQueue()
        self._answers: SimpleQueue[NotebookVerdict | BaseException] = SimpleQueue()
        self._seed = seed
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def ask(self, *question: Any) -> NotebookVerdict:
        """The answer to one question. Raises the exception that grading raised."""
        self._questions.put(question)
        answer = self._answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def close(self) -> None:
        """End the thread and its processes."""
        self._questions.put(None)
        self._thread.join()

    def _work(self) -> None:
        try:
            course = locate_whole_course(None)
            with_locked_engine(
                course,
                course.stages,
                "cpu",
                self._serve,
                unlocked=self._unlocked,
                option="--AnyNotebook.unlocked=True",
            )
        except BaseException as error:  # noqa: BLE001 - `ask` raises it
            while self._questions.get() is not None:
                self._answers.put(error)

    def _serve(self, engine: Engine) -> None:
        expect_sound(engine, engine.course.stages, self._seed)
        while (question := self._questions.get()) is not None:
            try:
                self._answers.put(verdict_on(engine, self._seed, *question))
            except Exception as error:  # noqa: BLE001 - as above
                self._answers.put(error)
            engine.interpreter.prepare()
