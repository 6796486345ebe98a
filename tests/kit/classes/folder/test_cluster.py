"""A Dask cluster gives the results that this machine gives, and may lose workers meanwhile."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.classes.dask_cluster import Cluster
from tests.kit.classes.folder_class import NO_ERROR, ONE_TOO_FEW, RIGHT, hand_in, verdicts
from tests.kit.support.checkout import ROOT, run_python
from tests.kit.support.processes import descendants, until
from tests.kit.support.tiny import copy_tiny

pytest.importorskip("distributed", reason="Dask is not installed")

COUNT = 60
SLOW = RIGHT.replace("    return", "    __import__('time').sleep(1.9)\n    return")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_tiny(tmp_path_factory.mktemp("cluster") / "course").root


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    folder = tmp_path / "dask"
    folder.mkdir()
    cluster = Cluster(folder)
    yield cluster
    cluster.close()


@pytest.mark.slow
def test_a_worker_killed_midway_costs_only_what_it_was_doing(
    course: Path, cluster: Cluster, tmp_path: Path
) -> None:
    folder = tmp_path / "submissions"
    answers = (RIGHT, ONE_TOO_FEW, NO_ERROR)
    own = {f"s{n:03}": f"{answers[n % 3]}\nN = {n}\n" for n in range(COUNT)}  # no two the same
    hand_in(folder, **own | {"s000": SLOW})
    words = ["class", str(folder), "--course", str(course), "--seed", "5"]
    limit = ["--seconds-per-submission", "2.5", "--out"]
    command = [sys.executable, "-m", "grader", *words, *limit]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*command, str(tmp_path / "here")], env=environment, check=True)

    out = tmp_path / "there"
    graded = subprocess.Popen([*command, str(out), "--dask", cluster.address], env=environment)
    # It has started the process of a batch.
    assert until(lambda: descendants(cluster.workers[0].pid), 120)
    assert graded.poll() is None
    os.killpg(cluster.workers[0].pid, signal.SIGKILL)
    assert graded.wait(timeout=300) == 0
    pairs = list(zip(verdicts(out), verdicts(tmp_path / "here"), strict=True))
    assert len(pairs) == COUNT
    assert all("all of its 2.5 seconds" in str(slow) for slow in pairs.pop(0))
    assert next((pair for pair in pairs if pair[0] != pair[1]), None) is None

    told = subprocess.run(
        [sys.executable, "-c", HISTORY, cluster.address], capture_output=True, check=True
    )
    history = json.loads(told.stdout)
    assert history["memory"] == COUNT  # each is graded once
    assert COUNT < history["processing"] <= COUNT + 2  # it was doing one, and had the next


# How often a job came to each state, from a process of its own as its client's threads live on.
HISTORY = """
import json, sys
from collections import Counter
from distributed import Client

def states(dask_scheduler):
    log = dask_scheduler.transition_log
    return Counter(entry.finish for entry in log if "grade_job" in entry.key)

with Client(sys.argv[1], timeout=20) as client:
    print(json.dumps(client.run_on_scheduler(states)))
"""


# In a process of its own, as a client's threads live on: whoever forks later must have but one.
IMPATIENT = """
import sys
import grader.classes.folder.cluster
from grader.command.main import main
grader.classes.folder.cluster._ANSWER_SECONDS = 1
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_without_a_scheduler_it_says_so(course: Path, tmp_path: Path) -> None:
    hand_in(tmp_path / "submissions", ann=RIGHT)
    words = ["class", str(tmp_path / "submissions"), "--course", str(course)]
    words += ["--out", str(tmp_path / "out"), "--dask", "tcp://127.0.0.1:9"]
    done = run_python("-c", IMPATIENT, *words)
    assert done.returncode == 2
    assert "no scheduler answers" in done.stderr
