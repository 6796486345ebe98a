"""Prints how fast a class is graded.

    python tests/benchmark_class.py [SUBMISSIONS [STOCK]]
    python tests/benchmark_class.py --wrong 400
    python tests/benchmark_class.py --sizes 100 1000 10000
    python tests/benchmark_class.py --in-flight 300
    python tests/benchmark_class.py --profile 300
    python tests/benchmark_class.py --worst 20
    python tests/benchmark_class.py --dask 200

Without --sizes the very same notebooks are graded by stock `nbgrader autograde` (which takes long,
so only the first STOCK of them), by two such processes at a time with half of the students each, by
nbgrader with our preprocessors, by `grade class --nbgrader` and by `grade class`, one way after the
other, each in a course of its own. What is told is the time of each submission beyond the first, so
that starting a command counts in none of them, and the ratios to stock. The points must be the same
in all. Stock has no setting but the name of the course: it runs each notebook in a kernel, where a
cell a stage grades with the whole engine and gives nbgrader the points.

With --wrong, stock nbgrader grades the first STOCK of another class, and `grade class` all of it:
nine students in ten have a wrong module, each another one as long as there are any.

With --sizes, classes of these sizes are graded by `grade class`, and its rate, processor time and
memory are told; of every twenty students one is hostile.

With --in-flight, a class of this size, nobody hostile, is graded two at a time and four at a time:
each submission more that is in flight takes half of the private memory more, of all processes.

With --profile, what is left of the time: for the second half of a class of this size, the processor
time of a submission in the process that judges, by what it does there, and in the workers that run
it. Beside these, what no way of grading can save: the calls that the checks make of the solutions,
in one process; and what a worker takes that imports a stage and is asked nothing.

With --worst, the folders that are known to cost most (tests/kit/classes/costly.py) are
graded one after the other, each with so many seconds as `submission_seconds`: what each takes,
and the most.

With --dask, a class of this size, no two alike, is graded by one lane, by one lane for each CPU
core, and on a Dask cluster with as many workers, each with a core of its own.

A class: of a hundred students sixty have every stage right, twenty-five have one or two wrong, ten
stop somewhere on the way, and five hand in the untouched notebook. What is right or wrong is drawn
from tests/accepted and tests/kit/answers, where each answer is in a style of its own; a
notebook's answers share no names but those of their imports, as its stages would not work together.
Many write the same code, as there are ten to twenty styles of each stage; "none alike" is the same
class with a line in each answer that nobody else has.
"""

import argparse
import copy
import csv
import ctypes
import gc
import json
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from types import FrameType
from typing import Any

import psutil

from grader.classes.nbgrader.assignment import solution_id
from grader.classes.sharing.earned import Earned
from grader.engine import Engine, Request, with_engine
from grader.learning.notebook.builder import cell_code
from grader.read.course_file import read_course
from grader.read.stubs import read_stub
from grader.read.submission import parse_cells
from grader.run.facts import CaseFact
from grader.run.importing import Import
from grader.run.solutions import local_solutions, solution_files
from grader.run.worker.bench import Bench
from grader.run.worker.names import names_of
from grader.types.course import Stage
from grader.types.submission import Submission
from tests.kit.classes.costly import costly
from tests.kit.classes.dask_cluster import Cluster
from tests.kit.wrong_answers import wrong_answers

ROOT = Path(__file__).parents[1]

RIGHT = ROOT / "tests" / "accepted"
COURSE = read_course(ROOT / "course.toml")
STAGES = COURSE.assignments[0].stages
NAME = COURSE.assignments[0].name
BIN = Path(sys.executable).parent
STOCK, TWO = "nbgrader autograde", "two of them at a time"
OURS, BOOK, CLASS = "with our preprocessors", "grade class --nbgrader", "grade class"
DISTINCT = "grade class, none alike"
_REPEATS = 5  # of which the fastest counts
_TICK = 0.001  # seconds of processor time between two looks at what the judge does
PARTS = {
    "/grader/run/worker/wire.py": "packs, unpacks, sends and receives",
    "/grader/run/worker/": "answers for earlier stages",
    "/grader/run/": "asks, waits and keeps the exchanges",
    "/grader/checking/": "compares",
    "/tests/checks/": "draws inputs and makes references",
    "/grader/diagnosis/": "looks for the cause",
    "/hints/misconceptions/": "looks for the cause",
    "/_pytest/": "pytest",
    "/pluggy/": "pytest",
}
PARTS_OF_CALLS = {
    "/grader/run/worker/wire.py": "packs and unpacks",
    "/torch/nn/": "torch.nn: makes modules, loads their weights, calls layers",
    **{stage.file_name: "the functions themselves" for stage in STAGES},
    "/grader/run/worker/": "seeds, differentiates, compares what changed",
}
GOALS = {OURS: 8, BOOK: 50, CLASS: 50}
HOSTILE = (
    "import os\nos._exit(0)",
    "while True:\n    pass",
    "hog = []\nwhile True:\n    hog.append(bytearray(1 << 24))",
    "import sys\nsys.setrecursionlimit(10**9)\ndef fall():\n    fall()\nfall()",
    "import subprocess\nsubprocess.run(['sh', '-c', ':(){ :|:& };:'])",
    "print('x' * 10**9)",
    "import signal, os\nos.kill(os.getppid(), signal.SIGKILL)",
    "open('/etc/passwd').read()",
)


