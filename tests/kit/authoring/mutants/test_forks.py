"""Jobs in forks: what each gives, and how one is lost."""

import os
import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from grader.authoring.mutants.forks import Bounds, in_forks
from grader.authoring.mutants.types import Fate
from grader.run.lanes import can_fork

pytestmark = pytest.mark.skipif(not can_fork("cpu"), reason="no fork on this system")

BOUNDS = Bounds(seconds=0.2, memory=64 << 20)


def behave(job: str) -> Any:
    """Do what the job says."""
    match job:
        case "hang":
            while True:
                pass
        case "sleep":
            time.sleep(60)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "leave":
            os._exit(0)
        case "eat":
            return len(bytearray(1 << 30))
        case "talk":
            print("to nobody")  # noqa: T201
    return [job, os.getpid()]


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("most, processes", [(1, 6), (2, 3)])
def test_a_process_does_as_many_jobs_as_it_may(lanes: int, most: int, processes: int) -> None:
    found = dict(in_forks("abcdef", behave, BOUNDS, lanes=lanes, most=most))
    assert {job: said[0] for job, said in found.items()} == {job: job for job in "abcdef"}
    own = {said[1] for said in found.values()} - {os.getpid()}
    assert len(own) == processes if lanes == 1 else len(own) >= processes


@pytest.mark.parametrize(
    "job, lost",
    [
        ("hang", Fate.TIMED_OUT),
        pytest.param("sleep", Fate.TIMED_OUT, marks=pytest.mark.slow),
        ("die", Fate.CRASHED),
        ("leave", Fate.CRASHED),
        ("eat", Fate.CRASHED),
    ],
)
def test_what_hangs_or_dies_is_lost_and_the_next_is_not(job: str, lost: Fate) -> None:
    first, second = in_forks([job, "talk"], behave, BOUNDS, most=2)
    assert first == (job, lost)
    assert second[1][0] == "talk"


def test_a_large_result_comes_whole() -> None:
    ((_, said),) = in_forks([1], lambda job: "x" * (1 << 20), BOUNDS)
    assert len(said) == 1 << 20


def test_each_job_of_a_process_has_all_the_time() -> None:
    def work(job: int) -> int:
        end = time.process_time() + 0.6 * BOUNDS.seconds
        while time.process_time() < end:
            pass
        return job

    assert dict(in_forks([0, 1, 2], work, BOUNDS, most=3)) == {0: 0, 1: 1, 2: 2}


def test_closing_it_ends_every_process(tmp_path: Path) -> None:
    def work(job: int) -> None:
        (tmp_path / str(os.getpid())).touch()
        if job:
            time.sleep(60)

    with closing(in_forks([0, 1, 2], work, Bounds(60, 64 << 20), lanes=3)) as forks:
        next(forks)
    for file in tmp_path.iterdir():
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.name), 0)
