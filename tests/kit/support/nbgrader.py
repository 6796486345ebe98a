"""Commands of nbgrader, each in a process that is forked off one in which all is imported.

An import takes longer than most of the commands.
"""

import atexit
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.kit.support.checkout import ROOT

SECONDS = 400  # that one command may take
FORKS = """
import json, os, signal, sys
from nbgrader.apps import NbGraderApp
import nbgrader.api, nbgrader.exchange
for line in sys.stdin:
    folder, words, environment, said, seconds = json.loads(line)
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        os.chdir(folder)
        os.environ.update(environment)
        file = os.open(said, os.O_WRONLY | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(file, stream)
        sys.argv = ["nbgrader", *words]
        NbGraderApp.launch_instance()
        sys.exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""


@cache
def _forks() -> subprocess.Popen[str]:
    """The process that has imported nbgrader; it ends with the tests."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    given = {"PATH": path, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen(
        [sys.executable, "-c", FORKS],
        env={**os.environ, **given},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(process.communicate)
    return process


def nbgrader(folder: Path, *words: str, fails: bool = False, **environment: str) -> str:
    """Type `nbgrader ...` in a folder; what it says."""
    forks = _forks()
    assert forks.stdin is not None and forks.stdout is not None
    with TemporaryDirectory() as place:
        said = Path(place) / "said"
        command = [str(folder), words, environment, str(said), SECONDS]
        print(json.dumps(command), file=forks.stdin, flush=True)
        ended = int(forks.stdout.readline())
        text = said.read_text(encoding="utf-8")
    assert bool(ended) == fails, text
    return text