def main(arguments: Sequence[str]) -> None:
    """Time everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("submissions", nargs="?", type=int, default=100)
    parser.add_argument("stock", nargs="?", type=int, default=6)
    parser.add_argument("--wrong", type=int, metavar="N")
    parser.add_argument("--sizes", nargs="+", type=int, metavar="N")
    parser.add_argument("--in-flight", type=int, metavar="N")
    parser.add_argument("--profile", type=int, metavar="N")
    parser.add_argument("--worst", type=float, metavar="SECONDS")
    parser.add_argument("--dask", type=int, metavar="N")
    args = parser.parse_args(arguments)
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}")
    if args.worst:
        tell_worst(args.worst)
        return
    with tempfile.TemporaryDirectory() as folder:
        course = Path(folder) / "course"
        released_course(course)
        if args.sizes:
            for size in args.sizes:
                tell_size(Path(folder) / f"class-{size}", course, size)
        elif args.wrong:
            tell_wrong(Path(folder), course, args.wrong, args.stock)
        elif args.in_flight:
            tell_in_flight(Path(folder), course, args.in_flight)
        elif args.dask:
            tell_dask(Path(folder), list(handed_in(course, args.dask)))
        elif args.profile:
            tell_profile(list(handed_in(course, args.profile)))
        else:
            tell_ratios(Path(folder), course, args.submissions, args.stock)


def tell_ratios(folder: Path, course: Path, submissions: int, stock: int) -> None:
    """Grade the same notebooks in every way."""
    notebooks = list(handed_in(course, submissions))
    seconds: dict[str, float] = {}
    points: dict[str, dict[str, float]] = {}
    counts = {STOCK: stock, TWO: stock}
    counts |= dict.fromkeys((OURS, BOOK, CLASS, DISTINCT), submissions)
    for way, count in counts.items():
        there = folder / way.replace(" ", "-")
        first = graded(there, course, way, notebooks[:1])[0]
        every, points[way] = graded(there, course, way, notebooks[:count])
        seconds[way] = (every - first) / (count - 1)
        ratio = seconds[STOCK] / seconds[way]
        two = f", {seconds[TWO] / seconds[way]:5.1f} x two" if TWO in seconds else ""
        goal = f" (at least {GOALS[way]})" if way in GOALS else ""
        print(
            f"{way:<24}{count:5} submissions {every:7.1f} s, one more {seconds[way]:7.3f} s, "
            f"{ratio:6.1f} x stock{two}{goal}",
            flush=True,
        )
    for student, score in points[STOCK].items():
        if any(way[student] != score for way in points.values()):
            raise SystemExit(f"{student}: {[way[student] for way in points.values()]}")
    if not points[OURS] == points[BOOK] == points[CLASS] == points[DISTINCT]:
        raise SystemExit("the points are not the same")
    print(f"the same points in all, on average {sum(points[CLASS].values()) / submissions:.0f}")


def tell_wrong(folder: Path, course: Path, submissions: int, stock: int) -> None:
    """Grade a class in which nine in ten have a wrong module."""
    notebooks = list(mostly_wrong(course, submissions))
    seconds = {}
    for way, count in {STOCK: stock, CLASS: submissions}.items():
        there = folder / way.replace(" ", "-")
        first = graded(there, course, way, notebooks[:1])[0]
        every, points = graded(there, course, way, notebooks[:count])
        seconds[way] = (every - first) / (count - 1)
        print(
            f"{way:<24}{count:5} submissions {every:7.1f} s, one more {seconds[way]:7.3f} s, "
            f"{seconds[STOCK] / seconds[way]:6.1f} x stock, points on average "
            f"{statistics.mean(points.values()):.0f}",
            flush=True,
        )


def tell_size(there: Path, course: Path, size: int) -> None:
    """Grade a class of this size, one in twenty of them hostile, and tell what it takes."""
    hand_in(there, handed_in(course, size, hostile=0.05))
    adopt_orphans()
    before = seconds_used()
    start = time.perf_counter()
    memory = with_memory(there)
    seconds = time.perf_counter() - start
    cpu = seconds_used() - before
    print(
        f"{size:6} submissions {seconds:8.1f} s, {3600 * size / seconds:7.0f} an hour, "
        f"{cpu / size:6.3f} s of processor time each",
        flush=True,
    )
    kinds = {
        "command": "of the command",
        "lane": "of each process that grades",
        "worker": "of each that runs a submission",
    }
    for kind, what in kinds.items():
        seen = [mebibytes for now in memory for mebibytes in now[kind]]
        usual, most = statistics.median(seen), max(seen)
        print(f"       private memory {what}: {usual:.0f} MiB, at most {most:.0f} MiB", flush=True)
    shutil.rmtree(there)


def tell_in_flight(folder: Path, course: Path, size: int) -> None:
    """Grade a class of this size with two lanes and with four, and tell the difference."""
    usual, most = {}, {}
    for lanes in (2, 4):
        there = folder / str(lanes)
        hand_in(there, handed_in(course, size))
        memory = with_memory(there, "--jobs", str(lanes))
        full = [now["lane"] + now["worker"] for now in memory if len(now["lane"]) == lanes]
        usual[lanes] = statistics.median(map(sum, full))
        most[lanes] = max(map(sum, full))
        print(
            f"{lanes} at a time: {usual[lanes]:.0f} MiB, at most {most[lanes]:.0f} MiB", flush=True
        )
    one, at_most = (usual[4] - usual[2]) / 2, (most[4] - most[2]) / 2
    print(f"one more in flight: {one:.0f} MiB, at most {at_most:.0f} MiB")


def tell_worst(seconds: float) -> None:
    """Grade the worst known folders with a budget of so many seconds each."""
    course = replace(COURSE, limits=replace(COURSE.limits, submission_seconds=seconds))

    def body(engine: Engine) -> list[tuple[float, float, str]]:
        costs = []
        for name, submission in costly(course).items():
            server = engine.interpreter
            start, used = time.monotonic(), time.process_time() + server.processor_seconds()
            engine.grade(Request(submission, course.stages, 1))
            wall = time.monotonic() - start
            processor = time.process_time() + server.processor_seconds() - used
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            costs.append((wall, processor, name))
            told = f"{wall:7.1f} s, {processor:7.1f} s of processor time"
            print(f"{name:<38}{told}, the checker's memory so far {memory} MiB", flush=True)
        return costs

    costs = with_engine(course, course.stages, "cpu", body)
    wall, processor = (max(cost[at] for cost in costs) for at in (0, 1))
    print(f"the worst of {seconds:g} s: {wall:.1f} s, {processor:.1f} s of processor time")


def tell_dask(folder: Path, notebooks: Sequence[bytes]) -> None:
    """Grade them by lanes and by Dask workers, one and one for each core: what each is worth."""
    cores = sorted(os.sched_getaffinity(0))
    few = len(notebooks) // 4
    distinct = [unlike(notebook, number) for number, notebook in enumerate(notebooks)]
    adopt_orphans()
    one: dict[str, float] = {}
    for way, count in product(("lane", "worker"), sorted({1, len(cores)})):
        costs = []
        for some in (distinct[:few], distinct):
            there = folder / f"{way}-{count}-{len(some)}"
            hand_in(there, some)
            before = seconds_used()
            cluster = Cluster(there, count) if way == "worker" else None
            for worker, core in zip(cluster.workers if cluster else (), cores, strict=False):
                os.sched_setaffinity(worker.pid, {core})  # what it starts later inherits that
            start = time.perf_counter()
            options = ("--dask", cluster.address) if cluster else ("--jobs", str(count))
            command = class_command(there / "submissions", there / "results", *options)
            if command.wait() != 0:
                raise SystemExit(f"grade class ended with exit code {command.returncode}")
            seconds = time.perf_counter() - start
            if cluster:
                cluster.close()
            costs.append((seconds, seconds_used() - before))
        each, cpu = ((costs[1][at] - costs[0][at]) / (len(distinct) - few) for at in (0, 1))
        one.setdefault(way, each)
        print(
            f"{count} x {way}: one more submission {each:6.3f} s, {one[way] / each:5.2f} x one, "
            f"{cpu:6.3f} s of processor time",
            flush=True,
        )


def hand_in(there: Path, notebooks: Iterable[bytes]) -> None:
    """Put the notebooks in a folder of submissions."""
    folder = there / "submissions"
    folder.mkdir(parents=True)
    for number, notebook in enumerate(notebooks):
        (folder / f"student{number:05}.ipynb").write_bytes(notebook)


def adopt_orphans() -> None:
    """Count the processes that outlive whoever has started them among our own, on Linux."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def seconds_used() -> float:
    """The processor time of all processes that were started and have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, 0):
            pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tell_profile(notebooks: Sequence[bytes]) -> None:
    """Grade them in this process, and tell what the later ones take, by what they are."""
    taken: dict[str, list[tuple[float, float]]] = {}
    parts: dict[str, Counter[str]] = {}

    def body(engine: Engine) -> None:
        gc.freeze()
        server = psutil.Process(engine.interpreter._process.pid)

        def used() -> tuple[float, float]:
            times = server.cpu_times()
            of_workers = times.user + times.system + times.children_user + times.children_system
            return time.process_time(), of_workers

        engine.rehearse(STAGES, 1)
        tell_calls(engine)
        before = used()
        for _ in range(_REPEATS):
            import_alone(engine)
        here, workers = (1000 * (b - a) / _REPEATS for a, b in zip(before, used(), strict=True))
        print(f"a worker that is asked nothing: judge {here:.0f} ms, workers {workers:.0f} ms")
        with Earned(shared=False) as earned:
            for number, data in enumerate(notebooks):
                before = used()
                submission = Submission("", {}, cells=parse_cells(data, "a notebook"))
                with sampled(PARTS) as seen:
                    report = engine.grade(Request(submission, STAGES, 1), shared=earned.of)
                engine.interpreter.prepare()
                after = used()
                kind = "all right" if report.score == report.max_score else "something wrong"
                if not any(check.seconds for stage in report.stages for check in stage.checks):
                    kind = "all known"
                if number >= len(notebooks) // 2:
                    cost = (after[0] - before[0], after[1] - before[1])
                    taken.setdefault(kind, []).append(cost)
                    parts.setdefault(kind, Counter()).update(seen)

    with_engine(COURSE, STAGES, "cpu", body)
    for kind, costs in sorted(taken.items()):
        here, workers = (1000 * sum(cost[at] for cost in costs) / len(costs) for at in (0, 1))
        print(
            f"{kind:<16}{len(costs):5} submissions: judge {here:4.0f} ms, workers {workers:4.0f} ms"
        )
        tell_parts(here, parts[kind])


def tell_parts(milliseconds: float, looks: Counter[str]) -> None:
    """Tell how these milliseconds fall to the parts that were seen."""
    for part, count in looks.most_common():
        print(f"    {milliseconds * count / looks.total():4.0f} ms  {part}")


@contextmanager
def sampled(parts: Mapping[str, str]) -> Iterator[Counter[str]]:
    """Look now and then at what this process does, and count the looks by its `parts`.

    These are named by a piece of a file's path; the innermost frame that has one counts.
    """
    seen: Counter[str] = Counter()

    def look(number: int, frame: FrameType | None) -> None:
        while frame is not None:
            for place, part in parts.items():
                if place in frame.f_code.co_filename:
                    seen[part] += 1
                    return
            frame = frame.f_back
        seen["the rest"] += 1

    signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, _TICK, _TICK)
    try:
        yield seen
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def import_alone(engine: Engine) -> None:
    """Have a worker run the cells of a notebook, and end it."""
    worker = engine.interpreter.start()
    files = solution_files(COURSE)
    cells = tuple(files[stage.file_name].decode() for stage in STAGES)
    request = Import(COURSE, STAGES[-1], Submission("", {}, cells=cells), for_every_stage=True)
    worker.channel.send(request.request())
    worker.channel.receive()
    worker.end()


def tell_calls(engine: Engine) -> None:
    """Tell what the checks' calls of the solutions take without grading, worker or pytest."""
    submission = Submission("", solution_files(COURSE))
    calls, seconds = 0, 0.0
    parts: Counter[str] = Counter()
    for stage in STAGES:
        cases = engine.facts(Request(submission, (stage,), 1)).cases
        bench = Bench(local_solutions(COURSE, stage))

        def call(bench: Bench = bench, cases: Sequence[CaseFact] = cases) -> float:
            before = time.process_time()
            for case in cases:
                bench.reset()
                for exchange in case.exchanges:
                    bench.answer(exchange.request)
            return time.process_time() - before

        calls += sum(len(case.exchanges) for case in cases)
        seconds += min(call() for _ in range(_REPEATS))
        with sampled(PARTS_OF_CALLS) as seen:
            for _ in range(_REPEATS):
                call()
        parts.update(seen)
    print(f"the calls alone, {calls} of the solutions: {1000 * seconds:4.0f} ms")
    tell_parts(1000 * seconds, parts)


