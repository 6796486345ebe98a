"""A scratch folder: when it is too much, and that nothing of it is left, whatever lies in it."""

import os
from pathlib import Path

import pytest

from grader.read.submission import read_submission
from grader.run.worker.scratch import is_overfull, remove_tree
from grader.types.errors import SubmissionFileError
from tests.kit.support.files import deep_folders


def test_a_tree_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    root = tmp_path / "scratch"
    root.mkdir()
    deep_folders(root, 1500)
    remove_tree(str(root))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mode", [0, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600])
def test_folders_that_are_closed_are_removed_with_all_that_is_in_them(
    tmp_path: Path, mode: int
) -> None:
    root = tmp_path / "scratch"
    for place in (root / "a", root / "a" / "b", root / "c"):
        place.mkdir(parents=True)
        (place / "file").touch()
        (place / "empty").mkdir(mode=mode)
    for place in (root / "a" / "b", root / "a", root / "c", root):
        place.chmod(mode)
    assert remove_tree(str(root)) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("depth", [1, 200])
def test_a_closed_folder_at_each_step_down_is_removed(tmp_path: Path, depth: int) -> None:
    root = tmp_path / "scratch"
    folder = root.joinpath(*["in"] * depth)
    folder.mkdir(parents=True)
    while folder != tmp_path:
        (folder / "file").touch()
        folder.chmod(0o500)
        folder = folder.parent
    assert remove_tree(str(root)) is None
    assert not list(tmp_path.iterdir())


def test_no_name_is_too_odd_to_be_removed(tmp_path: Path) -> None:
    root = os.fsencode(tmp_path / "scratch")
    names = [b"\xff\xfe", b"new\nline", b"-rf", b"*", b" ", b"\x1b[2J", b"n" * 255, b"0.1", b"1"]
    for folder in (b"", b"folder", *names):
        os.makedirs(os.path.join(root, folder), exist_ok=True)
        for name in names:
            with open(os.path.join(root, folder, name + b"" if folder else b"f" + name[:99]), "w"):
                pass
    assert remove_tree(os.fsdecode(root)) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("call", ["unlink", "rmdir", "rename", "scandir"])
def test_a_refusal_keeps_only_what_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    root = tmp_path / "scratch"
    for place in (root / "a" / "b", root / "refused" / "c", root / "d"):
        place.mkdir(parents=True)
        (place / "file").touch()
    (root / "refused.file").touch()
    refused = os.stat(root / ("refused.file" if call == "unlink" else "refused")).st_ino
    original = getattr(os, call)

    def refuse(path: str, *others: str) -> object:
        if os.stat(path).st_ino == refused:
            raise PermissionError(13, "Permission denied", path)
        return original(path, *others)

    monkeypatch.setattr(os, call, refuse)
    refusal = remove_tree(str(root))
    monkeypatch.undo()
    if call == "rename":  # it is emptied where it is
        assert refusal is None
        assert not root.exists()
    else:
        assert refusal is not None and refusal.strerror == "Permission denied"
        kept = [path.name for path in root.rglob("*") if path.stat().st_ino != refused]
        assert kept == (["c", "file"] if call == "scandir" else [])
        assert remove_tree(str(root)) is None


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
    deep_folders(submission, 1200)
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
    deep_folders(tmp_path, 100)
    assert is_overfull(str(tmp_path), 1 << 30)
    remove_tree(str(tmp_path))


def test_a_folder_that_closes_itself_is_looked_into_all_the_same(tmp_path: Path) -> None:
    """So a worker is stopped for what it has written, whoever runs it."""
    for mode in (0, 0o300, 0o500):
        folder = tmp_path / f"{mode:o}"
        (folder / "inside").mkdir(parents=True)
        (folder / "inside" / "file").write_bytes(bytes(40_000))
        folder.chmod(mode)
    assert not is_overfull(str(tmp_path), 200_000)
    assert is_overfull(str(tmp_path), 100_000)


def test_a_folder_that_cannot_be_looked_into_is_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert is_overfull(str(tmp_path), 1 << 30)
