"""A course of numpy functions waits for torch nowhere: courses/tiny, run as a command.

In each run, importing torch is an error in the command's own process, which is the checker, and in
those forked off it. The submission looks for torch in its own: a worker has what the fork server
that it comes from had imported.
"""

import json
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.kit.classes.folder_class import results_of
from tests.kit.support.checkout import ROOT, TINY, run_python
from tests.kit.support.files import edit, write_files
from tests.kit.support.tiny import copy_tiny

WRONG = TINY.root / "exercises"

REFUSED = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            sys.stderr.write("somebody asks for torch\\n")
            raise ImportError("somebody asks for torch")

sys.meta_path.insert(0, Refused())
from grader.command.main import main
code = main(sys.argv[1:])
print(sorted(name for name in sys.modules if name.split(".")[0] == "torch"), file=sys.stderr)
raise SystemExit(code)
"""
LOOKS_AROUND = """

import sys as _sys

if {unless}"torch" in _sys.modules:
    raise RuntimeError("the worker has loaded " + ", ".join(sorted(_sys.modules)))
"""


def without_torch(*words: str | Path, course: Path, code: int) -> str:
    """What `grade` prints, in processes that cannot import torch."""
    done = run_python("-c", REFUSED, *words, "--course", course)
    assert done.stderr.splitlines()[-1:] == ["[]"], done.stderr
    assert "asks for torch" not in done.stderr
    assert done.returncode == code, done.stdout
    return done.stdout


def solutions(folder: Path, unless: str = "") -> Path:
    """The solutions, whose first file ends with an error if torch is there (or is not)."""
    shutil.copytree(TINY.root / "solutions", folder)
    with open(folder / "moving_average.py", "a", encoding="utf-8") as file:
        file.write(LOOKS_AROUND.format(unless=unless))
    return folder


def test_grading_reaches_full_marks(tmp_path: Path) -> None:
    out = without_torch(
        "--submission", solutions(tmp_path / "mine"), "--json", course=TINY.root, code=0
    )
    report = json.loads(out)
    assert (report["score"], report["bonus"]) == (10, 2)


def test_the_submission_would_see_torch(tmp_path: Path) -> None:
    mine = solutions(tmp_path / "mine", unless="not ")
    words = ("1", "--submission", mine, "--json")
    report = json.loads(without_torch(*words, course=TINY.root, code=1))
    assert "the worker has loaded" in json.dumps(report)


def test_a_mistake_is_diagnosed(tmp_path: Path) -> None:
    mine = solutions(tmp_path / "mine")
    file = mine / "moving_average.py"
    edit(file, "window.mean()", "window.sum()")
    report = json.loads(without_torch("--submission", mine, "--json", course=TINY.root, code=1))
    check = next(c for c in report["stages"][0]["checks"] if c["id"] == "moving_average.values")
    assert check["diagnosis"]["id"] == "average_sum"
    assert check["message"].splitlines()[:3] == [
        "The average is wrong at windows=0 (4 of 4 values, by up to 0.8)",
        "  call      moving_average([-0.9, -0.3, -0.9, -0.7, 0], 2)",
        *[line for line in check["message"].splitlines() if line.startswith("  expected")],
    ]
    assert report["stages"][1]["caused_by"] == "moving_average"


def test_a_mistake_that_nothing_explains_is_graded_and_so_is_what_the_code_keeps(
    tmp_path: Path,
) -> None:
    mine = solutions(tmp_path / "mine")
    answer = "return max("
    edit(mine / "roughness.py", answer, "return sum(v**3 + 7 for v in values) + 0 * max(")
    out = without_torch("roughness", "--submission", mine, course=TINY.root, code=1)
    assert "The largest step is wrong" in out
    edit(mine / "roughness.py", "def roughness", "calls = []\n\n\ndef roughness")
    kept = "calls.append(len(values)) or sum(calls[:-1]) + max("
    edit(mine / "roughness.py", "sum(v**3 + 7 for v in values) + 0 * max(", kept)
    out = without_torch("roughness", "--submission", mine, course=TINY.root, code=1)
    assert "keeps something" in " ".join(out.split())


def test_every_stage_is_proven(tmp_path: Path) -> None:
    copy = copy_tiny(tmp_path / "tiny").root  # `grade verify` writes a note beside the course
    course = json.loads(without_torch("verify", "--json", "--seeds", "2", course=copy, code=0))
    assert course["sound"]
    for proof in course["stages"]:
        known = {mistake["id"] for mistake in proof["misconceptions"]}
        assert len(known) >= 3
        assert {mistake["named"] for mistake in proof["misconceptions"]} == known


def test_a_class_is_graded(tmp_path: Path) -> None:
    handed_in = tmp_path / "class"
    solutions(handed_in / "ada")
    shutil.copytree(WRONG, handed_in / "bob")
    out = tmp_path / "out"
    without_torch(
        "class", handed_in, "--out", out, "--jobs", "2", "--similar", course=TINY.root, code=0
    )
    scores = {student: one["report"]["score"] for student, one in results_of(out).items()}
    assert scores == {"ada": 10, "bob": 0}


def test_a_trace_and_its_pictures_are_drawn(tmp_path: Path) -> None:
    mine = solutions(tmp_path / "mine")
    shown = without_torch("trace", "smooth", "--submission", mine, course=TINY.root, code=0)
    assert "twice" in shown
    picture = tmp_path / "picture.svg"
    words = ("heatmap", "smooth", "--submission", mine, "--out", picture)
    without_torch(*words, course=TINY.root, code=0)
    assert picture.read_text(encoding="utf-8").startswith("<?xml")


def test_the_notebook_for_nbgrader_is_released(tmp_path: Path) -> None:
    pytest.importorskip("nbgrader", reason="nbgrader is not installed")
    out = tmp_path / "nb"
    without_torch("release", "nbgrader", "--course-dir", out, course=TINY.root, code=0)
    notebook = (out / "source" / "smoothing" / "smoothing.ipynb").read_text(encoding="utf-8")
    assert "moving_average" in notebook and "torch" not in notebook


def test_the_student_bundle_is_released(tmp_path: Path) -> None:
    out = tmp_path / "copy.zip"
    without_torch("release", "student", "--out", out, course=TINY.root, code=0)
    names = zipfile.ZipFile(out).namelist()
    assert any(name.endswith("exercises/moving_average.py") for name in names)


# --- what travels ----------------------------------------------------------------------------

TRAVELS_COURSE = """
schema = 1
name = "travels"
title = "What travels"
preload = ["numpy"]