def with_memory(there: Path, *options: str) -> list[dict[str, list[float]]]:
    """Grade the submissions; now and then the private memory in MiB of each process, by kind."""
    seen: list[dict[str, list[float]]] = []
    process = class_command(there / "submissions", there / "results", *options)

    def watch() -> None:
        command = psutil.Process(process.pid)
        while process.poll() is None:
            now: dict[str, list[float]] = {"command": [], "lane": [], "worker": []}
            for kind, found in kinds_of(command):
                with suppress(psutil.Error):
                    now[kind].append(found.memory_full_info().uss / (1 << 20))
            seen.append(now)
            time.sleep(0.25)

    watcher = threading.Thread(target=watch)
    watcher.start()
    if process.wait() not in (0, 1):
        raise SystemExit(f"grade class ended with exit code {process.returncode}")
    watcher.join()
    return seen


def kinds_of(command: psutil.Process) -> Iterator[tuple[str, psutil.Process]]:
    """The processes of `grade class`: itself, its lanes, and what their interpreters fork."""
    with suppress(psutil.Error):
        yield "command", command
        for child in command.children():
            if "-c" in child.cmdline():  # the isolated interpreter, with its copies below it
                for below in child.children(recursive=True):
                    yield "worker", below
            else:
                yield "lane", child


