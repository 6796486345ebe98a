"""A submission's source is looked through in a worker: places, names, and what it costs."""

import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.run.reader import Reader, SourceReader
from grader.run.workers import Interpreter
from grader.types.course import EntryPoint, Limits, Stage
from grader.types.submission import Submission

STAGE = Stage("fold", "Fold", 1, False, (), (EntryPoint("fold", ("any",)),), Path())

SHORT = '''"""Fold."""

def fold(sheet):
    """Fold it.

    Twice.
    """
    half = sheet // 2
    return half
'''
LONG = "def fold(sheet):\n" + "".join(f"    step_{n} = {n}\n" for n in range(9))
CLASS = """class Bird:
    def __init__(self):
        self.wings = 2

    def forward(self, wind):
        return wind * self.wings
"""


def place_of(submission: Submission, stage: Stage, target: str) -> str:
    return SourceReader(Reader(None), submission).place(stage, target)


def folder(source: str) -> Submission:
    return Submission("mine", {"fold.py": source.encode()})


RETURNS = LONG + "    if step_1:\n        return 1\n    return 2\n"
COMMENTED = "def fold(a):\n    # why\n\n    b = a\n    # and then\n    return b\n"
QUOTED = {
    "a short body without its docstring": (
        *(SHORT, "fold"),
        "lines 8 to 9, in fold\n       8  half = sheet // 2\n       9  return half",
    ),
    "of a long body only the lines that return": (
        *(RETURNS, "fold"),
        "lines 2 to 13, in fold\n      12      return 1\n      13  return 2",
    ),
    "no comments and empty lines": (
        *(COMMENTED, "fold"),
        "lines 4 to 6, in fold\n       4  b = a\n       6  return b",
    ),
    "a constructor": (CLASS, "Bird.__init__", "line 3, in __init__\n       3  self.wings = 2"),
    "a method": (CLASS, "Bird.forward", "line 6, in forward\n       6  return wind * self.wings"),
    "a missing method": (CLASS, "Bird.missing", "line 1, in Bird\n       1  class Bird:"),
}


@pytest.mark.parametrize("source, target, lines", QUOTED.values(), ids=QUOTED)
def test_what_is_quoted(source: str, target: str, lines: str) -> None:
    assert place_of(folder(source), STAGE, target) == f"\n  look at   fold.py, {lines}"


def test_the_last_definition_counts() -> None:
    twice = "def fold(a):\n    return 1\n\ndef fold(a):\n    return 2\n"
    assert "line 5" in place_of(folder(twice), STAGE, "fold")


def test_what_only_wraps_a_definition_hides_no_place() -> None:
    assert "line 2" in place_of(
        folder("def fold(a):\n    return 1\nfold = cache(fold)"), STAGE, "fold"
    )


def test_in_a_notebook_it_is_the_last_cell_that_defines_it() -> None:
    cells = ("def fold(a):\n    return 1", "x = 1", "%%grade fold\ndef fold(a):\n    return 2", "(")
    found = place_of(Submission("book", {}, cells=cells), STAGE, "fold")
    assert found == "\n  look at   code cell 3, line 3, in fold\n       3  return 2"
    rebound = Submission("book", {}, cells=(*cells, "fold = lambda a: 3"))
    assert place_of(rebound, STAGE, "fold") == ""


@pytest.mark.parametrize("magic", ["%matplotlib inline", "!pip list", "%%time"])
def test_a_cell_with_a_magic_is_not_passed_over(magic: str) -> None:
    cells = ("def fold(a):\n    return 1", f"%%grade fold\n{magic}\ndef fold(a):\n    return 2")
    found = place_of(Submission("book", {}, cells=cells), STAGE, "fold")
    assert found == "\n  look at   code cell 2, line 4, in fold\n       4  return 2"


def test_windows_line_ends_and_a_byte_order_mark_shift_no_line() -> None:
    source = b"\xef\xbb\xbf" + SHORT.replace("\n", "\r\n").encode()
    found = place_of(Submission("mine", {"fold.py": source}), STAGE, "fold")
    assert "lines 8 to 9" in found and "\r" not in found


@pytest.mark.parametrize(
    "source",
    [
        *("", "fold = lambda a: a", "def (", "x = " + "(" * 500, "\0"),
        *("def fold(a):\n    return 1\nfold = lambda a: a", f"{CLASS}\nfold = Bird"),
    ],
)
def test_where_nothing_is_found_nothing_is_said(source: str) -> None:
    assert place_of(folder(source), STAGE, "fold") == ""


def test_what_is_quoted_is_safe_to_show() -> None:
    found = place_of(folder("def fold(a):\n    return '\x1b[2J\u202e'" + "x" * 999), STAGE, "fold")
    assert "\x1b" not in found and "\u202e" not in found


# --- by a worker ---------------------------------------------------------------------------------

# Python's parser takes gigabytes and minutes for the first, minutes for the second (3.11).
GREEDY = {
    "a long name": "if 0:\n    import " + "a." * 120_000 + "b\n",
    "a long f-string": "x = f'" + "{a}" * 80_000 + "'\n",
    "deep brackets": "x = " + "(" * 100_000 + ")" * 100_000,
    "magics": "%x\n" * 50_000,
    "a line of spaces": " " * 250_000 + "$",
}
FOLD = "def fold(a):\n    return a\n"


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    if sys.platform != "linux":
        pytest.skip("elsewhere this process reads by itself")
    with Interpreter((), Limits(memory_mb=512), gpu=False) as interpreter:
        yield Reader(interpreter)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if "brackets" in name else pytest.mark.slow) for name in GREEDY],
)
def test_source_that_takes_gigabytes_to_read_costs_nobody_else(reader: Reader, name: str) -> None:
    before, start = peak(), time.monotonic()
    cells = (FOLD, GREEDY[name], FOLD + GREEDY[name])
    source = SourceReader(reader, Submission("greedy", {}, cells=cells))
    source.place(STAGE, "fold")
    source.names(cells)
    assert peak() - before < 100
    assert time.monotonic() - start < 60
    assert "line 2, in fold" in SourceReader(reader, folder(FOLD)).place(STAGE, "fold")
    reader.close()


def peak() -> int:
    """The most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def test_a_worker_reads_for_many(reader: Reader) -> None:
    pids = set()
    for _ in range(3):
        source = SourceReader(reader, folder(SHORT))
        assert "lines 8 to 9" in source.place(STAGE, "fold")
        (names,) = source.names([SHORT]) or [None]
        assert names is not None and names.own == {"fold"}
        pids.add(reader._worker._pid)
    assert len(pids) == 1
    reader._worker.channel.close()
    assert "lines 8 to 9" in SourceReader(reader, folder(SHORT)).place(STAGE, "fold")


def test_after_a_look_without_end_there_is_no_other(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SourceReader(reader, folder(SHORT))
    monkeypatch.setattr(reader, "ask", lambda about, seconds: None)
    assert source.place(STAGE, "fold") == ""
    monkeypatch.undo()
    assert source.place(STAGE, "Bird.forward") == "" and source.names([SHORT]) is None