[[stages]]
slug = "carried"
title = "Give back what came"
points = 6
[stages.entry_points]
same = "any"
pair = "(array, number)"
table = "array"
total = "number"
applied = "array"
"""
TRAVELS_CHECKS = '''
import numpy as np
import pytest

VALUES = [
    np.zeros((2, 3), "float32"), np.arange(4), np.array([True, False]), np.array(2.5),
    np.zeros((0, 3)), np.array([1 + 2j]), np.arange(6).reshape(2, 3).T, np.arange(3, dtype="uint8"),
    np.ones(3, "float16"), "a text", "", 3, -0.5, True, None, float("inf"), [1, "two", [3.0]],
    (1, (2, [np.arange(2), ("x",)])), {"key": np.ones(1), "other": [None]},
]


def equal(one, other):
    if isinstance(one, np.ndarray):
        return type(other) is np.ndarray and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(equal(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other


@pytest.mark.points(1)
@pytest.mark.parametrize("number", range(len(VALUES)))
def test_same(submission, number):
    """What goes there comes back"""
    back = submission.same(VALUES[number])
    assert equal(VALUES[number], back), f"{VALUES[number]!r} came back as {back!r}"


@pytest.mark.points(1)
def test_pair(submission, rand):
    """Two values come as two"""
    values = rand(n=3)
    array, number = submission.pair(values)
    assert equal(np.asarray(values), array) and type(number) is int


@pytest.mark.points(1)
def test_table(submission, rand):
    """A table comes as an array"""
    assert submission.table(rand(n=2, m=3)).shape == (2, 3)


@pytest.mark.points(1)
def test_total(submission, rand):
    """A number of numpy's is a number"""
    values = rand(n=4)
    assert submission.total(values) == values.sum()


