"""A stage is renamed or removed: learners keep work and progress, classes what was earned.

The tiny course's moving_average becomes rolling_mean, in every file of the course, or is left out.
"""

import json
import sqlite3
from pathlib import Path

import pytest

from grader.command.main import main
from grader.read.course_file import read_course
from grader.read.progress import read_progress
from grader.read.stubs import read_stub
from tests.kit.classes.folder_class import NO_ERROR, RIGHT, class_of, gradebook, hand_in
from tests.kit.support.files import edit, write_files
from tests.kit.support.nbgrader import nbgrader
from tests.kit.support.tiny import Capture, Say, Typed, copy_tiny

pytestmark = pytest.mark.usefixtures("checks_apart")

OLD, NEW = "moving_average", "rolling_mean"


@pytest.fixture
def course(tmp_path: Path) -> Path:
    version = {'name = "smoothing"': 'name = "smoothing"\nversion = "1.9"'}
    return copy_tiny(tmp_path / "course", version).root


def change(course: Path, old: str, new: str) -> None:
    edit(course / "course.toml", old, new)


def rename(course: Path) -> None:
    """Rename the stage as an author does: its files, and the lines that import it."""
    for file in sorted(course.rglob("*")):
        if file.is_file() and file.suffix in (".py", ".md", ".toml"):
            if file.name in (f"{OLD}.py", f"test_{OLD}.py", f"{OLD}.md"):
                file = file.rename(file.with_name(file.name.replace(OLD, NEW)))
            text = file.read_text("utf-8").replace(f"from {OLD} import", f"from {NEW} import")
            file.write_text(text, encoding="utf-8")
    change(course, f'slug = "{OLD}"', f'slug = "{NEW}"\nformerly = "{OLD}"')
    change(course, f'requires = ["{OLD}"]', f'requires = ["{NEW}"]')
    change(course, 'version = "1.9"', 'version = "1.10"')
    (course / "hints" / "CHANGES.md").write_text(
        "# What is new\n\n## 1.10\n\n- `moving_average` is called **rolling_mean** now.\n\n"
        "## [1.9] - 2026-01-01\n\n- The first version.\n",
        encoding="utf-8",
    )


def remove(course: Path, slug: str) -> None:
    toml = course / "course.toml"
    head, *tables = toml.read_text("utf-8").split("[[stages]]")
    kept = [table for table in tables if f'slug = "{slug}"' not in table]
    assert len(kept) < len(tables)
    toml.write_text("[[stages]]".join([head, *kept]), encoding="utf-8")


# --- a learner's folder ------------------------------------------------------------------------


