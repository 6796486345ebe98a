"""No class is graded without a complete lock unless that is asked for; then reports say so."""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from grader.command.main import main
from grader.run.workers import Interpreter
from grader.types.report import UNLOCKED
from tests.kit.classes.folder_class import RIGHT, class_of, gradebook, hand_in, results_of
from tests.kit.support.checkout import ROOT, TINY, run_python
from tests.kit.support.ordinary import container
from tests.kit.support.tiny import Say, Typed, copy_tiny

has_both = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"),
    reason="there is no layer that could be taken away",
)


def grade(layer: str, *words: str) -> subprocess.CompletedProcess[str]:
    """`grade class` on a machine that lacks a layer."""
    command = [sys.executable, "-m", "grader", "class", "--course", str(TINY.root), *words]
    return run_python(ROOT / "tests/kit/support/without.py", layer, *command)


@has_both
@pytest.mark.parametrize(
    ("layer", "way_out"),
    [
        ("landlock", "Landlock needs Linux 5.13, and"),
        ("landlock, forbidden", "The seccomp profile of this container forbids Landlock"),
        ("landlock, off", "Landlock is off: add landlock to lsm="),
        ("seccomp", "Grade on a Linux machine, real or virtual"),
    ],
)
def test_a_class_is_refused_where_a_layer_is_missing(
    tmp_path: Path, layer: str, way_out: str
) -> None:
    hand_in(tmp_path / "class", ann=RIGHT)
    done = grade(layer, str(tmp_path / "class"), "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("grade: nothing was graded: this machine")
    assert f"missing: {layer.partition(',')[0]};" in line and "--unlocked" in line
    assert way_out in line
    assert not (tmp_path / "out" / "scores.csv").exists()


@has_both
@pytest.mark.parametrize("layer", ["landlock", "seccomp"])
def test_every_report_of_an_unlocked_class_says_so(tmp_path: Path, layer: str) -> None:
    hand_in(tmp_path / "class", ann=RIGHT)
    out = tmp_path / "out"
    words = [str(tmp_path / "class"), "--out", str(out), "--unlocked", "--junit"]
    done = grade(layer, *words)
    assert done.returncode == 0, done.stderr
    said = f"{UNLOCKED}{layer}"
    assert " ".join(done.stdout.split()).count(said) == 1
    assert said in results_of(out)["ann"]["notes"]
    assert gradebook(out)["ann"]["notes"] == said
    assert said in (out / "report.html").read_text(encoding="utf-8")
    assert said in (out / "junit" / "ann.xml").read_text(encoding="utf-8")


@pytest.fixture
def incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine as one without Landlock, for the commands of this process."""
    monkeypatch.setattr(Interpreter, "missing_layers", ("landlock",))


@pytest.mark.usefixtures("incomplete")
def test_a_verdict_is_not_come_to_again_where_a_layer_is_missing(
    tmp_path: Path, say: Say, grade: Typed
) -> None:
    hand_in(tmp_path / "class", ann=RIGHT)
    results = class_of(TINY.root, tmp_path / "out")
    assert main([*results, str(tmp_path / "class"), "--unlocked"]) == 0
    code, _, error = say(*results, "--why", "ann")
    assert code == 2 and "missing: landlock;" in error
    assert UNLOCKED in " ".join(grade(*results, "--why", "ann", "--unlocked").split())


@pytest.mark.slow
def test_the_recipe_for_bubblewrap_works(tmp_path: Path) -> None:
    """It is typed in the folder of a course, as in docs/instructors.md; the lock is complete."""
    container()
    course = copy_tiny(tmp_path / "course").root
    hand_in(course / "SUBMISSIONS", ann=RIGHT)
    guide = (ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
    (recipe,) = [block for block in re.findall(r"```sh\n(.*?)```", guide, re.S) if "bwrap" in block]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    typed = ["bash", "-euc", recipe]
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(typed, cwd=course, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    found = results_of(course / "RESULTS")["ann"]
    assert found["report"]["score"] > 0
    assert not any(note.startswith(UNLOCKED) for note in found["notes"])
