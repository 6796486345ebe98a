"""`grade repro`: the lines that it prints run without the grader, and show the mistake."""

import ast
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from grader.command.main import main
from grader.learning.repro.reproduced import find_failure
from grader.learning.repro.script import _imports, script
from grader.read.stubs import read_stub
from grader.run.answers import WorkerAnswers
from grader.run.collecting import with_checks
from grader.run.importing import Import
from grader.run.session import Checks
from grader.run.solutions import solution_files
from grader.run.under_check import StageUnderCheck
from grader.run.workers import Interpreter
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE, TINY
from tests.kit.support.files import write_files
from tests.kit.support.tiny import Capture
from tests.kit.wrong_answers import wrong_answers

SEED = 7
slow = partial(pytest.param, marks=pytest.mark.slow)
# A stage, a mistake in it, and what is printed of the wrong answer and of the right one.
CASES = (
    ("softmax", "scaled_again", "0.3225, 0.4063, 0.2712", "0.3093, 0.4615, 0.2292"),
    ("split_heads", "no_transpose", "torch.Size([2, 3, 4, 2])", "torch.Size([2, 4, 3, 2])"),
    ("scaled_scores", "matmul_capital_t", "RuntimeError", "0.0778,  0.2404,  0.4172"),
    ("concat_heads", "no_grad", "does not require grad", "tensor([[[["),
    ("multi_head_attention", "weights_first", "torch.Size([2, 3, 5, 7])", "torch.Size([2, 5, 12])"),
    ("multi_head_attention", "dropout_restores_the_generator", "tensor([[[", "tensor([[["),
)
# A check that has made other calls in training mode before those that are shown.
CALLED_BEFORE = ("multi_head_attention", "causal_cached_size", "modes")
Written = dict[tuple[str, str], str]


@pytest.fixture(scope="module")
def written(interpreter: Interpreter) -> Written:
    """The lines for each case, all from one set of collected checks."""
    stages = [stage for stage in COURSE.stages if stage.slug in {case[0] for case in CASES}]

    def body(checks: Checks) -> Written:
        asked = [(slug, name, "") for slug, name, *_ in CASES] + [CALLED_BEFORE]
        return {
            (slug, name): _script(slug, name, check, interpreter, checks)
            for slug, name, check in asked
        }

    return with_checks(COURSE, stages, body)


def _files(slug: str, name: str) -> dict[str, bytes]:
    source = next(each.source for each in wrong_answers(slug) if each.name == name)
    return {**solution_files(COURSE), f"{slug}.py": source.encode()}


def _script(slug: str, name: str, check: str, interpreter: Interpreter, checks: Checks) -> str:
    stage = COURSE.stage(slug)
    answers = WorkerAnswers(
        interpreter, Import(COURSE, stage, Submission(name, _files(slug, name)))
    )
    facts = checks.run(stage, StageUnderCheck(stage, answers), SEED, "cpu")
    failing, fact = find_failure(stage, facts, check, SEED)
    return script(failing, fact, module=slug, stub=read_stub(stage), seed=SEED)


# What is importable from a folder is forgotten before the next one; torch takes seconds to import.
RUNS = """
import sys, traceback

text, *folders = sys.argv[1:]
for folder in folders:
    sys.path[0] = folder
    for name, module in [*sys.modules.items()]:
        if str(getattr(module, "__file__", "")).startswith(tuple(folders)):
            del sys.modules[name]
    try:
        exec(text, {"__name__": "__main__"})
    except Exception:
        traceback.print_exc(file=sys.stdout)
    print("-- end --")
"""


def run(text: str, folder: Path, *answers: dict[str, bytes]) -> list[str]:
    """What the lines print, or raise, beside each of these answers, in a process of their own."""
    folders = [folder / str(number) for number, _ in enumerate(answers)]
    for there, files in zip(folders, answers, strict=True):
        write_files(there, files)
    words = [sys.executable, "-c", RUNS, text, *map(str, folders)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60)
    return done.stdout.split("-- end --\n")[:-1]


