"""Submissions made to look like another one's code: everybody gets what is theirs all the same.

Code that is known to be right, or not begun, is not run again for another of the class. Each attack
here looks like an honest answer to who looks it through, and does something else when it is run.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import pytest

from grader.classes.sharing.earned import Earned
from grader.engine import Engine, Request, with_engine
from grader.types.report import Report
from grader.types.submission import Submission
from tests.kit.support.checkout import TINY

GRADER = Path(__file__).parents[3] / "grader"
STAGES = TINY.stages[:1]
FIRST = STAGES[0].file_name
HEAD = "import numpy as np\n\ndef moving_average(values, width):\n"
BODY = (
    "    if not 1 <= width <= len(values):\n        raise ValueError('width')\n"
    "    means = np.convolve(values, np.ones(width), 'valid')\n    return means / width\n"
)
RIGHT = HEAD + BODY

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux locks the worker")


@dataclass(frozen=True)
class Twins:
    """An honest answer and the hostile one that looks like it."""

    honest: Submission
    hostile: Submission


def files(source: str | bytes, **others: str) -> Submission:
    data = source if isinstance(source, bytes) else source.encode()
    more = {f"{name.replace('__in__', '/')}.py": text.encode() for name, text in others.items()}
    return Submission("files", {FIRST: data, **more})


def script(source: str | bytes) -> Submission:
    data = source if isinstance(source, bytes) else source.encode()
    return Submission("a script", {"mine.py": data}, script="mine.py")


def notebook(*cells: str) -> Submission:
    return Submission("a notebook", {}, cells=cells)


def unwritten(encoding: str, newline: str) -> bytes:
    """The right answer, with a comment that is code to who reads it in that encoding."""
    comment = f"    # {newline}    raise NotImplementedError\n"
    return f"# coding: {encoding}\n{HEAD}{comment}{BODY}".encode()


IMPORTS = f"from aid import by\n{HEAD}{BODY.replace('means / width', 'by(means, width)')}"
DIVIDES, IDLES = "def by(x, n): return x / n\n", "def by(x, n): return x\n"


def with_default(name: str) -> str:
    return (
        "import numpy as np\n\ndef mean(x, by): return x / by\ndef total(x, by): return x\n"
        f"def moving_average(values, width, to={name}):\n"
        "    if not 1 <= width <= len(values):\n        raise ValueError('width')\n"
        f"    {name} = np.convolve(values, np.ones(width), 'valid')\n    return to({name}, width)\n"
    )


def in_a_class(mean: str) -> str:
    """An average whose divisor has a name that Python changes in a class."""
    return (
        "import numpy as np\n\n_A__wide = 1\n\nclass A:\n    def mean(self, values, wide):\n"
        f"        {mean} = wide\n"
        "        return np.convolve(values, np.ones(wide), 'valid') / _A__wide\n\n"
        "def moving_average(values, width):\n    if not 1 <= width <= len(values):\n"
        "        raise ValueError('width')\n    return A().mean(values, width)\n"
    )


def by_a_name(variable: str) -> str:
    """An average that is one if a variable has the right name, as the text of an error tells."""
    return RIGHT + (
        "    return means / width\n\nright = moving_average\n\n"
        "def moving_average(values, width):\n    told = ''\n    try:\n"
        f"        if width is None:\n            {variable} = 1\n        {variable} + 1\n"
        "    except NameError as error:\n        told = repr(error)\n"
        "    return right(values, width) * ('good' in told)\n"
    )


COUNTS = RIGHT.replace("width):", "width, seen=[0]):\n    seen[0] += len(values) == 99").replace(
    "means / width", "means / (width + (seen[0] > 0))"
)
ONLY_AS_A_FILE = (
    f"{HEAD}    if __name__ == 'submission':\n        raise NotImplementedError\n{BODY}"
)
LAZY = "from __future__ import annotations\n"
ANNOTATED = RIGHT.replace("width)", "width: int)", 1).replace(
    "means / width", "means / (width if moving_average.__annotations__['width'] == 'int' else 1)"
)
BY_A_TEXT = 'text = """\n"""\n' + RIGHT.replace("means / width", "means / width / len(text)")
TOO_MANY_DIGITS = f"number = 0x{'f' * 5000}\n"
SETS_MISSING_LAYERS = """
import sys
frame = sys._getframe()
while frame:
    for thing in list(frame.f_locals.values()):
        if type(thing).__name__ in ("StageServer", "_Server"):
            thing._missing = ("landlock",)
    frame = frame.f_back
