"""The gradebook that is written directly is the one that nbgrader's own classes read."""

import sqlite3
import threading
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from grader.classes.nbgrader.gradebook import (
    FILE,
    GradebookEntry,
    keep_seed,
    read_deadlines,
    read_released,
    write_entries,
)
from grader.classes.nbgrader.types import CellVerdict, ReleasedCell
from grader.types.errors import KitError

NOON = datetime(2026, 5, 1, 12)  # noqa: DTZ001 - nbgrader keeps times in UTC without a zone


@contextmanager
def opened(root: Path) -> Iterator[Any]:
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")  # SQLAlchemy's about nbgrader's own habits
        # For the version that only its own upgrades read, nbgrader starts alembic for seconds.
        patch.setattr("nbgrader.api.get_alembic_version", lambda: "head")
        with Gradebook(f"sqlite:///{root / FILE}") as gradebook:
            yield gradebook


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A gradebook with an assignment of two notebooks, one of them graded by hand."""
    root = tmp_path_factory.mktemp("made")
    with opened(root) as gradebook:
        gradebook.add_assignment("birds", duedate="2026-05-01 12:00:00 UTC")
        for notebook in ("birds", "essay"):
            gradebook.add_notebook(notebook, "birds")
        gradebook.add_solution_cell("fold-code", "birds", "birds")
        gradebook.add_grade_cell("fold", "birds", "birds", max_score=4, cell_type="code")
        for name, locked in (("fold-code", False), ("fold", True)):
            gradebook.add_source_cell(
                name, "birds", "birds", cell_type="code", source=name, locked=locked, checksum="c"
            )
        gradebook.add_grade_cell("words", "essay", "birds", max_score=6, cell_type="markdown")
        gradebook.add_solution_cell("words", "essay", "birds")
    return (root / FILE).read_bytes()


@pytest.fixture
def root(tmp_path: Path, made: bytes) -> Path:
    (tmp_path / FILE).write_bytes(made)
    return tmp_path


def test_a_class_keeps_its_seed(root: Path) -> None:
    first = keep_seed(root, "birds", None)
    assert keep_seed(root, "birds", None) == first
    assert keep_seed(root, "eggs", None) != first
    assert keep_seed(root, "birds", 7) == keep_seed(root, "birds", None) == 7
    with opened(root) as gradebook:
        assert [each.name for each in gradebook.assignments] == ["birds"]


def entry(
    student: str = "ann", points: float | None = 2.5, when: datetime | None = NOON, **others: Any
) -> GradebookEntry:
    verdict = CellVerdict("fold", "fold-code", points, 4.0, "<p>reason</p>", "2.5 of 4 points.")
    return GradebookEntry(student, when, (verdict,), **others)


def write(root: Path, *entries: GradebookEntry) -> None:
    write_entries(root, "birds", "birds", entries)


def test_reads_the_released_cells_in_their_order(root: Path) -> None:
    birds, essay = read_released(root, "birds")
    assert (birds.name, essay.name) == ("birds", "essay")
    assert birds.cells == (
        ReleasedCell("fold-code", "code", "fold-code", False, "c", solution=True),
        ReleasedCell("fold", "code", "fold", True, "c", points=4.0),
    )


def test_nbgrader_reads_what_was_written(root: Path) -> None:
    write(root, entry("ann"), entry("bob", 4.0), entry("cas", 0.0, None))
    with opened(root) as gradebook:
        scores = {s.student.id: s.score for s in gradebook.assignment_submissions("birds")}
        assert scores == {"ann": 2.5, "bob": 4.0, "cas": 0.0}
        submission = gradebook.find_submission("birds", "ann")
        assert (submission.timestamp, submission.max_score) == (NOON, 10)
        grade = gradebook.find_grade("fold", "birds", "birds", "ann")
        assert (grade.auto_score, grade.needs_manual_grade) == (2.5, False)
        comment = gradebook.find_comment("fold-code", "birds", "birds", "ann")
        assert comment.comment == "2.5 of 4 points."
        assert gradebook.find_grade("words", "essay", "birds", "ann").needs_manual_grade is True
        assert gradebook.find_submission("birds", "cas").timestamp is None


def test_the_rows_are_those_that_nbgrader_makes(root: Path, made: bytes, tmp_path: Path) -> None:
    write(root, entry())
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / FILE).write_bytes(made)
    with opened(theirs) as gradebook:
        gradebook.add_student("ann")
        gradebook.add_submission("birds", "ann", timestamp=NOON.isoformat())
        grade = gradebook.find_grade("fold", "birds", "birds", "ann")
        grade.auto_score, grade.needs_manual_grade = 2.5, False
        comment = gradebook.find_comment("fold-code", "birds", "birds", "ann")
        comment.auto_comment = "2.5 of 4 points."
        gradebook.db.commit()

    def rows(folder: Path) -> dict[str, list[list[object]]]:
        with closing(sqlite3.connect(folder / FILE)) as db, db:
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master ORDER BY 1")]
            found = {}
            for table in tables:
                if table.startswith(("sqlite_", "alembic")):
                    continue
                names = [column[1] for column in db.execute(f"PRAGMA table_info({table})")]
                shown = [name for name in names if name != "id" and not name.endswith("_id")]
                picked = ", ".join(shown) or "id"
                kept = db.execute(f"SELECT {picked} FROM {table}").fetchall()
                found[table] = sorted((list(row) for row in kept), key=repr)
            return found

    assert rows(root) == rows(theirs)


def test_written_again_it_changes_only_what_the_grader_gave(root: Path) -> None:
    write(root, entry())
    with opened(root) as gradebook:
        grade = gradebook.find_grade("fold", "birds", "birds", "ann")
        grade.manual_score, grade.extra_credit = 3.5, 1.0
        gradebook.find_comment("fold-code", "birds", "birds", "ann").manual_comment = "Well done"
        gradebook.db.commit()
    write(root, entry(points=4.0, when=NOON + timedelta(hours=1)))
    with opened(root) as gradebook:
        grade = gradebook.find_grade("fold", "birds", "birds", "ann")
        assert (grade.auto_score, grade.manual_score, grade.score) == (4.0, 3.5, 4.5)
        assert grade.needs_manual_grade is True
        comment = gradebook.find_comment("fold-code", "birds", "birds", "ann")
        assert comment.comment == "Well done"
        assert gradebook.find_submission("birds", "ann").timestamp == NOON + timedelta(hours=1)
        assert len(gradebook.assignment_submissions("birds")) == 1


def test_points_that_nobody_knows_wait_for_a_person(root: Path) -> None:
    write(root, entry(points=None))
    with opened(root) as gradebook:
        grade = gradebook.find_grade("fold", "birds", "birds", "ann")
        assert (grade.auto_score, grade.needs_manual_grade) == (None, True)


def test_late_is_what_nbgrader_calls_late(root: Path) -> None:
    write(root, entry(penalty=1.5), entry("bob"))
    with opened(root) as gradebook:
        gradebook.grant_extension("birds", "bob", days=40, hours=3)
        submission = gradebook.find_submission("birds", "bob")
        assert read_deadlines(root, "birds") == {None: NOON, "bob": submission.duedate}
        assert gradebook.find_submission("birds", "ann").late_submission_penalty == 1.5


def test_without_a_deadline_nobody_is_late(root: Path) -> None:
    with closing(sqlite3.connect(root / FILE)) as db, db:
        db.execute("UPDATE assignment SET duedate = NULL")
    assert read_deadlines(root, "birds") == {}


def test_all_or_nothing(root: Path) -> None:
    def entries() -> Iterator[GradebookEntry]:
        yield entry("ann")
        raise KeyboardInterrupt

    before = (root / FILE).read_bytes()
    with pytest.raises(KeyboardInterrupt):
        write_entries(root, "birds", "birds", entries())
    with closing(sqlite3.connect(root / FILE)) as db, db:
        assert db.execute("SELECT count(*) FROM student").fetchone() == (0,)
    assert len((root / FILE).read_bytes()) == len(before)


def test_it_waits_for_who_is_writing(root: Path) -> None:
    other = sqlite3.connect(root / FILE, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.3, other.rollback)
    timer.start()
    write(root, entry())
    timer.join()
    other.close()
    with opened(root) as gradebook:
        assert gradebook.find_submission("birds", "ann").score == 2.5


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda file: file.unlink(), "does not exist: is .* the nbgrader course"),
        (lambda file: file.write_bytes(b"no database, but long enough to be one" * 99), "nothing"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(root: Path, spoil: Any, match: str) -> None:
    spoil(root / FILE)
    with pytest.raises(KitError, match=match) as caught:
        read_released(root, "birds")
    assert "\n" not in str(caught.value)


def test_an_assignment_that_was_never_generated(root: Path) -> None:
    with pytest.raises(KitError, match="has no assignment 'fish': type `nbgrader generate_"):
        read_released(root, "fish")
    with pytest.raises(KitError, match=r"has no assignment 'brids' \(did you mean 'birds'\?\)$"):
        read_released(root, "brids")
    with pytest.raises(KitError, match="has no assignment"):  # a byte that is no text
        read_released(root, "\udcff")
