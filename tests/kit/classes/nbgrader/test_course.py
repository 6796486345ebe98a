"""The nbgrader course that is written: its configuration, and what is kept when written again."""

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader.nbgraderformat import MetadataValidator
from traitlets.config.loader import PyFileConfigLoader

from grader.classes.nbgrader.assignment import solution_id
from grader.classes.nbgrader.course import CONFIG, configured, write_nbgrader_course
from grader.command.main import main
from grader.types.course import Course
from tests.kit.support.checkout import COURSE, TINY
from tests.kit.support.tiny import Capture, copy_tiny


def settings(root: Path) -> Any:
    return PyFileConfigLoader(CONFIG, str(root)).load_config()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADE_COURSE", "")  # which the configuration sets


@pytest.mark.parametrize("course", [COURSE, TINY], ids=["own", "tiny"])
def test_each_stage_has_one_cell_to_write_in_and_one_that_grades(
    course: Course, tmp_path: Path
) -> None:
    write_nbgrader_course(tmp_path, course, kernel=False)
    for assignment in course.assignments:
        file = tmp_path / "source" / assignment.name / f"{assignment.name}.ipynb"
        node = nbformat.read(file, as_version=4)
        nbformat.validate(node)
        MetadataValidator().validate_nb(node)
        known = {
            cell.metadata.nbgrader.grade_id: cell
            for cell in node.cells
            if "nbgrader" in cell.metadata
        }
        assert len(known) == len(node.cells)  # all but the answers are locked
        assert {name for name, cell in known.items() if not cell.metadata.nbgrader.locked} == {
            solution_id(stage) for stage in assignment.stages
        }
        for stage in assignment.stages:
            assert "### BEGIN SOLUTION" in known[solution_id(stage)].source
            assert known[stage.slug].metadata.nbgrader.points == stage.points
            assert f'grade_here("{stage.slug}")' in known[stage.slug].source


def test_the_configuration_names_our_graders(tmp_path: Path) -> None:
    write_nbgrader_course(tmp_path, TINY, kernel=False)
    config = settings(tmp_path)
    assert config.CourseDirectory.course_id == TINY.name
    assert config.Autograde.exporter_class == "grader.nbgrader.AnyNotebook"
    assert "grader.nbgrader.GradeWithEngine" in config.Autograde.autograde_preprocessors
    assert not any("Execute" in name for name in config.Autograde.autograde_preprocessors)


def test_with_kernel_nbgrader_grades_as_it_does_by_itself(tmp_path: Path) -> None:
    write_nbgrader_course(tmp_path, TINY, kernel=False)
    write_nbgrader_course(tmp_path, TINY, kernel=True)
    config = settings(tmp_path)
    assert "autograde_preprocessors" not in config.Autograde
    assert "sanitize_preprocessors" not in config.Autograde
    assert config.OverwriteCells.add_missing_cells is True
    assert re.search(config.IgnorePattern.pattern, "UserWarning: two\nlines")


def test_the_configuration_imports_nothing_of_ours() -> None:
    # Were it missing, nbgrader would log an error, start its kernel and end with exit code 0.
    text = configured("", TINY, kernel=False)
    assert [line for line in text.splitlines() if "import" in line] == ["import os  # noqa: E402"]


def test_ones_own_settings_stay(tmp_path: Path) -> None:
    config = tmp_path / CONFIG
    config.write_text("c = get_config()\nc.Exchange.root = '/srv'\n", encoding="utf-8")
    write_nbgrader_course(tmp_path, TINY, kernel=True)
    with config.open("a", encoding="utf-8") as file:
        file.write("c.CourseDirectory.course_id = 'mine'\n")
    write_nbgrader_course(tmp_path, TINY, kernel=False)
    once = config.read_text("utf-8")
    write_nbgrader_course(tmp_path, TINY, kernel=False)
    assert config.read_text("utf-8") == once
    found = settings(tmp_path)
    assert (found.Exchange.root, found.CourseDirectory.course_id) == ("/srv", "mine")
    assert found.Autograde.exporter_class == "grader.nbgrader.AnyNotebook"


def test_written_again_nothing_changes(tmp_path: Path) -> None:
    first = write_nbgrader_course(tmp_path, TINY, kernel=False)
    assert len(first.written) == 1 + len(TINY.assignments)
    again = write_nbgrader_course(tmp_path, TINY, kernel=False)
    assert (again.written, again.kept) == ((), ())


def test_a_notebook_that_somebody_changed_is_kept_out_of_what_is_released(tmp_path: Path) -> None:
    write_nbgrader_course(tmp_path, TINY, kernel=False)
    file = tmp_path / "source" / TINY.name / f"{TINY.name}.ipynb"
    original = file.read_text("utf-8")
    file.write_text(json.dumps({"mine": True}), encoding="utf-8")
    done = write_nbgrader_course(tmp_path, TINY, kernel=False)
    assert done.written == (file,)
    (copy,) = done.kept
    assert json.loads(copy.read_text("utf-8")) == {"mine": True}
    assert file.read_text("utf-8") == original
    assert (tmp_path / "source") not in copy.parents  # all that is there goes to students


def test_a_course_elsewhere_is_named_by_its_place(tmp_path: Path) -> None:
    course = copy_tiny(tmp_path / "it's here")
    write_nbgrader_course(tmp_path / "class", course, kernel=False)
    text = (tmp_path / "class" / CONFIG).read_text("utf-8")
    names: dict[str, Any] = {}
    (line,) = [line for line in text.splitlines() if "GRADE_COURSE" in line]
    exec(f"import os\n{line}", names)
    assert names["os"].environ["GRADE_COURSE"] == str(course.root.resolve())


def test_a_folder_in_which_nbgrader_finds_nothing_is_refused(
    tmp_path: Path, capsys: Capture
) -> None:
    place = tmp_path / "MHA [2026]" / "nb"
    words = ["release", "nbgrader", "--course", str(TINY.root), "--course-dir", str(place)]
    assert main(words) == 2
    assert (
        "nbgrader finds no file in a folder with *, ? or [ in its name" in capsys.readouterr().err
    )
    assert not place.exists()


TWO = """[[assignments]]
name = "first"
stages = ["moving_average"]

[[assignments]]
name = "second"
stages = ["roughness"]

"""


def test_every_assignment_has_its_commands(tmp_path: Path, capsys: Capture) -> None:
    course = copy_tiny(tmp_path / "course", {"[limits]": f"{TWO}[limits]"}).root
    words = ["release", "nbgrader", "--course", str(course), "--course-dir", str(tmp_path / "nb")]
    assert main(words) == 0
    said = capsys.readouterr().out
    for name in ("first", "second"):
        assert f"nbgrader generate_assignment {name}\n" in said
        assert f"nbgrader release_assignment {name}\n" in said
