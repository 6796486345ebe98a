"""One notebook has one verdict: from a live kernel, from the saved file, and in a class.

The course is the tiny one. What the notebooks define in ever other ways is right, or wrong in a way
that shows by its points whether all of their cells were run, in their order.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from grader.classes.folder.ledger import open_ledger
from grader.classes.nbgrader.feedback import comment
from grader.command.main import main
from grader.engine import Engine, Request, grade, with_engine
from grader.learning.notebook.builder import notebook_file
from grader.read.submission import parse_cells
from grader.types.report import Report, to_json
from grader.types.submission import Submission

pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

from tests.kit.classes.dask_cluster import Cluster
from tests.kit.classes.folder_class import grade_class, results_of
from tests.kit.learning.notebook.test_kernel import Kernel, kernel, points
from tests.kit.support.checkout import ROOT, TINY
from tests.kit.support.files import write_files
from tests.kit.support.nbgrader import nbgrader
from tests.kit.support.tiny import copy_tiny

pytestmark = pytest.mark.filterwarnings("ignore")

NP = "import numpy as np"
AVERAGE = """\
def moving_average(values, width):
    if not 1 <= width <= len(values):
        raise ValueError(width)
    return np.array([values[i : i + width].mean() for i in range(len(values) - width + 1)])"""
OWN = AVERAGE.replace("moving_average", "own")
CALLS_OWN = "def moving_average(values, width):\n    return own(values, width)"
SMOOTH = """\
def smooth(values, width, times=1):
    for _ in range(times):
        values = moving_average(values, width)
    return values"""
ROUGHNESS = "lambda v: float(max([abs(b - a) for a, b in zip(v, v[1:])], default=0))"
RIGHT = (NP, AVERAGE, SMOOTH)
DECORATOR = """\
import functools
def same(function):
    @functools.wraps(function)
    def called(*args, **kwargs):
        return function(*args, **kwargs)
    return called"""
FORGET = "import grader.notebook as n; [*n.sessions.values()][0]._cells.clear()"
# The cells of each notebook. Each is worth 10 points, 6 and 4, unless `WORTH` says otherwise.
SHAPES: Mapping[str, tuple[str, ...]] = {
    "plain": RIGHT,
    "a star import in another cell": ("from numpy import *", AVERAGE.replace("np.", ""), SMOOTH),
    "a star import in a block": (
        *("if True:\n    from numpy import *", AVERAGE.replace("np.", ""), SMOOTH),
    ),
    "a star import that replaces a builtin": (
        *("from numpy import *", NP, f"{AVERAGE} + sum(np.ones((2, 3)), axis=1).max() - 3", SMOOTH),
    ),
    "names by exec": (f"exec({NP!r})", f"exec({AVERAGE!r})", SMOOTH),
    "names by globals": (NP, OWN, "globals()['moving_average'] = own", SMOOTH),
    "names by setattr": (
        *(NP, OWN, "import sys", "setattr(sys.modules[__name__], 'moving_average', own)", SMOOTH),
    ),
    "a bonus by a lambda": (*RIGHT, f"roughness = {ROUGHNESS}"),
    "a bonus by exec": (*RIGHT, f"exec('roughness = {ROUGHNESS}')"),
    "a bonus in a block": (*RIGHT, f"try:\n    roughness = {ROUGHNESS}\nfinally:\n    pass"),
    "a lambda and a partial": (
        *(NP, OWN, "from functools import partial"),
        "turned = lambda width, values: own(values, width)",
        *("moving_average = lambda values, width: partial(turned, width)(values)", SMOOTH),
    ),
    "an import under another name": (
        *("from numpy import array as a", AVERAGE.replace("np.array", "a"), SMOOTH),
    ),
    "a decorator in another cell": (NP, DECORATOR, f"@same\n{AVERAGE}", SMOOTH),
    "a decoration in a later cell": (
        *RIGHT,
        "def twice(f):\n    return lambda v, w: 2 * f(v, w)",
        "moving_average = twice(moving_average)",
    ),
    "an older function that is kept": (
        *(NP, AVERAGE, "kept = moving_average", CALLS_OWN.replace("own", "kept"), SMOOTH),
    ),
    "a default that was taken before": (
        *(NP, "by = 1", AVERAGE.replace("width):", "width, by=by):", 1) + " * by", "by = 2"),
        SMOOTH,
    ),
    "a name that is deleted": (*RIGHT, "del moving_average"),
    "an import that is deleted": (*RIGHT, "del np"),
    "a helper that is defined later": (NP, CALLS_OWN, SMOOTH, OWN),
    "a method that is replaced later": (
        *(NP, "class Mean:\n    def of(self, values, width):\n        return values"),
        *("mean = Mean()", CALLS_OWN.replace("own", "mean.of"), SMOOTH, OWN),
        "Mean.of = lambda self, values, width: own(values, width)",
    ),
    "a table that is filled later": (
        *(NP, OWN, "known = {}", CALLS_OWN.replace("own", "known['f']"), SMOOTH),
        "known['f'] = own",
    ),
    "a list that a call fills": (
        *(NP, OWN, "known = []", CALLS_OWN.replace("own", "known[0]"), SMOOTH, "known.append(own)"),
    ),
    "a library that is changed": (*RIGHT, "keep = np.array", "np.array = lambda x: keep(x) + 1"),
    "a loop, a with and an if": (
        *(NP, "for scale in (2, 1): pass", "import contextlib"),
        *("with contextlib.nullcontext(0) as add: pass", "if True:\n    one = 1"),
        *(AVERAGE + " * scale * one + add", SMOOTH),
    ),
    "a walrus and a sum": (
        *(NP, "[last := n for n in range(2)]", "add = 0\nadd += 1", "add -= last"),
        *(AVERAGE + " + add", SMOOTH),
    ),
    "a match": (
        *(NP, "match 3:\n    case int(three):\n        one = three - 2", AVERAGE + " * one"),
        SMOOTH,
    ),
    "magics": (
        *("%precision 3\nfrom __future__ import annotations\nimport numpy as np", "?print"),
        *(f"%%time\n{AVERAGE}", f"%%capture out\n{SMOOTH}", "%time one = 1", "x = !true"),
    ),
    "what a cell takes from the future": (
        *("from __future__ import annotations", NP),
        *(AVERAGE.replace("values,", "values: Unheard,", 1), SMOOTH),
    ),
    "an await": (
        *(NP, "import asyncio\nasync def one(): return 1"),
        *("n = await one()\nawait asyncio.sleep(0)", AVERAGE + " * n", SMOOTH),
    ),
    "cells that fail": (NP, f"{AVERAGE}\n1 / 0", "oops()", SMOOTH),
    "a cell that cannot be read": (*RIGHT, "def oops(:"),
}
WORTH = {
    **{name: 12 for name in SHAPES if "bonus" in name},
    "a decoration in a later cell": 3,
    "a library that is changed": 3,
    "a name that is deleted": 0,
    "an import that is deleted": 0,
}


def saved(cells: tuple[str, ...]) -> bytes:
    code = [{"cell_type": "code", "source": cell, "outputs": [], "metadata": {}} for cell in cells]
    return json.dumps(notebook_file(code)).encode()


def submission(name: str) -> Submission:
    return Submission(name, {}, cells=parse_cells(saved(SHAPES[name]), name))


@pytest.fixture(scope="module")
def final() -> Mapping[str, Report]:
    """The report on each saved notebook."""

    def body(engine: Engine) -> dict[str, Report]:
        return {n: engine.grade(Request(submission(n), TINY.stages, seed=3)) for n in SHAPES}

    return with_engine(TINY, TINY.stages, "cpu", body)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    folder = tmp_path_factory.mktemp("live") / "course"
    with kernel(copy_tiny(folder).root) as there:
        assert there.run("%load_ext grader").outputs == []
        yield there


@pytest.mark.parametrize("name", SHAPES)
def test_a_kernel_that_has_run_a_notebook_gives_the_points_of_the_saved_one(
    there: Kernel, final: Mapping[str, Report], name: str
) -> None:
    worth = WORTH.get(name, 10)
    assert final[name].score + final[name].bonus == worth
    there.run(FORGET)
    for cell in SHAPES[name]:
        there.run(cell)
    there.run("grade_here()" if worth else 'grade_here("smooth")')
    live = points(there.report())
    listed = {slug for slug, *_ in live}
    assert live == [stage for stage in points(to_json(final[name])) if stage[0] in listed]
    assert sum(score for _, _, score, _ in live) == worth


@pytest.mark.parametrize("name", [name for name in SHAPES if "bonus" in name])
def test_a_bonus_stage_is_seen_however_it_is_defined(name: str) -> None:
    """Nothing is run for one that nobody has begun."""
    assert grade(TINY, Request(submission(name), TINY.stages, seed=3), "cpu").bonus == 2


def test_a_class_gets_the_same_points(final: Mapping[str, Report], tmp_path: Path) -> None:
    place, out = tmp_path / "class", tmp_path / "results"
    place.mkdir()
    for number, cells in enumerate(SHAPES.values()):
        (place / f"{number}.ipynb").write_bytes(saved(cells))
    assert grade_class(TINY.root, out, place, "--jobs", "1", "--seed", "3") == 0
    lines = results_of(out).values()
    found = {int(line["student"]): points(line["report"])[:2] for line in lines}
    wanted = [points(to_json(report))[:2] for report in final.values()]
    assert [found[number] for number in range(len(wanted))] == wanted


# --- every way of grading a class ------------------------------------------------------------

WRONG: Mapping[str, tuple[str, ...]] = {
    "the last window is left out": (NP, AVERAGE.replace(" + 1)", ")"), SMOOTH),
    "sums": (NP, AVERAGE.replace("mean", "sum"), SMOOTH),
    "no width is refused": (NP, AVERAGE.replace("not 1 <= width <= len(values)", "False"), SMOOTH),
    "it ends the process": (NP, AVERAGE, "import os\nos._exit(0)", SMOOTH),
    "nothing": (),
}
Verdicts = Mapping[tuple[str, str], tuple[float | None, str]]
"""The points of each student and stage, and the reasons as nbgrader's gradebook has them."""


