"""Hostile folders and notebooks, handed in among honest ones and graded by one engine.

What becomes of each odd file by itself is in read/test_submission.py. The course is the tiny one.
"""

import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader.engine import Engine, Request, with_engine
from grader.read.submission import read_submission
from grader.run.solutions import solution_files
from grader.run.worker.scratch import remove_tree
from grader.types.errors import SubmissionFileError
from grader.types.report import Report
from grader.types.submission import Submission
from tests.kit.support.checkout import TINY
from tests.kit.support.files import a_socket, deep_folders, notebook, write_files

RIGHT = solution_files(TINY)
FIRST = "moving_average.py"
SEED = 2
SECRET = "what_nobody_may_read"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux locks the worker")


def link(name: str, target: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target.format(root=TINY.root, folder=folder))

    return make


def instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Something else in the place of the first file."""

    def change(folder: Path) -> None:
        (folder / FIRST).unlink()
        make(folder / FIRST)

    return change


def device(path: Path) -> None:
    try:
        os.mknod(path, 0o20666, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("only root makes devices")


def odd_names(folder: Path) -> None:
    for name in (b"\x1b[2J.py", b"\xff\xfe.py", b"a\nb.py", b"-rf.py", b"'; true.py", b"%s{}.py"):
        with open(os.path.join(os.fsencode(folder), name), "wb") as file:
            file.write(b"raise SystemExit('not asked for')")


def others_modules(folder: Path) -> None:
    for name in ("numpy", "json", "os", "sitecustomize", "conftest", "pytest", "grader"):
        (folder / f"{name}.py").write_text("raise SystemExit('taken')")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --version\n")
    (folder / "pyvenv.cfg").write_text("home = /nowhere\n")
    (folder / "course.toml").write_text("schema = 1\n")


@dataclass(frozen=True)
class Handed:
    """What is made of a folder of right answers; the points, or what is said where it is refused.

    With `file` that file of the folder is what is handed in.
    """

    make: Callable[[Path], None]
    worth: float | str
    file: str = ""


def cells(*sources: object) -> Handed:
    """A notebook, which is worth nothing."""

    def make(folder: Path) -> None:
        write_files(folder, {"it.ipynb": notebook(*sources)})

    return Handed(make, 0, "it.ipynb")


HANDED = {
    "a link to the solution": Handed(link(FIRST, "{root}/solutions/" + FIRST), 0),
    "a link to a device": Handed(link(FIRST, "/dev/zero"), 0),
    "a link to itself": Handed(link(FIRST, FIRST), 0),
    "a link to a folder": Handed(link("more", "{root}/solutions"), 10),
    "a link to its own folder": Handed(link("more", "{folder}"), 10),
    "a link to the secret": Handed(link("secret.py", "{folder}/../secret.py"), 10),
    "a pipe": Handed(instead(os.mkfifo), 0),
    "a device": Handed(instead(device), 0),
    "a socket": Handed(instead(a_socket), 0),
    "a folder": Handed(instead(Path.mkdir), 0),
    "deep folders": Handed(lambda folder: deep_folders(folder, 1200), "has too many folders"),
    "odd names": Handed(odd_names, 10),
    "other modules' names": Handed(others_modules, 10),
    "a notebook of cells of anything": cells(
        *(None, 5, [1, "x"], {"a": 1}, "%%bash\nid", "!id", "?", "\x00", "\ud800")
    ),
    "a notebook that grades itself": cells(
        "from grader.notebook import grade_here\ngrade_here = print", "exit()"
    ),
}
# Python takes gigabytes and minutes to parse it.
GREEDY = "if 0:\n    import " + "a." * 100_000 + "b"
IMPORTS_IT = b"try:\n    import secret\nexcept ImportError:\n    secret = None\n"


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Report | str, Report]]:
    """The report on each, or why it is refused, and on an honest folder after it."""

    def one(engine: Engine, path: Path) -> Report | str:
        try:
            submission = read_submission(path)
        except SubmissionFileError as error:
            return str(error)
        return engine.grade(Request(submission, TINY.stages, SEED))

    def body(engine: Engine) -> dict[str, tuple[Report | str, Report]]:
        found = {}
        for number, (name, handed) in enumerate(HANDED.items()):
            place = tmp_path_factory.mktemp(f"of{number}")
            (place / "secret.py").write_text(f"{SECRET} = 1\n", encoding="utf-8")
            folder = write_files(place / "handed", {**RIGHT, FIRST: IMPORTS_IT + RIGHT[FIRST]})
            try:
                handed.make(folder)
            except pytest.skip.Exception:
                continue
            honest = engine.grade(Request(Submission("honest", RIGHT), TINY.stages, SEED))
            found[name] = (one(engine, folder / handed.file), honest)
            remove_tree(str(folder))  # pytest's own would not come to its end
        return found

    return with_engine(TINY, TINY.stages, "cpu", body)


@pytest.mark.parametrize("name", HANDED)
def test_it_gets_what_it_is_worth_and_others_their_points(
    graded: Mapping[str, tuple[Report | str, Report]], name: str
) -> None:
    if name not in graded:
        pytest.skip("only root makes devices")
    result, honest = graded[name]
    worth = HANDED[name].worth
    if isinstance(worth, str):
        assert isinstance(result, str) and worth in result
    else:
        assert isinstance(result, Report)
        assert result.score == (worth or result.score) and (worth or result.score < 10)
        assert SECRET not in repr(result)
    assert honest.score == 10


@pytest.mark.slow
def test_source_that_takes_gigabytes_to_read_costs_the_grader_nothing() -> None:
    """One is in a notebook with a wrong answer, one has a cell that ends its process, too.

    More such source is read in run/test_reader.py.
    """
    wrong = "def moving_average(values, width):\n    return values + 1"
    right = [RIGHT[f"{stage.slug}.py"].decode() for stage in TINY.stages[1:]]
    right = [text.replace("from moving_average import", "# ") for text in right]
    handed = [
        (wrong, GREEDY, *right, GREEDY),
        (wrong, GREEDY, *right, "import os\nos._exit(0)"),
    ]

    def body(engine: Engine) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for cells in handed:
            start = time.monotonic()
            request = Request(Submission("greedy", {}, cells=cells), TINY.stages, SEED)
            assert engine.grade(request).score < 10
            assert time.monotonic() - start < 150
            honest = engine.grade(Request(Submission("honest", RIGHT), TINY.stages, SEED))
            assert honest.score == 10
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert after - before < 200 << 10

    with_engine(TINY, TINY.stages, "cpu", body)


# --- questions to the references ---------------------------------------------------------------

# The first stage is wrong, so the second is run again with the course's own answering for it: then
# its worker may ask, and asks for more than it should.
WRONG = b"def moving_average(values, width):\n    return values\n"
ASKS = """
import gc, sys
import numpy as np
from moving_average import moving_average

