"""Whatever a file or a reply holds, its reader returns a value or raises one of its own errors.

`corpus/` keeps every input that once did; see CONTRIBUTING.md.
"""

import gzip
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from grader.run.stopping import stopped_after
from tests.kit.fuzz import readers, worker
from tests.kit.fuzz.fits import misfit
from tests.kit.fuzz.readers import Reader

READERS = readers.READERS | worker.READERS
CORPUS = Path(__file__).parent / "corpus"
KEPT = sorted(file for file in CORPUS.rglob("*") if file.is_file())
QUICK, LONG = 8, 150  # inputs of one reader
ASKED_FOR = os.environ.get("FUZZ_EXAMPLES")  # this many, and different ones each time
CPU_SECONDS = 5.0  # of this process for one input, which takes milliseconds
WALL_SECONDS = 60.0  # an input that takes longer counts as endless
LONGEST_ERROR = 400_000  # characters
MOST_MEMORY = 600 << 20  # bytes that all inputs of one reader may add to what this process takes


def holds(reader: Reader, data: bytes) -> None:
    """The reader gives what its type says or raises one of its errors, and does so soon."""
    start = time.process_time()
    wrong = ""
    with TemporaryDirectory() as folder, stopped_after(WALL_SECONDS):
        try:
            wrong = misfit(reader.read(data, Path(folder)), reader.gives)
        except reader.errors as error:
            if not 0 < len(str(error)) <= LONGEST_ERROR:
                wrong = f"an error of {len(str(error))} characters"
    assert not wrong
    assert time.process_time() - start < CPU_SECONDS


def tried(name: str, examples: int, failing: Path, *, fresh: bool = False) -> int:
    """Try this many `examples`, new ones each time if `fresh`; returns how many were tried.

    The smallest input that fails is written to the folder `failing`.
    """
    count = 0

    @settings(
        max_examples=examples,
        derandomize=not fresh,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        print_blob=False,
    )
    @given(data=READERS[name].inputs.map(Input))
    def one(data: Input) -> None:
        nonlocal count
        count += 1
        try:
            holds(READERS[name], data)
        except BaseException:
            (failing / "input").write_bytes(data)
            raise

    one()
    return count


class Input(bytes):
    """An input; the output of a test shows only its length."""

    def __repr__(self) -> str:
        return f"<{len(self)} bytes: see the file `input` in the test's folder>"


@pytest.mark.parametrize("file", KEPT, ids=lambda file: str(file.relative_to(CORPUS)))
def test_an_input_that_once_failed_is_read_or_refused(file: Path) -> None:
    data = file.read_bytes()
    name = file.parent.name.replace("_", " ")
    holds(READERS[name], gzip.decompress(data) if file.suffix == ".gz" else data)


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_input_is_read_or_refused(name: str, tmp_path: Path) -> None:
    assert tried(name, QUICK, tmp_path) >= QUICK


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_damaged_inputs_are_read_or_refused(name: str, tmp_path: Path) -> None:
    before = _most_memory()
    count = tried(name, int(ASKED_FOR or LONG), tmp_path, fresh=ASKED_FOR is not None)
    grown = _most_memory() - before
    print(f"{name}: {count} inputs tried, {grown >> 20} MiB more in use")
    assert count >= LONG
    assert grown < MOST_MEMORY


def _most_memory() -> int:
    """The most bytes that this process has taken; 0 if the system does not say."""
    if sys.platform == "win32":
        return 0
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10
