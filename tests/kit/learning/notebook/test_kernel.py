"""`%load_ext grader` in a real kernel: verdicts, what the kernel never holds, and interrupts."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from grader.engine import Engine, Request, grade, with_engine
from grader.learning.notebook.builder import cell_code, notebook
from grader.read.stubs import read_solution, read_stub
from grader.read.submission import parse_cells
from grader.run.solutions import solution_files
from grader.types.report import Report, Status, to_json
from grader.types.submission import Submission
from tests.kit.learning.finale.test_finale_command import PROGRAM
from tests.kit.support.checkout import COURSE, ROOT, TINY, run_python
from tests.kit.support.processes import alive, until
from tests.kit.support.tiny import copy_tiny
from tests.kit.wrong_answers import wrong_source

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

# What the libraries of a kernel's client warn of is not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore")

AVERAGE = f"%%grade moving_average\n{read_solution(TINY.stage('moving_average'))}"
SOLUTIONS = {slug: text.decode() for slug, text in solution_files(COURSE).items()}
STUBS = {stage.file_name: read_stub(stage) for stage in COURSE.stages}
REPORT = "import json, grader.notebook as n\nprint(json.dumps([*n.sessions.values()][0].report))"
HELPER = "[*n.sessions.values()][0]._helper"
PROCESS = f"{HELPER}._process"


class Kernel:
    """A real kernel, in which cells are run one by one."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def run(self, source: str) -> Any:
        """Run a cell; the cell with its outputs."""
        cells = self._client.nb.cells
        cells.append(nbformat.v4.new_code_cell(source))
        self._client.execute_cell(cells[-1], len(cells) - 1)
        return cells[-1]

    def html(self, source: str) -> str:
        """What a cell shows as HTML, with the plain text beside it."""
        (shown,) = (o.data for o in self.run(source).outputs if "data" in o)
        assert shown["text/plain"].strip()
        return str(shown["text/html"])

    def prints(self, source: str) -> str:
        """What a cell prints."""
        cell = self.run(source)
        return "".join(o.text for o in cell.outputs if o.output_type == "stream")

    def report(self) -> dict[str, Any]:
        """The last report."""
        report: dict[str, Any] = json.loads(self.prints(REPORT))
        return report

    def interrupt_next(self, seconds: float) -> None:
        """Interrupt the next cell when it has run for so long."""
        self.run(
            "import os, signal, threading\n"
            "def interrupt_soon(info):\n"
            "    get_ipython().events.unregister('pre_run_cell', interrupt_soon)\n"
            "    stop = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
            f"    threading.Timer({seconds}, stop).start()\n"
            "get_ipython().events.register('pre_run_cell', interrupt_soon)"
        )

    @property
    def pid(self) -> int:
        """The kernel's process."""
        return int(self._client.km.provisioner.pid)


