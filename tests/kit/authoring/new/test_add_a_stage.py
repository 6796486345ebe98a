"""The transcript in docs/authoring.md that adds a stage, typed as it is in a copy of the kit."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.classes.folder_class import results_of
from tests.kit.support.checkout import ROOT

SECTION = re.search(
    r"^## Add a stage\n.*?(?=^## |\Z)",
    (ROOT / "docs" / "authoring.md").read_text(encoding="utf-8"),
    re.S | re.M,
)
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", SECTION[0], re.S | re.M)
SLUG = "head_mean"
COPIED = ("grader", "solutions", "exercises", "hints", "tests/checks", "tests/accepted")


def test_it_takes_sixty_lines_that_fit_the_screen() -> None:
    lines = SECTION[0].rstrip().splitlines()
    assert len(lines) <= 60 and max(map(len, lines)) <= 80


def test_it_is_typed_on_any_system() -> None:
    """No option that only GNU's tools have, and no other language than the shell's own."""
    assert {language for language, _ in BLOCKS} == {"sh"}
    typed = "".join(text for _, text in BLOCKS)
    assert re.findall(r"\bsed -i|\bcp -t|\bgrep -P|\bpython\b|\[\[ |<<<|echo -", typed) == []


def tree(root: Path) -> dict[str, bytes]:
    """Every file below `root`, but what Python compiles."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the repository, without its own tests."""
    root = tmp_path / "kit"
    for name in COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, root / name, ignore=ignored)
    for name in ("course.toml", "pyproject.toml", "constraints.txt", "LICENSE"):
        shutil.copy(ROOT / name, root)
    return root


@pytest.mark.slow
def test_a_stage_goes_from_nothing_to_a_graded_class(copy: Path, tmp_path: Path) -> None:
    pytest.importorskip("nbgrader", reason="nbgrader is not installed")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in (("grade", "grader"), ("ruff", "ruff")):
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n', "utf-8")
        script.chmod(0o755)
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(copy)}
    before = tree(copy)

    typed = "".join(text for _, text in BLOCKS) + "\nruff check .\n"
    done = subprocess.run(
        ["bash", "-eu", "-c", typed],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "TODO" not in done.stdout

    after = tree(copy)
    new = {name for name in after if name not in before and not name.startswith(".")}
    assert new == {
        f"solutions/{SLUG}.py",
        f"exercises/{SLUG}.py",
        f"tests/checks/test_{SLUG}.py",
        f"hints/{SLUG}.md",
        f"hints/misconceptions/{SLUG}.py",
        *(f"tests/accepted/{SLUG}/{name}.py" for name in ("another", "moved", "turned")),
    }
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {"course.toml"}

    assert re.search(rf"^ +ok +{SLUG}\b.* 3 accepted, 3 of 3 caught$", done.stdout, re.M)
    assert re.search(rf"^ +{SLUG} +(\d+) +\1 +0 +0$", done.stdout, re.M), done.stdout
    notebook = (tmp_path / "nb" / "source" / "mean" / "mean.ipynb").read_text(encoding="utf-8")
    assert "def head_mean" in notebook and r"grade_here(\"head_mean\")" in notebook
    assert SLUG in (tmp_path / "heads.ipynb").read_text(encoding="utf-8")
    found = results_of(tmp_path / "results").items()
    stages = {student: one["report"]["stages"] for student, one in found}
    assert {name: [s["score"] for s in each] for name, each in stages.items()} == {
        "ada": [10],
        "bob": [2],
    }
    wrong = json.dumps(stages["bob"])
    assert "The result is wrong at B=0, Tq=0, Tk=0" in wrong and "mean_sum" in wrong