def released_course(course: Path) -> None:
    """An nbgrader course whose assignment was generated."""
    grade("release", "nbgrader", "--course-dir", str(course))
    run([str(BIN / "nbgrader"), "generate_assignment", NAME], course)


def handed_in(course: Path, count: int, hostile: float = 0.0) -> Iterator[bytes]:
    """Notebooks of a class, of which a share is hostile."""
    released = json.loads((course / "release" / NAME / f"{NAME}.ipynb").read_text("utf-8"))
    draw = random.Random(1)
    for _ in range(count):
        attack = draw.choice(HOSTILE) if draw.random() < hostile else None
        yield json.dumps(answered(released, draw, attack)).encode()


def mostly_wrong(course: Path, count: int) -> Iterator[bytes]:
    """Notebooks of a class of which nine in ten are right except for a wrong module."""
    released = json.loads((course / "release" / NAME / f"{NAME}.ipynb").read_text("utf-8"))
    draw = random.Random(1)
    modules = wrong_texts(STAGES[-1])
    draw.shuffle(modules)
    for number in range(count):
        notebook = copy.deepcopy(released)
        taken: set[str] = set()
        for stage in reversed(STAGES):
            texts = right_texts(stage)
            if stage is STAGES[-1] and number % 10:
                texts = [modules[number % len(modules)]]
            code, names = draw.choice([each for each in map(code_of, texts) if not each[1] & taken])
            taken |= names
            for cell in notebook["cells"]:
                if cell["metadata"].get("nbgrader", {}).get("grade_id") == solution_id(stage):
                    cell["source"] = code
        yield json.dumps(notebook).encode()