@contextmanager
def kernel(folder: Path) -> Iterator[Kernel]:
    """A kernel with that working folder."""
    client = nbclient.NotebookClient(
        nbformat.v4.new_notebook(),
        timeout=90,
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": str(folder)}},
    )
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(ROOT)
    try:
        with client.setup_kernel():
            yield Kernel(client)
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel with the extension loaded, in a folder that is no workspace."""
    with kernel(tmp_path_factory.mktemp("elsewhere")) as there:
        assert there.run("%load_ext grader").outputs == []
        yield there


@pytest.fixture(scope="module")
def warm_tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """The same in the folder of a course that needs no torch, so that a helper starts quickly.

    An import may take longer than any of these tests.
    """
    folder = tmp_path_factory.mktemp("tiny") / "course"
    copy_tiny(folder, {"load_seconds = 5": "load_seconds = 80"})
    with kernel(folder) as there:
        assert there.run("%load_ext grader").outputs == []
        yield there


def cell_of(slug: str, source: str) -> str:
    return f"%%grade {slug}\n{cell_code(source, COURSE)}"


RIGHT = {stage.slug: cell_of(stage.slug, SOLUTIONS[stage.file_name]) for stage in COURSE.stages}


# --- the same points ---------------------------------------------------------------------------


def variants() -> dict[str, dict[str, str]]:
    """Files of the core: solutions, stubs, and four times one mistake in the solutions."""
    mistakes = [
        ("split_heads", "view_only"),
        ("masking", "apply_inverted"),
        ("concat_heads", "no_transpose"),
        ("multi_head_attention", "bias_never"),
    ]
    core = {stage.file_name: SOLUTIONS[stage.file_name] for stage in CORE}
    found = {"solutions": core, "stubs": {file: STUBS[file] for file in core}}
    for slug, name in mistakes:
        wrong = wrong_source(slug, name)
        found[f"{slug}, {name}"] = {**core, f"{slug}.py": wrong}
    return found


CORE = tuple(stage for stage in COURSE.stages if not stage.bonus)
VARIANTS = variants()
Points = list[tuple[str, str, float, str | None]]


def points(report: Mapping[str, Any]) -> Points:
    return [(s["slug"], s["status"], s["score"], s["caused_by"]) for s in report["stages"]]


@pytest.fixture(scope="module")
def elsewhere() -> dict[str, tuple[Points, Points]]:
    """The points of the variants as files and as a saved notebook, from the engine itself."""
    stubs = {stage.slug: read_stub(stage) for stage in COURSE.stages}

    def body(engine: Engine) -> dict[str, tuple[Points, Points]]:
        def graded(submission: Submission) -> Points:
            report: Report = engine.grade(Request(submission, CORE, seed=5))
            return points(to_json(report))

        found = {}
        for name, files in VARIANTS.items():
            answers = {Path(file).stem: source for file, source in files.items()}
            saved = json.dumps(notebook(COURSE, stubs, {}, {}, answers)).encode()
            cells = parse_cells(saved, "saved.ipynb")
            data = {file: source.encode() for file, source in files.items()}
            found[name] = (
                graded(Submission("files", data)),
                graded(Submission("saved.ipynb", {}, cells=cells)),
            )
        return found

    return with_engine(COURSE, CORE, "cpu", body)


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_the_points_are_those_of_the_files_and_of_the_saved_notebook(
    warm: Kernel, elsewhere: dict[str, tuple[Points, Points]], name: str
) -> None:
    files, saved = elsewhere[name]
    assert saved == files
    by_stage = []
    for stage in CORE:
        warm.run(cell_of(stage.slug, VARIANTS[name][stage.file_name]))
        by_stage += points(warm.report())
    assert by_stage == files
    warm.run("grade_here()")
    assert points(warm.report()) == files


@pytest.mark.slow
def test_a_saved_notebook_of_all_solutions_gets_all_points() -> None:
    stubs = {stage.slug: read_stub(stage) for stage in COURSE.stages}
    answers = {Path(file).stem: source for file, source in SOLUTIONS.items()}
    cells = parse_cells(json.dumps(notebook(COURSE, stubs, {}, {}, answers)).encode(), "saved")
    # What is beside the answers does not count in the checks that measure memory.
    cells = ("import torch, matplotlib.pyplot as plt", "big = torch.zeros(1 << 24)", *cells)
    report = grade(COURSE, Request(Submission("saved", {}, cells=cells), COURSE.stages, 5), "cpu")
    assert all(stage.status is Status.PASSED for stage in report.stages)


@pytest.mark.slow
def test_tests_of_a_cell_that_was_graded_anew_no_longer_count(warm: Kernel) -> None:
    stage = next(stage for stage in COURSE.stages if stage.fixture)
    wrong = f"\n\ndef test_of_an_older_version({stage.fixture}):\n    assert False\n"
    full = [(stage.slug, "passed", stage.points, None)]
    warm.run(RIGHT[stage.slug] + wrong)
    [(_, status, score, _)] = points(warm.report())
    assert status == "failed" and score < stage.points / 4
    warm.run(RIGHT[stage.slug])
    assert points(warm.report()) == full
    warm.run(f'grade_here("{stage.slug}")')
    assert points(warm.report()) == full


# --- what is shown and what is run -------------------------------------------------------------


def test_the_verdict_comes_before_the_cell_runs_and_its_names_are_there(warm: Kernel) -> None:
    cell = warm.run(f'{RIGHT["split_heads"]}\nprint("ran here")\n6 * 7')
    assert [output.output_type for output in cell.outputs] == [
        *("display_data", "stream", "execute_result")
    ]
    assert "passed, 12 / 12 points" in cell.outputs[0].data["text/html"]
    assert "passed" in cell.outputs[0].data["text/plain"]
    import_torch = "import torch\nprint(tuple(split_heads(torch.ones(1, 2, 4), 2).shape))"
    assert warm.prints(import_torch).strip() == "(1, 2, 2, 2)"


def test_a_failure_shows_its_diagnosis_and_the_hint_for_it(warm: Kernel) -> None:
    body = "return x.view(len(x), num_heads, x.shape[1], x.shape[2] // num_heads)"
    html = warm.html(f"%%grade split_heads\ndef split_heads(x, num_heads):\n    {body}")
    assert "<strong>Likely:</strong>" in html and "for this failure (" in html
    assert "more checks fail for the same reason (-" in html


def test_the_weights_of_an_answer_that_passes_are_shown_as_a_table(warm: Kernel) -> None:
    html = warm.html(RIGHT["softmax"])
    assert "Your code on an example" in html and "<table" in html


def test_an_exception_in_the_cell_is_shown_as_usual_and_the_verdict_comes(warm: Kernel) -> None:
    cell = warm.run(f"{RIGHT['split_heads']}\n1 / 0")
    assert "passed, 12 / 12 points" in cell.outputs[0].data["text/html"]
    said = json.dumps(cell.outputs[1:])
    assert "ZeroDivisionError" in said and "notebook.py" not in said
    broken = warm.run("%%grade split_heads\ndef split_heads(x, num_heads)\n    return x")
    (told,) = broken.outputs  # once
    assert "SyntaxError" in told.data["text/html"]


@pytest.mark.parametrize("above", ["", "\n", "%%time\n", "\n%%time\n"])
def test_a_line_is_counted_from_the_top_of_its_cell(warm_tiny: Kernel, above: str) -> None:
    lines = "def moving_average(values, width):\n    return values[99]"
    html = warm_tiny.html(f"{above}%%grade moving_average\n{lines}")
    assert f"this cell, line {3 + above.count(chr(10))}, in moving_average" in html


def test_the_magics_show_the_notebooks_own_code(warm: Kernel) -> None:
    body = "return x.view(len(x), num_heads, x.shape[1], x.shape[2] // num_heads)"
    warm.run(f"def split_heads(x, num_heads):\n    {body}")
    assert "The first wrong step: heads." in warm.html("%trace split_heads")
    assert "split_heads(" in warm.html("%repro split_heads.values")
    warm.run(RIGHT["softmax"])
    assert "<table" in warm.html("%heatmap softmax")
    assert "Name the check, as in: %repro CHECK" in warm.html("%repro")
    assert "did you mean" in warm.html("%trace split_head")


def test_the_magics_name_a_cell_by_its_number(warm: Kernel) -> None:
    for stage in COURSE.stages[:6]:
        warm.run(RIGHT[stage.slug])
    number = warm.run("def split_heads(x, num_heads):\n    raise ValueError('no')").execution_count
    assert f" cell [{number}], line 2, in split_heads" in warm.html("%trace split_heads")
    assert f"code cell {number}, line 2, in split_heads" in warm.prints("%finale")


INTERRUPTED = """
import os, signal, sys