@pytest.mark.parametrize(
    "slug, name, wrong, right",
    [pytest.param(*case, marks=[pytest.mark.slow] * (at > 0)) for at, case in enumerate(CASES)],
    ids=[case[0] for case in CASES],
)
def test_the_lines_run_and_show_the_mistake(
    written: Written, tmp_path: Path, slug: str, name: str, wrong: str, right: str
) -> None:
    text = written[slug, name]
    assert "grader" not in text and f"from {slug} import" in text
    assert len(text.splitlines()) < 50
    printed, expected = run(text, tmp_path, _files(slug, name), solution_files(COURSE))
    assert wrong in printed
    assert right in expected, "of the right answer"


def test_inputs_that_are_large_are_drawn_as_the_check_drew_them(written: Written) -> None:
    text = written["multi_head_attention", "weights_first"]
    assert "torch.randn(2, 5, 12, generator=draw)" in text


def test_a_call_that_is_left_out_leaves_the_module_in_its_mode(written: Written) -> None:
    slug, name, _ = CALLED_BEFORE
    _, shown = written[slug, name].split("module.load_state_dict(")
    assert shown.index("module.train(True)") < shown.index("result = module(")


@pytest.mark.parametrize("module", ["my-fold", "class", "x import y\nimport os #", "a'b\u202e"])
def test_a_files_name_is_no_code_in_the_lines(module: str) -> None:
    """Whoever grades others may run them."""
    lines = ast.parse("\n".join(_imports(module, ["fold"]))).body
    assert len(lines) == 2
    assert ast.unparse(lines[0]) == "from importlib import import_module"
    assert ast.unparse(lines[1]) == f"fold = import_module({module!r}).fold"
    assert _imports("mine", ["fly", "fold"]) == ["from mine import fly, fold"]


AVERAGE = ["repro", "moving_average.values", "--course", str(TINY.root), "--submission"]


def test_a_call_without_a_number_ends_nothing(tmp_path: Path, capsys: Capture) -> None:
    """The learner's process sends the numbers, and may send anything."""
    lies = b"""
import sys
Frame = sys.modules["grader.run.worker.wire"].Frame
sys.modules["grader.run.worker.bench"].Bench.answer = lambda *a: Frame({"value": 1, "call": [1]})
def moving_average(values, width): pass
"""
    write_files(tmp_path, {"moving_average.py": lies})
    assert main([*AVERAGE, str(tmp_path)]) == 0
    assert "gave an answer that makes no sense: a call's number" in capsys.readouterr().out


def test_arrays_of_numpy_are_written_out(tmp_path: Path, capsys: Capture) -> None:
    right = TINY.stage("moving_average").solution_file.read_text(encoding="utf-8")
    write_files(tmp_path, {"moving_average.py": right.replace(".mean()", ".mean() * 2").encode()})
    assert main([*AVERAGE, str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "import torch" not in text
    (tmp_path / "lines.py").write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, "lines.py"], cwd=tmp_path, capture_output=True)
    assert done.stdout.split() == [b"[-1.2", b"-1.2", b"-1.6", b"-0.7]"]


def test_what_was_expected_stands_below(written: Written) -> None:
    assert "# The result is wrong at B=0" in written["softmax", "scaled_again"]


@pytest.mark.parametrize(
    "what, code, said",
    [
        ("softmax.values", 0, "from softmax import attention_weights"),
        ("concat_heads.values", 2, "the code answered no call: grade concat_heads to see why"),
        ("multi_head_attention", 2, "forbidden-call is about what the code calls: its message"),
        slow("softmax.valus", 2, "softmax has no check 'valus' (did you mean 'values'?)"),
        slow("softmax.x", 2, "no check 'x'; `grade repro softmax` takes the first that fails"),
        slow("split_heads", 2, "split_heads passes with seed 0: there is nothing to show"),
    ],
)
def test_the_command_prints_the_lines_or_why_not(
    tmp_path: Path, capsys: Capture, what: str, code: int, said: str
) -> None:
    built_in = b"import torch\n\nMultiHeadAttention = torch.nn.MultiheadAttention\n"
    broken = {"concat_heads.py": b"x = (", "multi_head_attention.py": built_in}
    write_files(tmp_path, {**_files("softmax", "scaled_again"), **broken})
    assert main(["repro", what, "--submission", str(tmp_path)]) == code
    shown = capsys.readouterr()
    assert said in (shown.err if code else shown.out)
