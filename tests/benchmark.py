"""Prints how fast the grader is, beside what it is measured against.

    python tests/benchmark.py [RUNS]

All of it is of the core stages. Whole commands are timed in turn, RUNS times each (5 by default),
and the median is shown with the ratio to its yardstick. Then a learner's files are saved under
`grade watch`, and the time from the save to the verdict is held against a cold pytest of the same
stage's checks. Then it grades wrong answers of the kit's own tests in a warm engine, and prints the
seconds until the verdict and until the search for an explanation has ended. The last part grades
the solutions warm, in one process, as a class would be, and adds up the processor time of the
checker and of the workers.
"""

import os
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from grader.engine import Engine, Request, with_engine
from grader.learning.watch.loop import Watch
from grader.learning.watch.state import Watching
from grader.read.course_file import read_course
from grader.run.answers import WorkerAnswers
from grader.run.collecting import with_checks
from grader.run.importing import Import
from grader.run.session import Checks
from grader.run.solutions import solution_files
from grader.run.under_check import StageUnderCheck
from grader.run.workers import Interpreter
from grader.types.course import Stage
from grader.types.report import Report, StageResult
from grader.types.submission import Submission
from grader.types.workspace import Workspace
from tests.kit.wrong_answers import wrong_answers

ROOT = Path(__file__).parents[1]
COURSE = read_course(ROOT / "course.toml")
CORE = [stage for stage in COURSE.stages if not stage.bonus]
TINY = ROOT / "tests" / "kit" / "courses" / "tiny"
PYTHON = sys.executable
GRADE = (PYTHON, "-m", "grader")
SUBMISSION = ("--submission", "solutions")
# What is timed, and the yardstick with the most that the ratio may be.
COMMANDS: dict[str, Sequence[str]] = {
    "import rich.console": (PYTHON, "-c", "import rich.console"),
    "import torch": (PYTHON, "-c", "import torch"),
    "pytest, the same checks": (
        *(PYTHON, "-m", "pytest", "-q"),
        *(str(stage.check_file) for stage in CORE),
    ),
    "grade": (*GRADE, *(stage.slug for stage in CORE), *SUBMISSION),
    "grade softmax": (*GRADE, "softmax", *SUBMISSION),
    "grade, without torch": (*GRADE, "--course", str(TINY), "--submission", f"{TINY}/solutions"),
    "grade --help": (*GRADE, "--help"),
    "grade list": (*GRADE, "list"),
    "grade hint": (*GRADE, "hint", "softmax", "--again"),
}
GOALS = {
    "grade": ("import torch", 2.0),
    "grade --help": ("import rich.console", 2.5),
    "grade list": ("import rich.console", 2.5),
    "grade hint": ("import rich.console", 2.5),
}
WARM_RUNS = 20
EVERY = 5  # of the wrong answers to a stage


def main(runs: int) -> None:
    """Time everything and print it."""
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, {runs} runs, medians\n")
    seconds = timed_in_turn(runs)
    for name, value in seconds.items():
        line = f"{name:<26}{value:8.3f} s"
        if name in GOALS:
            yardstick, most = GOALS[name]
            line += f"   {value / seconds[yardstick]:5.2f} x {yardstick} (at most {most})"
        print(line)
    print()
    watched(runs)
    print()
    explained()
    print()
    warm()


def timed_in_turn(runs: int) -> dict[str, float]:
    """The median wall seconds of each command; one run of each first, to warm the disk."""
    samples: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as home:
        # A hint is remembered: not in the course's own folder.
        environment = {**os.environ, "HOME": home, "PYTHONPATH": str(ROOT)}
        for run in range(runs + 1):
            for name, command in COMMANDS.items():
                start = time.perf_counter()
                done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True)
                taken = time.perf_counter() - start
                if done.returncode:
                    raise SystemExit(f"{name}: {done.stdout.decode()}{done.stderr.decode()}")
                if run:
                    samples[name].append(taken)
    return {name: statistics.median(taken) for name, taken in samples.items()}


