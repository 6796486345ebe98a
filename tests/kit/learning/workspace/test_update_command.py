"""`grade update`: one line for each file, and where to look."""

from pathlib import Path

from grader.read.progress import read_progress, update_progress
from tests.kit.support.files import edit
from tests.kit.support.tiny import Say, Typed


def update(say: Say, code: int = 0) -> str:
    """Type `grade update`; what is shown, as one line."""
    ended, shown, errors = say("update")
    assert (ended, errors) == (code, "")
    assert max(len(line) for line in shown.splitlines()) <= 80
    return " ".join(shown.split())


def change(birds: Path, slug: str, old: str, new: str) -> None:
    edit(birds / "solutions" / f"{slug}.py", old, new)


def test_up_to_date(workspace: Path, say: Say) -> None:
    assert update(say) == "All 3 files are up to date."


def test_a_checkout_has_git(birds: Path, say: Say) -> None:
    assert (
        update(say) == "This is the course's own folder: if it is a clone, `git pull` updates it."
    )
    assert not (birds / ".grade").exists()


def test_every_file_has_its_line(birds: Path, workspace: Path, say: Say, grade: Typed) -> None:
    fold, nest = (workspace / "exercises" / f"{slug}.py" for slug in ("fold", "nest"))
    for file in (fold, nest):
        edit(file, "raise NotImplementedError", "return len")
    edit(nest, "Do it.", "I do it.")
    update_progress(workspace, lambda now: now.with_hint("fold", 2))
    change(birds, "fold", "Stage: fold", "The stage: fold")
    change(birds, "wings", "Do it", "Done anew")
    change(birds, "nest", "Do it", "Done anew")
    said = update(say, code=1)
    assert said == (
        "exercises/fold.py: the course's changes are merged into your work. "
        "The old one is in .grade/replaced/fold.py-1. "
        "exercises/wings.py: replaced by the new stub. "
        "The old one is in .grade/replaced/wings.py-1. "
        "exercises/nest.py: unchanged (you and the course have changed the same lines). "
        "The new version is .grade/new/nest.py; `grade diff nest` compares the two."
    )
    assert "return len" in fold.read_text(encoding="utf-8")
    assert "The stage" in fold.read_text(encoding="utf-8")
    assert read_progress(workspace).progress.stage("fold").rungs == 2
    changed = grade("diff", "nest")
    assert '-    """Done anew."""' in changed
    assert '+    """I do it."""' in changed
    assert update(say) == "All 3 files are up to date."


def test_stages_come_and_go(birds: Path, workspace: Path, say: Say) -> None:
    edit(birds / "course.toml", '"nest"', '"egg"')
    solution = (birds / "solutions" / "nest.py").read_text(encoding="utf-8")
    (birds / "solutions" / "egg.py").write_text(solution, encoding="utf-8")
    gone = "exercises/nest.py: the course no longer has this stage. Your file stays."
    assert update(say) == f"exercises/egg.py: new. {gone}"
    assert (workspace / "exercises" / "nest.py").is_file()
    assert update(say) == f"All 3 files are up to date. {gone}"


def test_what_is_in_the_way_is_named(birds: Path, workspace: Path, say: Say) -> None:
    for slug in ("fold", "wings"):
        change(birds, slug, "Do it", "Done anew")
    fold = workspace / "exercises" / "fold.py"
    fold.unlink()
    fold.symlink_to(workspace / "nowhere.py")
    (workspace / "exercises" / "wings.py").write_bytes(b"\xff")
    said = update(say, code=1)
    assert "exercises/fold.py: unchanged (is a link: put the file itself in its place)" in said
    assert "exercises/wings.py: unchanged (is not UTF-8)" in said
    assert not (workspace / "nowhere.py").exists()