"""
# Cells that stand after the right answer, and what they do to it.
AFTER: Mapping[str, str] = {
    "a number of too many digits beside other code": (
        f"{TOO_MANY_DIGITS}def moving_average(*_): pass\n"
    ),
    "an attribute in a pattern": (
        "def tail(): pass\nmatch tail:\n"
        "    case object(__globals__=names): names['moving_average'] = tail\n"
    ),
    "an import that is assigned to": "import numpy as np\nclass Other: ones = print\nnp = Other\n",
    "a method with another object": (
        "class A:\n    def put(self): self.ones = self.zeros\nA.put(np)\n"
    ),
    "attributes by their names": (
        "import functools\nclass A: ones = np.zeros\n"
        "functools.update_wrapper(np, A, assigned=('ones',), updated=())\n"
    ),
    "code in a text": "np.testing.runstring('import numpy; numpy.ones = numpy.zeros', {})\n",
    "another cell that writes over a library": (
        "def change(of):\n    of.ones = of.zeros\nchange(np)\n"
    ),
    "the same by the name of self": "def change(self):\n    self.ones = self.zeros\nchange(np)\n",
    "the same by setattr on self": (
        "def put(self, n, v):\n    setattr(self, n, v)\nput(np, 'ones', np.zeros)\n"
    ),
    "the same by a loop": "def f(m):\n    for m.ones in [np.zeros]: pass\nf(np)\n",
    "the same by an annotation": (
        "import typing\ndef f(x: 'exec(\"import numpy; numpy.ones = numpy.zeros\")'): pass\n"
        "typing.get_type_hints(f)\n"
    ),
    "the names of all code, by a generator": (
        "names = (x for x in '').gi_frame.f_globals\nnames.update(np=None)\n"
    ),
    "a state that a copy gives": (
        "import copy\nclass A:\n    def __reduce_ex__(self, protocol):\n"
        "        return (lambda: np), (), {'ones': np.zeros}\ncopy.copy(A())\n"
    ),
    "bytes that are code to a library": (
        "import numpy.lib.format as form\nclass A:\n    def __init__(self):\n"
        "        self.left = form.magic(1, 0) + b'v\\x00' + head.ljust(117) + b'\\n' + code\n"
        "    def read(self, n):\n        now = self.left[:n]\n"
        "        self.left = self.left[n:]\n        return now\n    def readline(self):\n"
        "        return self.read(self.left.index(b'\\n') + 1)\n"
        "head = b\"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\"\n"
        "code = b\"cbuiltins\\nexec\\n(S'import numpy; numpy.ones = numpy.zeros'\\ntR.\"\n"
        "form.read_array(A(), allow_pickle=True)\n"
    ),
}
TWINS: Mapping[str, Twins] = {
    **{name: Twins(notebook(RIGHT), notebook(RIGHT, cell)) for name, cell in AFTER.items()},
    "a number of too many digits in a file that is imported": Twins(
        files(IMPORTS, aid=DIVIDES), files(IMPORTS, aid=TOO_MANY_DIGITS + IDLES)
    ),
    "the name of a variable that an error tells": Twins(
        notebook(by_a_name("good")), notebook(by_a_name("evil"))
    ),
    "Python's own functions": Twins(
        notebook(RIGHT), notebook("__builtins__ = {'__import__': __import__}\n", RIGHT)
    ),
    "a state that a call changes": Twins(
        notebook(COUNTS), notebook(COUNTS, "moving_average(np.ones(99), 3)\n")
    ),
    "a comment that is code, by the file's encoding": Twins(
        files(RIGHT), files(unwritten("unicode_escape", "\\u000a"))
    ),
    "the same in UTF-7": Twins(files(RIGHT), files(unwritten("utf-7", "+AAo-"))),
    "the same in one file of all stages": Twins(
        script(RIGHT), script(unwritten("raw_unicode_escape", "\\u000a"))
    ),
    "an encoding in which it is nothing": Twins(files(RIGHT), files("# coding: cp500\n" + RIGHT)),
    "an encoding that its first bytes deny": Twins(
        files(RIGHT), files(b"\xef\xbb\xbf# coding: latin-1\n" + RIGHT.encode())
    ),
    "bytes that are no text": Twins(
        files(f"{RIGHT}text = '\ufffd'\n"), files(RIGHT.encode() + b"text = '\xff'\n")
    ),
    "a line end that only Python counts": Twins(
        files(BY_A_TEXT), files(BY_A_TEXT.replace('\n"', '\r\r\n"'))
    ),
    "what ends badly, as no cell minds": Twins(
        notebook(RIGHT + "1 / 0\n"), files(RIGHT + "1 / 0\n")
    ),
    "a name that cells alone have": Twins(
        notebook("display(3)\n" + RIGHT), files("display(3)\n" + RIGHT)
    ),
    "a name by which it sees how it is run": Twins(files(ONLY_AS_A_FILE), script(ONLY_AS_A_FILE)),
    "a default of a variable's name": Twins(
        notebook(with_default("mean")), notebook(with_default("total"))
    ),
    "a name that is another one in a class": Twins(
        notebook(in_a_class("__wide")), notebook(in_a_class("__other"))
    ),
    "a package that takes the place of a file": Twins(
        files(IMPORTS, aid=DIVIDES), files(IMPORTS, aid=DIVIDES, aid__in____init__=IDLES)
    ),
    "an annotation that is evaluated": Twins(notebook(LAZY, ANNOTATED), notebook(ANNOTATED, LAZY)),
    "the same after an import that fails": Twins(
        notebook(f"{LAZY}print(3)\n", ANNOTATED), notebook(f"def f(x, x): pass\n{LAZY}", ANNOTATED)
    ),
}


def told(report: Report) -> object:
    """A report as all channels show it, but for the time that its checks took."""
    return report.notes, [
        (stage.status, stage.score, [(c.id, c.outcome, c.score, c.message) for c in stage.checks])
        for stage in report.stages
    ]


@pytest.fixture(scope="module")
def spoken() -> Sequence[Report]:
    """Three honest submissions after one that sets what is said of the machine."""

    def body(engine: Engine) -> Sequence[Report]:
        with Earned(shared=False) as earned:
            evil = notebook(RIGHT, TOO_MANY_DIGITS + SETS_MISSING_LAYERS)
            return [
                engine.grade(Request(each, STAGES, seed=11), shared=earned.of)
                for each in (evil, *[notebook(RIGHT)] * 3)
            ]

    return with_engine(TINY, STAGES, "cpu", body)


@pytest.fixture(scope="module")
def verdicts() -> Mapping[str, list[tuple[object, object]]]:
    """What each of the twins gets by itself and in a class, whichever comes first."""

    def body(engine: Engine) -> Mapping[str, list[tuple[object, object]]]:
        engine.rehearse(STAGES, 11)  # as for a class
        return {name: list(of(engine, twins)) for name, twins in TWINS.items()}

    def of(engine: Engine, twins: Twins) -> Iterator[tuple[object, object]]:
        requests = [Request(each, STAGES, seed=11) for each in (twins.honest, twins.hostile)]
        both = [(request, told(engine.grade(request))) for request in requests]
        for first, second in permutations(both):
            with Earned(shared=False) as earned:
                for request, alone in (first, first, second, second, first):
                    yield alone, told(engine.grade(request, shared=earned.of))

    return with_engine(TINY, STAGES, "cpu", body)


def test_what_one_submission_says_of_the_machine_is_in_no_report(spoken: Sequence[Report]) -> None:
    assert [report.notes for report in spoken] == [("seed 11",)] * 4


@pytest.mark.parametrize("name", TWINS)
def test_each_gets_in_a_class_what_it_gets_by_itself(
    name: str, verdicts: Mapping[str, list[tuple[object, object]]]
) -> None:
    for alone, among in verdicts[name]:
        assert among == alone
    honest, hostile = verdicts[name][0][0], verdicts[name][2][0]
    assert honest != hostile  # so that there is something to tell apart


CUT = re.compile(r"digest\(\)\[|digest_size=(?!32\b)|\b(?:md5|sha1|crc32|adler32|hash)\(")
# An author's record of a mutant, counters for the runs of similar answers, what random numbers are
# drawn from, and Python's own hash of keys that are compared as well: no points hang on them.
CUT_ALL_THE_SAME = {
    "authoring/mutants/making.py": 1,
    "classes/report/similarity.py": 1,
    "learning/repro/script.py": 1,
    "run/planning.py": 1,
    "run/worker/packing.py": 1,
}


def test_no_digest_is_cut() -> None:
    """Two answers that share 64 bits of a digest can be made in minutes on one machine."""
    found = {
        file.relative_to(GRADER).as_posix(): len(CUT.findall(file.read_text("utf-8")))
        for file in GRADER.rglob("*.py")
    }
    assert {name: count for name, count in found.items() if count} == CUT_ALL_THE_SAME
