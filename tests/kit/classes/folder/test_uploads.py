"""Which files of an upload are graded."""

from pathlib import Path

import pytest

from grader.classes.folder.uploads import chosen
from grader.types.course import Stage

STAGES = tuple(Stage(slug, slug, 1, False, (), (), Path()) for slug in ("fold", "left_wing"))


ELSEWHERE = "was not graded: put all files into one folder."


@pytest.mark.parametrize(
    "names, counted, notes",
    [
        (["fold.py", "helper.py"], ["fold.py", "helper.py"], []),
        (["birds/exercises/fold.py", "birds/setup.py"], ["fold.py"], []),
        (
            ["fold.py", "old/fold.py", "old/left_wing.py"],
            ["fold.py", "left_wing.py"],
            ["fold.py was not graded: old/fold.py was."],
        ),
        (
            ["fold.py", "fold (1).py", "old/fold.py"],
            ["fold (1).py", "fold.py", "old/fold.py"],
            ["fold (1).py and 1 more were not graded: fold.py was."],
        ),
        (
            ["Fold (2).py", "left-wing - Copy.py"],
            ["fold.py", "left_wing.py"],
            [
                "Fold (2).py was graded as fold.py.",
                "left-wing - Copy.py was graded as left_wing.py.",
            ],
        ),
        (
            ["Copy of Left Wing.py"],
            ["left_wing.py"],
            ["Copy of Left Wing.py was graded as left_wing.py."],
        ),
        (["fold copy 2.py"], ["fold.py"], ["fold copy 2.py was graded as fold.py."]),
        (
            ["1/fold.py", "2/left_wing.py", "3/left_wing.py"],
            ["fold.py"],
            [f"2/left_wing.py {ELSEWHERE}"],
        ),
        (
            ["fold.py", "2/left_wing.py"],
            ["2/left_wing.py", "fold.py"],
            [f"2/left_wing.py {ELSEWHERE}"],
        ),
    ],
)
def test_the_folder_with_most_stages_counts_and_the_notes_name_the_rest(
    names: list[str], counted: list[str], notes: list[str]
) -> None:
    upload = chosen({name: name.encode() for name in names}, STAGES)
    assert upload is not None and upload.submission.is_folder
    assert sorted(upload.submission.files) == counted and list(upload.notes) == notes


def test_a_copy_with_the_same_text_is_not_another_version() -> None:
    upload = chosen({"fold.py": b"x", "same/fold.py": b"x", "Left-Wing.py": b"y"}, STAGES)
    assert upload is not None and upload.notes == ("Left-Wing.py was graded as left_wing.py.",)
    assert upload.submission.files["left_wing.py"] == b"y"


def test_one_file_alone_may_hold_all() -> None:
    upload = chosen({"hw/all.py": b"x"}, STAGES)
    assert (upload.submission.script, upload.submission.files) == ("all.py", {"all.py": b"x"})


@pytest.mark.parametrize("names", [[], ["a.py", "b.py"]])
def test_an_upload_without_a_file_of_a_stage_is_none(names: list[str]) -> None:
    assert chosen(dict.fromkeys(names, b""), STAGES) is None
