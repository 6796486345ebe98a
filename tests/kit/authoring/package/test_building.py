"""`grade package`: what the packages hold and say, and what no package can be built of."""

import email
import re
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from grader.authoring.package.building import course_files
from grader.command.main import main
from grader.read.course_file import read_course
from grader.read.stubs import read_stub
from tests.kit.support.files import edit, write_files
from tests.kit.support.tiny import Capture, Typed, copy_tiny

pytest.importorskip("hatchling", reason="packages are built with hatchling")

SAYS = """version = "1.2"
authors = ["Ada", "Bo"]
license = "MIT"
package = "Curve-Course"
requirements = ["numpy>=1.26"]
preload"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny course with all that a package says, in the working folder."""
    folder = copy_tiny(tmp_path / "tiny", {"preload": SAYS}).root
    texts = {"LICENSE": "Do what you like", "README.md": "# About curves"}
    write_files(folder, {**texts, "hints/CHANGES.md": "## 1.2"})
    monkeypatch.chdir(tmp_path)
    return folder


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        return email.message_from_bytes(archive.read(name))


def test_the_packages_hold_the_course_and_the_kit_and_say_who_wrote_it(
    tiny: Path, capsys: Capture
) -> None:
    course = read_course(tiny / "course.toml")
    course.stages[0].exercise_file.write_text("mine = 1\n", encoding="utf-8")
    assert main(["package", "--course", "tiny"]) == 0
    said = capsys.readouterr()
    wheel, sdist, kit = sorted(Path("dist").iterdir(), key=lambda file: said.out.index(file.name))
    assert [wheel.name, sdist.name] == [
        "curve_course-1.2-py3-none-any.whl",
        "curve_course-1.2.tar.gz",
    ]
    assert f"pip install {wheel} {kit}\n" in said.out
    assert "grade init --course smoothing\n" in said.out and "is not proven" in said.err

    about = metadata(wheel)
    assert (about["Name"], about["Version"], about["Summary"]) == (
        "Curve-Course",
        "1.2",
        "Smooth a curve",
    )
    assert (about["Author"], about["License-Expression"]) == ("Ada, Bo", "MIT")
    kits, needed, _ = about.get_all("Requires-Dist")
    assert kits.startswith("course-grader>=") and needed == "numpy>=1.26"
    assert about.get_payload() == "# About curves"

    inside = "grader_courses/curve_course/"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        stub = archive.read(f"{inside}exercises/moving_average.py").decode()
    files = {name for name in course_files(course) if name not in ("pyproject.toml", "README.md")}
    assert names == {f"{inside}{name}" for name in files}
    kept = {"LICENSE", "course.toml", "hints/CHANGES.md", "tests/mutants/moving_average.toml"}
    assert kept < files
    assert stub == read_stub(course.stages[0])
    with tarfile.open(sdist) as tar:
        held = {name.partition("/")[2] for name in tar.getnames()}
    assert held == {*files, "pyproject.toml", "README.md", "PKG-INFO"}

    about = metadata(kit)
    assert about["Name"] == "course-grader"
    assert not [line for line in about.get_all("Requires-Dist") if line.startswith("torch")]
    with zipfile.ZipFile(kit) as archive:
        tops = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" not in name}
        assert {"grader/authoring/new/command.py", "grader/kit/pyproject.toml"} < {
            *archive.namelist()
        }
    assert tops == {"grader"}


def test_what_is_new_goes_with_the_course_and_no_student_by_name(tiny: Path) -> None:
    terms = """[[assignments]]
name = "averages"
stages = ["moving_average"]
extensions = { ann = 2026-11-02T23:59:00Z }
[limits]"""
    edit(tiny / "course.toml", "[limits]", terms)
    (tiny / "hints" / "CHANGES.md").write_text("## 1.2\n\n- New.\n", encoding="utf-8")
    files = course_files(read_course(tiny / "course.toml"))
    assert files["hints/CHANGES.md"] == b"## 1.2\n\n- New.\n"
    assert b"averages" in files["course.toml"] and b"ann" not in files["course.toml"]


def test_versions_to_install_go_with_the_course_if_it_has_its_own(tiny: Path) -> None:
    course = read_course(tiny / "course.toml")
    assert "constraints.txt" not in course_files(course)
    (tiny / "constraints.txt").write_text("numpy==2.0\n", encoding="utf-8")
    assert course_files(course)["constraints.txt"] == b"numpy==2.0\n"


@pytest.mark.parametrize(
    "old, new, told",
    [
        ('version = "1.2"', "", 'a package needs a version: add version = "0.1"'),
        ('"MIT"', '"Anything"', "no package can be built: .*license.*'?anything'?"),
        ("numpy>=1.26", "numpy>>1", "no package can be built: Dependency #2 .*numpy>>1"),
    ],
)
def test_what_no_package_can_be_built_of_is_one_line(
    tiny: Path, capsys: Capture, old: str, new: str, told: str
) -> None:
    edit(tiny / "course.toml", old, new)
    assert main(["package", "--course", "tiny"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert re.search(f"grade: course.toml: {told}", said.err)


def test_packages_that_cannot_be_written_are_told(tiny: Path, refused: Typed) -> None:
    (tiny.parent / "dist").write_text("in the way", encoding="utf-8")
    assert "dist: cannot be written" in refused("package", "--course", "tiny")


def test_without_hatchling_it_says_how_to_get_it(
    tiny: Path, refused: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "hatchling.builders.wheel", None)
    assert "pip install 'course-grader[author]'" in refused("package", "--course", "tiny")
