"""What counts of an upload."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.classes.folder.uploads import chosen
from grader.types.course import Stage

STAGES = tuple(Stage(slug, slug, 1, False, (), (), Path()) for slug in ("fold", "left_wing"))


@pytest.mark.parametrize(
    "names, counted, noted",
    [
        (["fold.py", "helper.py"], ["fold.py", "helper.py"], 0),
        (["birds/exercises/fold.py", "birds/setup.py"], ["fold.py"], 0),
        (["fold.py", "old/fold.py", "old/left_wing.py"], ["fold.py", "left_wing.py"], 1),
        (["fold.py", "old/fold.py"], ["fold.py", "old/fold.py"], 1),
        (["Fold (2).py", "left-wing - Copy.py"], ["fold.py", "left_wing.py"], 2),
        (["Copy of Left Wing.py", "fold copy 2.py"], ["fold.py", "left_wing.py"], 2),
        (["fold.py", "fold (1).py"], ["fold (1).py", "fold.py"], 1),
        (["1/fold.py", "2/left_wing.py", "2/old/left_wing.py"], ["fold.py"], 1),
        (["fold.py", "2/left_wing.py"], ["2/left_wing.py", "fold.py"], 1),
    ],
)
def test_the_folder_with_most_stages_counts(
    names: list[str], counted: list[str], noted: int
) -> None:
    upload = chosen({name: name.encode() for name in names}, STAGES)
    assert upload is not None and upload.submission.is_folder
    assert sorted(upload.submission.files) == counted
    assert len(upload.notes) == noted


def test_a_wrong_name_is_told() -> None:
    upload = chosen({"Left-Wing.py": b"x", "fold.py": b""}, STAGES)
    assert upload is not None
    assert upload.notes == ("Left-Wing.py was graded as left_wing.py.",)
    assert upload.submission.files["left_wing.py"] == b"x"


def test_a_stage_that_is_only_in_another_folder_is_told() -> None:
    upload = chosen({"1/fold.py": b"x", "2/left_wing.py": b"y", "3/left_wing.py": b"z"}, STAGES)
    assert upload is not None and list(upload.submission.files) == ["fold.py"]
    assert upload.notes == ("2/left_wing.py was not graded: put all files into one folder.",)


def test_another_version_of_a_file_that_counts_is_told() -> None:
    files = {"fold.py": b"x", "fold (1).py": b"y", "old/fold.py": b"z", "same/fold.py": b"x"}
    upload = chosen(files, STAGES)
    assert upload is not None and upload.submission.files["fold.py"] == b"x"
    assert upload.notes == ("fold (1).py and 1 more were not graded: fold.py was.",)


def test_one_file_alone_may_hold_all() -> None:
    upload = chosen({"hw/all.py": b"x"}, STAGES)
    assert upload is not None
    assert (upload.submission.script, upload.submission.files) == ("all.py", {"all.py": b"x"})


@pytest.mark.parametrize("names", [[], ["a.py", "b.py"]])
def test_where_no_file_is_a_stages_there_is_nothing(names: list[str]) -> None:
    assert chosen(dict.fromkeys(names, b""), STAGES) is None