def answered(released: dict[str, Any], draw: random.Random, attack: str | None) -> dict[str, Any]:
    """The released notebook with a student's answers."""
    notebook = copy.deepcopy(released)
    cells = {
        cell["metadata"].get("nbgrader", {}).get("grade_id"): cell for cell in notebook["cells"]
    }
    luck = draw.random()
    wrong: Sequence[Stage] = ()
    begun = len(STAGES)
    if luck < 0.25:
        wrong = draw.sample(STAGES, draw.choice((1, 1, 2)))
    elif luck < 0.35:
        begun = draw.randrange(1, len(STAGES))
    elif luck < 0.40:
        begun = 0
    taken: set[str] = set()
    for number, stage in enumerate(STAGES):
        code, _ = code_of(read_stub(stage))
        if number < begun:
            texts = wrong_texts(stage) if stage in wrong else right_texts(stage)
            code, names = draw.choice([each for each in map(code_of, texts) if not each[1] & taken])
            taken |= names
        cells[solution_id(stage)]["source"] = code
    if attack is not None:
        cell = cells[solution_id(draw.choice(STAGES))]
        cell["source"] = f"{cell['source']}\n\n{attack}\n"
    return notebook


def unlike(notebook: bytes, number: int) -> bytes:
    """The same answers, but as nobody else writes them."""
    changed = json.loads(notebook)
    for stage in STAGES:
        for cell in changed["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("grade_id") == solution_id(stage):
                cell["source"] += f"\n\nNUMBER_{stage.slug} = {number}\n"
    return json.dumps(changed).encode()


@cache
def right_texts(stage: Stage) -> list[str]:
    """The sources of a stage's accepted answers."""
    return [file.read_text("utf-8-sig") for file in sorted((RIGHT / stage.slug).glob("*.py"))]


def wrong_texts(stage: Stage) -> list[str]:
    """The sources of a stage's wrong answers."""
    return [answer.source for answer in wrong_answers(stage.slug)]


@cache
def code_of(source: str) -> tuple[str, frozenset[str]]:
    """An answer as a cell, and the global names that it defines."""
    code = cell_code(source, COURSE)
    return code, frozenset(names_of(code)[0])


def graded(
    there: Path, course: Path, way: str, notebooks: Sequence[bytes]
) -> tuple[float, dict[str, float]]:
    """The seconds that grading takes, and the points of each student."""
    shutil.rmtree(there, ignore_errors=True)
    shutil.copytree(course, there)
    if way in (STOCK, TWO):
        (there / "nbgrader_config.py").write_text(
            f"c = get_config()\nc.CourseDirectory.course_id = {COURSE.name!r}\n", encoding="utf-8"
        )
    for number, notebook in enumerate(notebooks):
        folder = there / "submitted" / f"student{number:05}" / NAME
        folder.mkdir(parents=True)
        (folder / f"{NAME}.ipynb").write_bytes(
            unlike(notebook, number) if way == DISTINCT else notebook
        )
    nbgrader = str(BIN / "nbgrader")
    start = time.perf_counter()
    if way in (CLASS, DISTINCT):
        class_command(there / "submitted", there / "results").wait()
    elif way == BOOK:
        grade("class", "--nbgrader", str(there), NAME)
    elif way == TWO:
        halves = ([nbgrader, "autograde", NAME, f"--student=*[{digits}]"] for digits in HALVES)
        for process in [started(words, there) for words in halves]:
            process.wait()
    else:
        run([nbgrader, "autograde", NAME], there)
    seconds = time.perf_counter() - start
    table = there / "results" / "scores.csv"
    if way not in (CLASS, DISTINCT):
        table = there / "grades.csv"
        run([nbgrader, "export"], there)
    with table.open(encoding="utf-8", newline="") as file:
        return seconds, {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}


HALVES = ("02468", "13579")  # the last digits of the students that each process grades


def class_command(folder: Path, out: Path, *options: str) -> subprocess.Popen[bytes]:
    """`grade class` on a folder."""
    words = ["class", str(folder), "--out", str(out), "--course", str(ROOT), "--seed", "1"]
    return started([sys.executable, "-m", "grader", *words, *options], ROOT)


def grade(*words: str) -> None:
    """Run our command on the course of this repository."""
    run([sys.executable, "-m", "grader", *words, "--course", str(ROOT)], ROOT)


def run(words: Sequence[str], folder: Path) -> None:
    """Run a command that must succeed."""
    done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stdout.decode()}{done.stderr.decode()}")


def started(words: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start a command that prints nothing."""
    silent = subprocess.DEVNULL
    return subprocess.Popen(words, cwd=folder, env=environment(), stdout=silent, stderr=silent)


def environment() -> dict[str, str]:
    """Where the commands of this Python are found, and the course."""
    path = os.pathsep.join([str(BIN), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "GRADE_COURSE": str(ROOT)}


if __name__ == "__main__":
    main(sys.argv[1:])