def watched(runs: int) -> None:
    """Save each stage's solution under `grade watch`; the median from save to verdict."""
    verdicts: queue.SimpleQueue[tuple[float, StageResult]] = queue.SimpleQueue()

    told: list[Report | None] = [None]
    all_judged = threading.Event()

    def show(state: Watching) -> None:
        """Take the time of a verdict that is new: the same state is shown several times."""
        known = [state.progress.stage(stage.slug).status for stage in COURSE.stages]
        (all_judged.clear if None in known else all_judged.set)()
        if state.report is not None and state.report is not told[-1]:
            verdicts.put((time.perf_counter(), state.report.stages[0]))
            told.append(state.report)

    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder), COURSE)
        workspace.exercises.mkdir()
        for stage in COURSE.stages:
            shutil.copy(stage.solution_file, workspace.file(stage))
        watch = Watch(workspace, None, "cpu", 1, show, lambda file, line: "")
        thread = threading.Thread(target=watch.run)
        thread.start()
        verdicts.get()
        for stage in CORE:
            saves = [
                _save_to_verdict(workspace, stage, verdicts, all_judged) for _ in range(runs + 1)
            ][1:]
            cold = [_seconds((PYTHON, "-m", "pytest", "-q", stage.check_file)) for _ in range(3)]
            saved, beside = statistics.median(saves), statistics.median(cold)
            print(
                f"watch {stage.slug:<20}{1000 * saved:8.0f} ms   {saved / beside:5.3f} x a cold "
                f"pytest of its checks, {beside:.2f} s (at most 0.1)"
            )
        watch.press("q")
        thread.join()


def _save_to_verdict(
    workspace: Workspace,
    stage: Stage,
    verdicts: queue.SimpleQueue[tuple[float, StageResult]],
    all_judged: threading.Event,
) -> float:
    """Seconds from a save of the stage's file to the verdict on it, which must be a pass."""
    all_judged.wait()
    time.sleep(1.0)  # what was judged last is written down
    while not verdicts.empty():
        verdicts.get()
    file = workspace.file(stage)
    new = file.with_suffix(".tmp")
    new.write_bytes(file.read_bytes() + b"\n# saved again\n")
    start = time.perf_counter()
    new.replace(file)
    while True:
        end, result = verdicts.get(timeout=30)
        if result.slug == stage.slug:
            if result.score != result.max_score:
                raise SystemExit(f"{stage.slug} does not pass")
            return end - start


def explained() -> None:
    """Grade one in `EVERY` wrong answers: seconds to the verdict, and to its explanation."""
    solutions = solution_files(COURSE)

    def body(engine: Engine) -> None:
        engine.grade(Request(Submission("solutions", solutions), tuple(CORE), 1))
        for stage in CORE:
            verdicts, reasons = [], []
            for answer in wrong_answers(stage.slug)[::EVERY]:
                files = {**solutions, stage.file_name: answer.source.encode()}
                request = Request(Submission(answer.name, files), (stage,), 1)
                start = time.perf_counter()
                report = engine.grade(request)
                verdicts.append(time.perf_counter() - start)
                engine.with_place(request, report)
                reasons.append(time.perf_counter() - start)
            print(
                f"wrong {stage.slug:<20} verdict {statistics.median(verdicts):5.2f} s, at most "
                f"{max(verdicts):5.2f}; why {statistics.median(reasons):5.2f} s, at most "
                f"{max(reasons):5.2f} ({len(verdicts)} answers)"
            )

    with_engine(COURSE, CORE, "cpu", body)


def _seconds(command: Sequence[str | Path]) -> float:
    start = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
    return time.perf_counter() - start


def warm() -> None:
    """Grade the solutions again and again with the checks collected and torch imported once."""
    submission = Submission("solutions", solution_files(COURSE))

    def body(checks: Checks) -> None:
        for name in ("first", "warm"):
            runs = 1 if name == "first" else WARM_RUNS
            spent = {stage.slug: 0.0 for stage in CORE}
            start_cpu = time.process_time()
            for seed in range(runs):
                for stage in CORE:
                    start = time.perf_counter()
                    answers = WorkerAnswers(interpreter, Import(COURSE, stage, submission))
                    checks.run(stage, StageUnderCheck(stage, answers), seed, "cpu")
                    spent[stage.slug] += time.perf_counter() - start
            checker = (time.process_time() - start_cpu) / runs
            if name == "warm":
                for slug, total in spent.items():
                    print(f"warm {slug:<21}{1000 * total / runs:8.1f} ms")
                print(f"warm, all stages          {1000 * sum(spent.values()) / runs:8.1f} ms")
                print(f"processor time, checker   {1000 * checker:8.1f} ms a submission")

    before = os.times()
    with Interpreter(COURSE.preload, COURSE.limits, gpu=False) as interpreter:
        with_checks(COURSE, CORE, body)
    after = os.times()
    children = after.children_user + after.children_system
    children -= before.children_user + before.children_system
    # The interpreter's own start is in it: it is shared by all the submissions.
    print(f"processor time, workers   {1000 * children / (WARM_RUNS + 1):8.1f} ms a submission")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
