"""Jobs in forked processes: each comes to one end, whatever becomes of the process."""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.run.lanes import LaneLost, SharedSeconds, Work, can_fork, in_lanes
from tests.kit.support.processes import alive, until

pytestmark = pytest.mark.skipif(not can_fork("cpu"), reason="no fork on this system")


def doing(
    do: Callable[[int], object], close: Callable[[], None] = lambda: None
) -> Callable[[], Work[int, tuple[object, int]]]:
    """What is done with a number, and who did it."""
    return lambda: (lambda job: (do(job), os.getpid()), close)


def done(
    count: int, jobs: range, do: Callable[[int], object]
) -> dict[int, tuple[object, int] | Exception]:
    return dict(in_lanes(count, jobs, doing(do)))


def test_every_job_is_done_once_in_other_processes() -> None:
    results = list(in_lanes(3, range(20), doing(lambda job: job * job)))
    assert sorted(job for job, _ in results) == list(range(20))
    for job, result in results:
        assert not isinstance(result, Exception)
        assert result[0] == job * job and result[1] != os.getpid()
    assert len({result[1] for _, result in results if not isinstance(result, Exception)}) <= 3


def test_they_work_at_the_same_time(tmp_path: Path) -> None:
    def meet(job: int) -> bool:
        """Whether the other one comes while this one is here."""
        (tmp_path / str(job)).touch()
        return until((tmp_path / str(1 - job)).exists, 20)

    results = done(2, range(2), meet)
    assert [result[0] for result in results.values() if isinstance(result, tuple)] == [True, True]


def test_their_seconds_add_up_and_a_process_that_is_replaced_counts_from_0() -> None:
    shared = SharedSeconds(3)
    assert shared.counted(0, lambda: 0.5)() == 0.5
    in_order = done(1, range(1, 3), lambda job: shared.counted(job, lambda: float(job))())
    assert [result[0] for result in in_order.values() if isinstance(result, tuple)] == [1.5, 3.5]
    assert shared.counted(0, lambda: 4.0)() == 7.0


def test_fewer_jobs_than_lanes() -> None:
    assert set(done(4, range(1), lambda job: job)) == {0}
    assert done(4, range(0), lambda job: job) == {}


def test_after_so_many_jobs_another_process_takes_over_and_all_are_closed_here() -> None:
    closed: list[int] = []
    prepare = doing(lambda job: job, lambda: closed.append(1))
    results = dict(in_lanes(2, range(20), prepare, most=3))
    assert set(results) == set(range(20))
    by_process: dict[int, int] = {}
    for result in results.values():
        assert isinstance(result, tuple)
        by_process[result[1]] = by_process.get(result[1], 0) + 1
    assert max(by_process.values()) == 3 and len(by_process) == len(closed)
    assert multiprocessing.active_children() == []
    closed.clear()
    list(in_lanes(2, range(5), prepare))
    assert closed == [1, 1]


def test_an_exception_is_the_jobs_end_and_no_others() -> None:
    def fail(job: int) -> int:
        if job == 3:
            raise ValueError("three")
        return job

    results = done(2, range(6), fail)
    assert isinstance(results.pop(3), ValueError)
    assert {job for job, result in results.items() if isinstance(result, tuple)} == {0, 1, 2, 4, 5}


def test_a_process_that_is_killed_costs_its_job_alone() -> None:
    def die(job: int) -> int:
        if job in (2, 5):
            os.kill(os.getpid(), signal.SIGKILL)
        return job

    results = done(2, range(8), die)
    assert set(results) == set(range(8))
    for job in (2, 5):
        assert isinstance(results[job], LaneLost) and "signal 9" in str(results[job])
    assert all(isinstance(results[job], tuple) for job in (0, 1, 3, 4, 6, 7))


def test_given_up_nothing_is_left() -> None:
    results = in_lanes(2, range(100), doing(lambda job: time.sleep(job and 60)))
    next(results)
    start = time.monotonic()
    results.close()
    assert time.monotonic() - start < 20
    assert multiprocessing.active_children() == []


def test_an_interrupt_is_the_parents_alone() -> None:
    def interrupted(job: int) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return job

    assert all(isinstance(result, tuple) for result in done(2, range(4), interrupted).values())


def test_they_end_when_the_parent_is_killed(tmp_path: Path) -> None:
    code = f"""
import os, sys, time
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from grader.run.lanes import in_lanes
def work(job):
    open(os.path.join({str(tmp_path)!r}, str(os.getpid())), "w").close()
    time.sleep(0.5)
for _ in in_lanes(2, range(1000), lambda: (work, lambda: None)): pass
"""
    import subprocess

    parent = subprocess.Popen([sys.executable, "-c", code])
    assert until(lambda: len(list(tmp_path.iterdir())) >= 2, 30)
    parent.kill()
    parent.wait()
    lanes = [int(file.name) for file in tmp_path.iterdir()]
    assert len(lanes) == 2
    assert until(lambda: not alive(lanes), 30)