GIVEN = """
class Counter:
    def __call__(self):
        return 3

def twice(value):
    return 2 * value
"""


@pytest.mark.points(1)
def test_given(submission, rand):
    """What a check gives comes back as it went"""
    values = rand(n=2)
    assert submission.given(GIVEN, "Counter")() == 3
    assert submission.applied(submission.given(GIVEN, "twice"), values).tolist() == [
        2 * value for value in values.tolist()
    ]


@pytest.mark.points(1)
def test_device(submission, device):
    """The device is the processor"""
    assert submission.same(device) == "cpu"
'''
CARRIES = """
import numpy as np

def same(value):
    return value

def pair(values):
    return values, np.int64(len(values))

def table(values):
    return values

def total(values):
    return values.sum()

def applied(function, values):
    return function(values)
"""


# What is no array where one is due, or no number.
WRONG_KINDS = {
    ("table", 'np.array(["a"])'): "returned a numpy.ndarray (dtype <U1)",
    ("table", "np.array([None])"): "returned a numpy.ndarray (dtype object)",
    ("table", "values.tolist()"): "returned a list of 2",
    ("table", "(values, values)"): "returned a tuple of 2",
    ("table", "None"): "returned None: is a `return` missing?",
    ("table", "float(values[0, 0])"): "returned float ",
    ("table", "lambda: values"): "returned a function",
    ("table", "1 / 0"): "ZeroDivisionError: division by zero",
    ("total", "values"): "returned a numpy array of shape [4]",
    ("total", "values.any()"): "returned bool True",
    ("total", '"four"'): "returned str 'four'",
    ("total", "values.sum() * 1j"): "returned complex (",
}
Messages = Mapping[str, str]


@pytest.fixture(scope="module")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Messages]:
    """The messages of the checks, by name, for each of these answers: a class of them."""
    files = {
        "course.toml": TRAVELS_COURSE,
        "tests/checks/test_carried.py": TRAVELS_CHECKS,
        "solutions/carried.py": CARRIES,
    }
    course = write_files(tmp_path_factory.mktemp("carried"), files)
    sources = {"right": CARRIES}
    for name, body in WRONG_KINDS:
        sources[f"{name} {body}"] = f"{CARRIES}\n{name} = lambda values: {body}\n"
    submissions = [(f"s{n:02}", *item) for n, item in enumerate(sources.items())]
    for student, _, source in submissions:
        write_files(course / "class" / student, {"carried.py": source})
    out = course / "out"
    without_torch("class", course / "class", "--out", out, course=course, code=0)
    reports = {who: one["report"]["stages"][0] for who, one in results_of(out).items()}
    return {
        name: {check["id"].partition(".")[2]: check["message"] for check in reports[who]["checks"]}
        for who, name, _ in submissions
    }


def test_values_travel_both_ways_as_what_they_are(carried: Mapping[str, Messages]) -> None:
    names = ("same", "pair", "table", "total", "given", "device")
    assert carried["right"] == dict.fromkeys(names, "")


@pytest.mark.parametrize("name, body", WRONG_KINDS)
def test_what_is_no_array_and_no_number_is_refused_in_words(
    carried: Mapping[str, Messages], name: str, body: str
) -> None:
    message = carried[f"{name} {body}"][name]
    due = "expected  a numpy array" if name == "table" else "expected  a number"
    assert WRONG_KINDS[name, body] in message
    assert "ZeroDivision" in message or due in message


# --- how long it takes -----------------------------------------------------------------------


def processor_seconds(*words: str | Path) -> float:
    """What a command takes with all its processes, which is the same on a busy machine."""
    resource = pytest.importorskip("resource", reason="there is no such count on Windows")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run_python("-m", "grader", *words, cwd=ROOT, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return float(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


@pytest.mark.slow
def test_it_is_graded_in_a_fraction_of_the_time() -> None:
    def least(words: Sequence[str | Path]) -> float:
        return min(processor_seconds(*words) for _ in range(2))

    plain = least(["--course", TINY.root, "--submission", TINY.root / "solutions"])
    with_torch = least(["1", "--course", ROOT, "--submission", ROOT / "solutions"])
    assert plain < with_torch / 2
