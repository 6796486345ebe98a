"""A scratch folder: when it is too much, and that nothing of it is left, whatever lies in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grader.read.submission import read_submission
from grader.run.worker.scratch import is_overfull, remove_tree
from grader.types.errors import SubmissionFileError


def deep(folder: Path, depth: int) -> None:
    """Folders in folders, deeper than a path may be long."""
    here = os.getcwd()
    os.chdir(folder)
    try:
        for _ in range(depth):
            os.mkdir("folder")
            os.chdir("folder")
    finally:
        os.chdir(here)


def test_a_tree_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    root = tmp_path / "scratch"
    root.mkdir()
    deep(root, 1500)
    remove_tree(str(root))
    assert not list(tmp_path.iterdir())


def test_a_link_is_removed_and_not_what_it_points_to(tmp_path: Path) -> None:
    root, kept = tmp_path / "scratch", tmp_path / "kept"
    root.mkdir()
    kept.mkdir()
    (kept / "file").write_text("mine")
    (root / "link").symlink_to(kept)
    remove_tree(str(root))
    assert (kept / "file").read_text() == "mine"
    assert not root.exists()


def test_removing_what_is_gone_is_no_error(tmp_path: Path) -> None:
    remove_tree(str(tmp_path / "gone"))


def test_a_submission_of_folders_in_folders_without_end_is_refused(tmp_path: Path) -> None:
    submission = tmp_path / "submission"
    submission.mkdir()
    deep(submission, 1200)
    with pytest.raises(SubmissionFileError, match="too many folders"):
        read_submission(submission)
    remove_tree(str(submission))


def test_an_empty_folder_or_none_is_not_too_much(tmp_path: Path) -> None:
    assert not is_overfull(str(tmp_path), 0)
    assert not is_overfull(str(tmp_path / "gone"), 0)


def test_the_files_of_all_folders_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for place in (tmp_path, tmp_path / "a", tmp_path / "a" / "b"):
        (place / "file").write_bytes(bytes(40_000))
    assert is_overfull(str(tmp_path), 100_000)
    assert not is_overfull(str(tmp_path), 200_000)


def test_what_a_link_points_to_and_a_hole_take_no_room(tmp_path: Path) -> None:
    root = tmp_path / "scratch"
    root.mkdir()
    (tmp_path / "large").write_bytes(bytes(100_000))
    (root / "link").symlink_to(tmp_path / "large")
    (root / "folder").symlink_to(tmp_path)
    with open(root / "hole", "wb") as file:
        file.truncate(1 << 30)
    assert not is_overfull(str(root), 50_000)


def test_many_empty_files_are_too_much(tmp_path: Path) -> None:
    for number in range(5001):
        (tmp_path / str(number)).touch()
    assert is_overfull(str(tmp_path), 1 << 30)


def test_deep_folders_are_too_much(tmp_path: Path) -> None:
    deep(tmp_path, 100)
    assert is_overfull(str(tmp_path), 1 << 30)
    remove_tree(str(tmp_path))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may look")
def test_a_folder_that_cannot_be_looked_into_is_too_much(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o300)
    assert is_overfull(str(tmp_path), 1 << 30)