class Out:
    '''Interrupts the kernel once, as soon as the training tells a first loss.'''

    def __init__(self, out):
        self.out = out
        self.is_pressed = False

    def write(self, text):
        self.out.write(text)
        if ": loss" in text and not self.is_pressed:
            self.is_pressed = True
            os.kill(os.getpid(), signal.SIGINT)

    def __getattr__(self, name):
        return getattr(self.out, name)

sys.stdout = Out(sys.stdout)
"""


@pytest.mark.slow
def test_an_interrupted_finale_shows_what_was_learnt_so_far(tmp_path: Path) -> None:
    """With `!grade finale` the kernel would end the process before it can say anything."""
    course = copy_tiny(tmp_path / "course").root
    (course / "hints" / "finale").mkdir()
    endless = PROGRAM.replace('"steps": 100', '"steps": 30_000')  # it never ends by itself
    (course / "hints" / "finale" / "smooth.py").write_text(endless, encoding="utf-8")
    with kernel(course) as there:
        there.run("%load_ext grader")
        for stage in TINY.stages[:2]:
            there.run(read_solution(stage))
        there.run(INTERRUPTED)
        cell = there.run("%finale rocks")
    told = "".join(output.text for output in cell.outputs if output.output_type == "stream")
    assert "What it writes after 0 steps" in told
    assert "Stopped at step" in told and "Trained for" in told
    assert "%finale rocks --without water" in told
    pictures = [o.data for o in cell.outputs if "data" in o]
    assert [each["text/plain"] for each in pictures] == [
        "finale/rocks-loss.svg",
        "finale/rocks-heatmap.svg",
    ]
    assert all("<img " in each["text/html"] for each in pictures)
    assert {file.name for file in (course / "finale").iterdir()} == {
        "rocks-loss.svg",
        "rocks-heatmap.svg",
    }


def test_a_cell_that_would_end_the_kernel_is_graded_and_not_run(warm_tiny: Kernel) -> None:
    """So is one that never ends: test_serve.py."""
    html = warm_tiny.html("%%grade smooth\nimport os\nos._exit(0)")
    assert "graded but not run here" in html and "passed" in warm_tiny.html(AVERAGE)


def test_a_stage_that_is_not_named_or_not_there_is_one_line(warm: Kernel) -> None:
    html = warm.html("%%grade split_head\nx = 1")
    assert "did you mean &#x27;split_heads&#x27;? (The cell was not run.)" in html
    assert "The cell was not run. Name its stage" in warm.html("%%grade\nx = 1")
    html = warm.html('grade_here("split_head")')
    assert "did you mean" in html and "was not run" not in html


def test_a_function_stands_for_the_stage_of_its_name(warm: Kernel) -> None:
    warm.run(RIGHT["split_heads"])
    assert "passed, 12 / 12" in warm.html("grade_here(split_heads)")
    assert "there is no stage" in warm.html("grade_here(3.5)")


def test_an_older_definition_does_not_answer_for_a_cell_that_is_broken(warm: Kernel) -> None:
    assert "passed, 12 / 12" in warm.html(RIGHT["split_heads"])
    broken = warm.run("%%grade split_heads\ndef split_heads(x, num_heads)\n    return x")
    assert "failed, 0 / 12" in broken.outputs[0].data["text/html"]
    assert "failed, 0 / 12" in warm.html("%%grade split_heads\ndef split_head(x): return x")


def test_a_definition_in_a_later_cell_replaces_the_graded_one(warm_tiny: Kernel) -> None:
    assert "passed, 6 / 6" in warm_tiny.html(AVERAGE)
    warm_tiny.run("def moving_average(values, width): return 'wrong'")
    assert "failed, 0 / 6" in warm_tiny.html("grade_here('moving_average')")


def test_a_graded_cell_with_await_says_why_it_does_not_run(warm_tiny: Kernel) -> None:
    cell = warm_tiny.run(f"{AVERAGE}\nimport asyncio\nawait asyncio.sleep(0)\nlate = 5")
    verdict, advice = (output.data["text/plain"] for output in cell.outputs)
    assert "passed" in verdict and "move the `await`" in advice
    assert "late" not in warm_tiny.prints("print([*globals()])")


def test_what_a_stranger_prints_is_no_markup(warm: Kernel) -> None:
    evil = 'print("<img src=x onerror=alert(1)>")\nraise ValueError("<script>alert(1)</script>")'
    html = warm.html(
        f"%%grade concat_heads\ndef concat_heads(x):\n    {evil.replace(chr(10), '; ')}"
    )
    assert "<script" not in html and "<img" not in html and "&lt;script&gt;" in html


# --- the kernel holds nothing that grades ------------------------------------------------------

LOOK = """
import gc, sys, types
print(json.dumps({
    "modules": [name for name in sys.modules if name.partition(".")[0] in (
        "grader", "pytest", "_pytest", "rich")],
    "code": sorted({
        found.co_filename for thing in gc.get_objects() if isinstance(thing, types.FunctionType)
        for found in [thing.__code__]
        if any(part in found.co_filename for part in ("checks", "solutions", "misconceptions"))
        and "grade" in found.co_filename + str(thing.__globals__.get("__name__"))}),
    "paths": [name for name in sys.modules if any(
        str(getattr(sys.modules[name], "__file__", "")).startswith(ROOT + part)
        for part in ("/tests", "/solutions", "/hints"))],
    "torch": "torch" in sys.modules,
}))
"""


def test_the_kernel_imports_no_check_no_solution_no_engine_and_no_torch(tmp_path: Path) -> None:
    stub = cell_of("split_heads", STUBS["split_heads.py"]).replace("import torch\n", "")
    stub = stub.replace("x: torch.Tensor", "x").replace(" -> torch.Tensor", "")
    with kernel(tmp_path) as there:
        there.run("%load_ext grader")
        shown = there.html(stub)
        assert "not started" in shown and "Put your code in place of" in shown
        found = json.loads(there.prints(f"import json\nROOT = {str(ROOT)!r}\n{LOOK}"))
    assert found == {
        "modules": ["grader", "grader.notebook"],
        "code": [],
        "paths": [],
        "torch": False,
    }


def test_importing_the_package_imports_nothing_else_of_it() -> None:
    code = "import sys, grader; print([name for name in sys.modules if 'grader' in name])"
    assert run_python("-c", code).stdout == "['grader']\n"


# --- interrupts and ends -----------------------------------------------------------------------


def test_an_interrupt_ends_a_verdict_calmly_and_the_next_one_works(warm_tiny: Kernel) -> None:
    assert "passed, 6 / 6" in warm_tiny.html(AVERAGE)
    pid = warm_tiny.prints(f"import grader.notebook as n\nprint({PROCESS}.pid)")
    warm_tiny.interrupt_next(1)
    start = time.monotonic()
    cell = warm_tiny.run("%%grade smooth\nimport time\nprint('ran')\ntime.sleep(80)")
    assert time.monotonic() - start < 40  # of the 80 seconds
    shown, error = cell.outputs
    assert "Stopped: nothing was graded." in shown.data["text/html"]
    assert error.traceback == ["Stopped: nothing was graded."]
    assert "passed, 6 / 6" in warm_tiny.html(AVERAGE)
    assert warm_tiny.prints(f"print({PROCESS}.pid)") == pid


def test_an_interrupt_before_anything_is_shown_is_as_calm(warm_tiny: Kernel) -> None:
    warm_tiny.run(
        "import grader.notebook as n\nshow = n._display\ndef stop(*args, **options):\n"
        "    n._display = show\n    raise KeyboardInterrupt\nn._display = stop"
    )
    (error,) = warm_tiny.run("grade_here()").outputs
    assert error.traceback == ["Stopped: nothing was graded."]


@pytest.mark.slow
def test_when_the_helper_dies_one_line_says_so_and_the_next_call_starts_another(
    warm_tiny: Kernel,
) -> None:
    there = warm_tiny
    there.html(AVERAGE)
    there.run("import grader.notebook as n")
    pid = int(there.prints(f"print({PROCESS}.pid)"))
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: there.prints(f"print({HELPER}.has_ended)").strip() == "True")
    assert "passed, 6 / 6" in there.html(AVERAGE)  # it was dead before the call
    again = int(there.prints(f"print({PROCESS}.pid)"))
    assert again != pid
    threading.Timer(0.5, lambda: os.kill(again, signal.SIGKILL)).start()
    # In the worker alone: after this the kernel runs the cell.
    wait = "import sys, time\ntime.sleep(0 if 'IPython' in sys.modules else 1.5)"
    html = there.html(f"%%grade smooth\n{wait}")
    assert "the grader has ended (signal 9); run the cell again" in html
    assert "passed, 6 / 6" in there.html(AVERAGE)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs Linux")
def test_a_killed_kernel_takes_its_helper_with_it(tmp_path: Path) -> None:
    with kernel(copy_tiny(tmp_path / "course").root) as there:
        there.run("%load_ext grader")
        there.html(AVERAGE)
        pid = int(there.prints(f"import grader.notebook as n\nprint({PROCESS}.pid)"))
        os.kill(pid, 0)
        os.kill(there.pid, signal.SIGKILL)
        assert until(lambda: not alive([pid]))


def test_a_course_that_is_wrong_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "course.toml").write_text("schema = 1\n", encoding="utf-8")
    with kernel(tmp_path) as there:
        there.run("%load_ext grader")
        html = there.html("%%grade fold\nx = 5")
        assert "course.toml" in html and "run the cell again" in html
        assert there.prints("print(x)").strip() == "5"


@pytest.mark.skipif(os.name == "nt", reason="a current folder stays there")
def test_a_folder_that_was_removed_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    with kernel(folder) as there:
        there.run("%load_ext grader")
        folder.rmdir()
        for line in ("%finale", "%reload_ext grader"):
            assert "The current folder was removed" in there.html(line)
        there.run(f"%cd {tmp_path}")
        assert there.run("%reload_ext grader").outputs == []
        assert there.prints("print('grade_here' in globals())").strip() == "True"


def test_the_grader_outlives_a_reset(warm_tiny: Kernel) -> None:
    assert warm_tiny.run("%reset -f").outputs == []
    assert warm_tiny.prints("print('grade_here' in globals())").strip() == "True"


def test_unloading_ends_the_helper_and_takes_the_names_away(warm_tiny: Kernel) -> None:
    pid = int(warm_tiny.prints(f"import grader.notebook as n\nprint({PROCESS}.pid)"))
    assert warm_tiny.run("%unload_ext grader").outputs == []
    assert until(lambda: not alive([pid]))
    assert warm_tiny.prints("print('grade_here' in globals())").strip() == "False"
    assert warm_tiny.run("%load_ext grader").outputs == []  # for other tests
