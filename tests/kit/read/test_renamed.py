"""Submissions from before a stage was renamed."""

from pathlib import Path

from grader.read.renamed import with_present_names
from grader.types.course import Stage
from grader.types.submission import Submission

NAMES = ("sheet", "crease")
STAGES = (
    Stage("fold", "Fold", 1, False, (), (), Path(), formerly=NAMES),
    Stage("fly", "Fly", 1, False, (), (), Path()),
)


def files(**sources: str) -> Submission:
    return Submission("ann", {f"{name}.py": text.encode() for name, text in sources.items()})


def test_a_file_gets_its_present_name_and_is_imported_by_both() -> None:
    found = with_present_names(files(crease="x = 1", fly="from crease import x"), STAGES).files
    assert found["fold.py"] == b"x = 1" and found["fly.py"] == b"from crease import x"
    assert b"import fold" in found["crease.py"]


def test_the_newest_name_counts_and_a_present_file_most() -> None:
    assert with_present_names(files(sheet="1", crease="2"), STAGES).files["fold.py"] == b"2"
    both = files(fold="3", crease="2")
    assert with_present_names(both, STAGES) is both


def test_a_link_a_script_and_a_notebook_stay_as_they_are() -> None:
    for one in (
        Submission("ann", {"crease.py": b""}, links=frozenset({"fold.py"})),
        Submission("ann", {"crease.py": b""}, script="crease.py"),
        Submission("ann", {}, cells=("x = 1",)),
        files(fly="1"),
    ):
        assert with_present_names(one, STAGES) is one