def in_ledger(out: Path) -> Verdicts:
    with open_ledger(out, create=False) as ledger:
        return {
            (entry.student, stage.slug): (stage.score, comment(stage))
            for entry in ledger.latest()
            if entry.report is not None
            for stage in entry.report.stages
        }


def in_gradebook(root: Path) -> Verdicts:
    with closing(sqlite3.connect(root / "gradebook.db")) as db, db:
        rows = db.execute(
            "SELECT a.student_id, graded.name, g.auto_score, c.auto_comment "
            "FROM submitted_assignment a JOIN submitted_notebook n ON n.assignment_id = a.id "
            "JOIN grade g ON g.notebook_id = n.id JOIN base_cell graded ON graded.id = g.cell_id "
            "JOIN comment c ON c.notebook_id = n.id JOIN base_cell own ON own.id = c.cell_id "
            "WHERE own.name = graded.name || '-code'"
        )
        return {(student, slug): (score, words) for student, slug, score, words in rows}


@pytest.mark.slow
def test_every_way_of_grading_a_class_gives_the_same_points_and_reasons(tmp_path: Path) -> None:
    pytest.importorskip("nbgrader", reason="nbgrader is not installed")
    pytest.importorskip("distributed", reason="Dask is not installed")
    notebooks = [*[*SHAPES.values()][::3], *WRONG.values()]
    course = ["--course", str(TINY.root)]
    made, by_nbgrader = tmp_path / "class", tmp_path / "by nbgrader"
    assert main(["release", "nbgrader", *course, "--course-dir", str(made)]) == 0
    nbgrader(made, "generate_assignment", TINY.name)
    for number, cells in enumerate(notebooks):
        folder = made / "submitted" / f"s{number:02}" / TINY.name
        write_files(folder, {f"{TINY.name}.ipynb": saved(cells)})
    words = ["class", str(made / "submitted"), *course, "--seed", "3", "--out"]
    assert main([*words, str(tmp_path / "here"), "--jobs", "2"]) == 0
    (tmp_path / "dask").mkdir()
    cluster = Cluster(tmp_path / "dask")
    try:
        there = [*words, str(tmp_path / "there"), "--dask", cluster.address]
        command = [sys.executable, "-m", "grader", *there]  # else a client's threads would live on
        subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    finally:
        cluster.close()
    assert main(["class", *course, "--seed", "3", "--nbgrader", str(made), TINY.name]) == 0
    shutil.copytree(made, by_nbgrader)
    nbgrader(by_nbgrader, "autograde", TINY.name, "--force")
    verdicts = in_ledger(tmp_path / "here")
    assert {student for student, _ in verdicts} == {f"s{n:02}" for n in range(len(notebooks))}
    assert in_ledger(tmp_path / "there") == verdicts
    core = {key: verdict for key, verdict in verdicts.items() if key[1] != "roughness"}
    for root in (made, by_nbgrader):
        found = in_gradebook(root)
        assert {key: found[key] for key in core} == core
