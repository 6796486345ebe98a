"""What must not hold for root alone: the same tests as an ordinary user, and in a container."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.run.solutions import solution_files
from tests.kit.support.checkout import ROOT
from tests.kit.support.files import write_files
from tests.kit.support.ordinary import container, ordinary
from tests.kit.support.tiny import copy_tiny

CLEANING = ("run/worker/test_scratch.py", "run/test_scratch_root.py")
ATTACKED = ("attacks/test_attacks.py", "run/worker/test_lock.py", "run/test_workers.py")
is_ordinary = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="the tests run as an ordinary user"
)


def passes(prefix: tuple[str, ...], files: tuple[str, ...], tmp_path: Path) -> None:
    command = [*prefix, sys.executable, "-m", "pytest", "-n", "0", "-q", *files]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        command, cwd=ROOT / "tests" / "kit", capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@is_ordinary
def test_an_ordinary_user_leaves_nothing(tmp_path: Path) -> None:
    few = ("-k", "not too_much and not deeper and not without_end")  # these take a slow disk long
    passes(ordinary(), (*CLEANING, *few), tmp_path)


@pytest.mark.slow
@is_ordinary
def test_attacks_end_alike_for_an_ordinary_user(tmp_path: Path) -> None:
    passes(ordinary(), ATTACKED, tmp_path)


@pytest.mark.slow
def test_attacks_end_alike_in_a_container(tmp_path: Path) -> None:
    passes(container(), (*CLEANING, *ATTACKED), tmp_path)


CLOSED = {"nothing": 0o000, "list": 0o444, "enter": 0o111}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux locks the worker")
def test_a_folder_that_is_closed_to_the_instructor_costs_only_its_author(tmp_path: Path) -> None:
    """Archives keep the modes that a student gave."""
    course = copy_tiny(tmp_path / "course")
    right = {**solution_files(course), "smoothing.ipynb": b"{}"}
    for student in ("honest", *CLOSED):
        write_files(tmp_path / "class" / student, right)
    write_files(tmp_path / "class" / "inner" / "smoothing", right)
    closed = {tmp_path / "class" / name: mode for name, mode in CLOSED.items()}
    closed[tmp_path / "class" / "inner" / "smoothing"] = 0o000
    words = ("-m", "grader", "class", "../class", "--out", "../results", "--for-author")
    for folder, mode in closed.items():
        folder.chmod(mode)
    try:
        done = subprocess.run(
            [*ordinary(), sys.executable, *words], cwd=course.root, capture_output=True, text=True
        )
    finally:
        for folder in closed:
            folder.chmod(0o755)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(tmp_path / "results" / "scores.csv", encoding="utf-8-sig") as file:
        scores = {row["student_id"]: row["score"] for row in csv.DictReader(file)}
    assert scores == {"honest": "10", "inner": "0", **dict.fromkeys(CLOSED, "0")}


def test_the_folder_above_a_course_may_be_one_that_nobody_can_list(tmp_path: Path) -> None:
    """On machines that many people share, /home is like that."""
    closed = tmp_path / "closed"
    course = copy_tiny(closed / "course")
    command = [*ordinary(), sys.executable, "-m", "grader", "--submission", "solutions"]
    closed.chmod(0o311)
    try:
        done = subprocess.run(command, cwd=course.root, capture_output=True, text=True, timeout=120)
    finally:
        closed.chmod(0o755)
    assert done.returncode == 0, done.stdout + done.stderr
