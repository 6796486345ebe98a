"""A run's folder: the next run removes what a killed one has left, and nothing else."""

import os
import signal
import tempfile
import time
from pathlib import Path

import pytest

from grader.run.scratch_root import ScratchRoot, sweep
from grader.run.worker.scratch import OWNER
from tests.kit.support.checkout import run_python
from tests.kit.support.processes import until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no flock")

A_RUN = """
import os, time
from grader.run.scratch_root import ScratchRoot

root = ScratchRoot()
for folder, mode in (("folder", 0o500), ("closed", 0)):
    os.makedirs(f"{root.path}/worker/{folder}")
    open(f"{root.path}/worker/{folder}/file", "w").close()
    os.chmod(f"{root.path}/worker/{folder}", mode)
if lane := os.fork():
    print(root.path, lane)
else:
    os.closerange(0, 3)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left(temp: Path) -> tuple[Path, int]:
    """The folder of a run that ended without removing it, and its lane, which still runs."""
    done = run_python("-c", A_RUN, env={"TMPDIR": str(temp)}, check=True)
    path, pid = done.stdout.split()
    return Path(path), int(pid)


def test_a_folder_stays_until_the_last_process_of_its_run_ends(temp: Path) -> None:
    root, lane = left(temp)
    sweep()
    assert (root / "worker" / "folder").is_dir()
    os.kill(lane, signal.SIGKILL)
    assert until(lambda: sweep() or not root.exists(), 10)
    assert os.listdir(temp) == []


def test_the_folder_of_a_run_in_this_process_stays(temp: Path) -> None:
    root = ScratchRoot()
    sweep()
    assert os.listdir(root.path) == [OWNER]
    root.remove()
    assert os.listdir(temp) == []


def test_every_other_folder_stays(temp: Path) -> None:
    for name in ("grade-mine", "grade-course-x", "mine"):
        (temp / name).mkdir()
        (temp / name / "file").touch()
    (temp / "mine" / OWNER).touch()
    (temp / "grade-link").symlink_to(temp / "mine")
    (temp / "grade-file").touch()
    sweep()
    assert len(os.listdir(temp)) == 5
    assert sorted(os.listdir(temp / "mine")) == sorted(["file", OWNER])


def test_another_users_folder_stays(temp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, lane = left(temp)
    os.kill(lane, signal.SIGKILL)
    monkeypatch.setattr(os, "geteuid", lambda: root.stat().st_uid + 1)
    for _ in range(20):  # it takes a moment to end
        sweep()
        assert (root / OWNER).exists()
        time.sleep(0.01)


@pytest.mark.parametrize("by", ["its own run", "the next run"])
def test_what_cannot_be_removed_is_reported_and_the_rest_is_removed(
    temp: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, by: str
) -> None:
    """Such as an immutable file, or a folder that somebody has mounted."""
    unlink = os.unlink

    def refuse(path: str) -> None:
        if path.endswith("kept"):
            raise PermissionError(1, "Operation not permitted", path)
        unlink(path)

    run = ScratchRoot()
    folder = Path(run.path)
    (folder / "a" / "b").mkdir(parents=True)
    for file in ("a/kept", "a/file", "a/b/kept", "a/b/file"):
        (folder / file).touch()
    monkeypatch.setattr("grader.run.scratch_root._FAREWELL", 0.1)
    monkeypatch.setattr(os, "unlink", refuse)
    if by == "its own run":
        run.remove()
    else:
        assert run._owner is not None
        os.close(run._owner)
        sweep()
    (told,) = caplog.messages
    assert told == (
        f"grade: cannot remove {folder}: Operation not permitted; delete this folder by hand"
    )
    stays = sorted(path.name for path in folder.rglob("*") if path.is_file())
    assert stays == sorted([OWNER, "kept", "kept"])
    monkeypatch.setattr(os, "unlink", unlink)
    sweep()
    assert os.listdir(temp) == []


def test_the_line_is_on_stderr(temp: Path) -> None:
    """With no logging set up, as in the command."""
    code = (
        "import os\nfrom grader.run import scratch_root as s\ns._FAREWELL = 0\n"
        "run = s.ScratchRoot()\nos.makedirs(run.path + '/a')\n"
        "def refuse(path): raise PermissionError(1, 'no')\nos.rmdir = refuse\nrun.remove()\n"
    )
    done = run_python("-c", code, env={"TMPDIR": str(temp)})
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith(f"grade: cannot remove {temp}")