@pytest.fixture
def mine(course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A learner's folder, in which the first stage has passed after a hint."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["init", "mine", "--course", str(course)]) == 0
    monkeypatch.chdir(tmp_path / "mine")
    work = tmp_path / "mine" / "exercises" / f"{OLD}.py"
    stub = work.read_text("utf-8")
    solution = (course / "solutions" / f"{OLD}.py").read_text("utf-8")
    assert main(["hint", OLD]) == 0
    assert "NotImplementedError" in stub
    work.write_text(solution, encoding="utf-8")
    assert main(["grade", OLD]) == 0
    return tmp_path / "mine"


def test_a_renamed_stage_keeps_the_learners_work_and_progress(
    course: Path, mine: Path, grade: Typed
) -> None:
    rename(course)
    own = mine / "exercises" / "plot.py"
    own.write_text(f"from {OLD} import moving_average\n", encoding="utf-8")
    before = read_progress(mine).progress.stage(OLD)
    assert before.best == 6 and before.rungs == 1
    said = grade("update")
    words = " ".join(said.split())
    assert "rolling_mean.py: was called moving_average.py. Your work and your progress" in words
    assert "plot.py: imports moving_average: change that to rolling_mean." in words
    assert "smooth.py: replaced by the new stub" in words  # its import has changed
    assert "New in Smooth a curve:" in words and "is called rolling_mean now" in words
    assert "The first version" not in words
    assert max(map(len, said.splitlines())) <= 80
    names = sorted(file.name for file in (mine / "exercises").glob("*.py"))
    assert names == ["plot.py", "rolling_mean.py", "roughness.py", "smooth.py"]
    after = read_progress(mine).progress
    assert OLD not in after.stages and after.last_hint == NEW
    assert after.stage(NEW).best == 6 and after.stage(NEW).rungs == 1
    assert after.stage(NEW).passed == before.passed
    assert main(["grade", NEW]) == 0 and main(["grade", OLD]) == 0  # the old name still finds it
    assert "All 3 files are up to date." in grade("update")  # and no news


def test_without_an_update_the_old_files_are_still_graded(course: Path, mine: Path) -> None:
    (mine / "exercises" / "smooth.py").write_text(
        (course / "solutions" / "smooth.py").read_text("utf-8"), encoding="utf-8"
    )
    rename(course)
    assert main(["grade", NEW, "smooth"]) == 0


def test_who_has_begun_both_files_loses_neither(course: Path, mine: Path, grade: Typed) -> None:
    rename(course)
    change(course, f'formerly = "{OLD}"\n', "")  # the author thinks of it a version later
    assert main(["update"]) == 0
    new = mine / "exercises" / f"{NEW}.py"
    assert new.read_text("utf-8") == read_stub(read_course(course / "course.toml").stage(NEW))
    begun = new.read_text("utf-8").replace("raise NotImplementedError", "return []  #")
    old = (mine / "exercises" / f"{OLD}.py").read_text("utf-8")
    change(course, f'slug = "{NEW}"', f'slug = "{NEW}"\nformerly = "{OLD}"')
    stub = new.read_text("utf-8")
    new.write_text(begun, encoding="utf-8")
    said = " ".join(grade("update").split())
    assert "was called moving_average.py, and you have begun both. Join them by hand." in said
    assert new.read_text("utf-8") == begun
    assert (mine / "exercises" / f"{OLD}.py").read_text("utf-8") == old
    new.write_text(stub, encoding="utf-8")  # nothing is written there
    assert main(["update"]) == 0
    assert "solution" in old.lower() and new.read_text("utf-8").count("SOLUTION") == 2
    assert not (mine / "exercises" / f"{OLD}.py").exists()


def test_a_removed_stage_leaves_the_file_and_says_what_was_earned(
    course: Path, mine: Path, grade: Typed
) -> None:
    change(course, f'requires = ["{OLD}"]', "requires = []")
    remove(course, OLD)
    said = " ".join(grade("update").split())
    assert f"{OLD}.py: the course no longer has this stage. Your file stays." in said
    assert "You earned 6 points there." in said
    assert (mine / "exercises" / f"{OLD}.py").exists()
    said = " ".join(grade("list").split())
    assert f"No longer in the course: {OLD}, best 6, first passed on" in said


# --- a class -----------------------------------------------------------------------------------


@pytest.fixture
def graded(course: Path, tmp_path: Path) -> tuple[list[str], Path, Path]:
    """The words of `grade class` for a class that is graded, its folder and its results."""
    submissions, out = tmp_path / "class", tmp_path / "out"
    hand_in(submissions, ann=RIGHT, bob=NO_ERROR)
    words = class_of(course, out)
    assert main([*words, str(submissions)]) == 0
    return words, submissions, out


def test_a_renamed_stage_keeps_the_points_of_a_class(
    course: Path, graded: tuple[list[str], Path, Path], say: Say, grade: Typed
) -> None:
    words, submissions, out = graded
    before = gradebook(out)
    assert before["bob"][OLD] == "5"
    rename(course)
    hand_in(submissions, cas=NO_ERROR)  # with a file of the old name
    said = " ".join(grade(*words, str(submissions)).split())
    assert "1 submission graded, 3 in total" in said
    assert "2 verdicts may be different now" in said
    after = gradebook(out)
    assert OLD not in after["ann"]
    assert [after[name][NEW] for name in ("ann", "bob", "cas")] == ["6", "5", "5"]
    assert [after[name]["score"] for name in ("ann", "bob")] == [
        before[n]["score"] for n in ("ann", "bob")
    ]
    code, said, _ = say(*words, "--regrade")
    assert code == 0 and "Regraded 2: no points change." in said
    assert [gradebook(out)[name]["score"] for name in ("ann", "bob", "cas")] == ["10", "9", "9"]
    said = grade(*words, "--why", "bob", OLD)
    assert "rolling_mean.refusal" in said and "version 1.9" in said and "version 1.10" in said
    assert "every check gave the same result" in said
    assert "nothing new to grade" in grade(*words, str(submissions))


def test_a_removed_stage_keeps_what_was_earned_and_says_so(
    course: Path, graded: tuple[list[str], Path, Path], capsys: Capture, say: Say, grade: Typed
) -> None:
    words, submissions, out = graded
    remove(course, "smooth")
    hand_in(submissions, cas=RIGHT)
    assert main([*words, str(submissions)]) == 0
    found = gradebook(out)
    assert (found["ann"]["score"], found["ann"]["smooth"], found["ann"]["max_score"]) == (
        "10",
        "4",
        "10",
    )
    assert (found["cas"]["score"], found["cas"]["smooth"], found["cas"]["max_score"]) == (
        "6",
        "",
        "6",
    )
    page = (out / "report.html").read_text("utf-8")
    assert "Average again (no longer in the course)" in page
    capsys.readouterr()
    change(course, "points = 6", "points = 6\nforbidden = ['numpy.fft.fft']")  # so all may change
    code, said, _ = say(*words, "--regrade")
    assert code == 0 and "no points change" in said
    hand_in(submissions, ann=NO_ERROR)  # who submits again keeps it too
    assert main([*words, str(submissions)]) == 0
    found = gradebook(out)
    assert (found["ann"]["score"], found["ann"]["smooth"]) == ("9", "4")
    assert "may be different" not in grade(*words, str(submissions))


# --- nbgrader ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_renamed_stage_keeps_its_cells_and_points_in_nbgrader(
    course: Path, tmp_path: Path, grade: Typed
) -> None:
    pytest.importorskip("nbgrader", reason="nbgrader is not installed")
    from tests.kit.classes.test_grading import scores as scores_of

    root, name = tmp_path / "class", "smoothing"
    words = ["--course", str(course)]
    assert main(["release", "nbgrader", *words, "--course-dir", str(root)]) == 0
    nbgrader(root, "generate_assignment", name)
    source = json.loads((root / "source" / name / f"{name}.ipynb").read_text("utf-8"))

    def submit(student: str) -> None:
        write_files(root / "submitted" / student / name, {f"{name}.ipynb": json.dumps(source)})

    submit("ann")
    assert main(["class", *words, "--nbgrader", str(root), name]) == 0
    before = scores_of(root)
    with sqlite3.connect(root / "gradebook.db") as db:  # a person's points stay too
        db.execute("UPDATE grade SET manual_score = 5.5 WHERE auto_score = 6")
    rename(course)
    submit("bob")
    assert main(["class", *words, "--nbgrader", str(root), name]) == 0
    assert scores_of(root) == {**before, "bob": before["ann"]}
    assert main(["release", "nbgrader", *words, "--course-dir", str(root)]) == 0
    nbgrader(root, "generate_assignment", name, "--force")  # which refuses other cells
    assert main(["class", *words, "--nbgrader", str(root), name, "--force"]) == 0
    nbgrader(root, "autograde", name, "--force")
    assert scores_of(root) == {**before, "bob": before["ann"]}
    with sqlite3.connect(root / "gradebook.db") as db:
        manual = db.execute("SELECT count(*) FROM grade WHERE manual_score = 5.5").fetchone()
    assert manual == (1,)
    remove(course, "smooth")
    submit("cas")
    said = " ".join(grade("class", *words, "--nbgrader", str(root), name).split())
    assert "No stage of the course grades smooth: points stay as they are in the gradebook" in said
    nbgrader(root, "autograde", name, "--force")
    found = scores_of(root)
    assert (found["ann"], found["bob"], found["cas"]) == (before["ann"], before["ann"], None)