wire = sys.modules["grader.run.worker.wire"]

def ask(header):
    channel = next(o for o in gc.get_objects() if type(o).__name__ == "Channel")
    channel.send(wire.Frame({{"ask": True, **header}}))
    return channel.receive().header

def smooth(values, width, times=1):
    if "values" in moving_average.__code__.co_varnames:
        return values  # not the course's own yet
    raise RuntimeError(f"HEARD {{ask({header})}}")
"""
QUESTIONS = {
    "a function that it has not": "{'op': 'call', 'target': {'function': 'open'}}",
    "an import": "{'op': 'call', 'target': {'function': '__import__'}, 'args': {'tuple': ['os']}}",
    "an attribute": "{'op': 'call', 'target': {'object': 0, 'method': '__globals__'}}",
    "another submission": "{'op': 'load', 'files': {'mine.py': 'x = 1'}, 'script': None}",
    "its end": "{'op': 'end', 'pid': 1, 'grace': 0}",
    "a copy": "{'op': 'copy'}",
    "something before": (
        "{'op': 'call', 'before': [{'target': {'function': '__import__'}, 'args': ['os']}],"
        " 'target': {'function': 'moving_average'}, 'args': {'tuple': []}, 'kwargs': {'dict': []}}"
    ),
    "a backward pass of nothing": "{'op': 'backward', 'call': 99, 'gradients': {'list': []}}",
    "nothing": "{}",
    "a function that is a list": "{'op': 'call', 'target': {'function': []}}",
}


@pytest.fixture(scope="module")
def answers() -> Mapping[str, tuple[Report, Report]]:
    def body(engine: Engine) -> dict[str, tuple[Report, Report]]:
        found = {}
        for name, header in QUESTIONS.items():
            own = ASKS.format(header=header).encode()
            files = {**RIGHT, FIRST: WRONG, "smooth.py": own}
            asked = engine.grade(Request(Submission("asks", files), TINY.stages[:2], SEED))
            honest = engine.grade(Request(Submission("honest", RIGHT), TINY.stages, SEED))
            found[name] = (asked, honest)
        return found

    return with_engine(TINY, TINY.stages, "cpu", body)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_worker_learns_nothing_of_a_solution(
    answers: Mapping[str, tuple[Report, Report]], name: str
) -> None:
    asked, honest = answers[name]
    told = repr(asked)
    assert asked.stages[1].score < 4
    solution = [line.strip() for line in RIGHT[FIRST].decode().splitlines() if len(line) > 30]
    code = [line for line in solution if not line.startswith(('"', "def", ">>>", "import"))]
    assert code and not [line for line in code if line in told]
    assert "references.py" not in told and "grader/" not in told
    assert honest.score == 10
