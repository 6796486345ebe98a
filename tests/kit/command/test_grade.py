"""`grade` as a learner types it: what it prints and its exit code, often of a real process."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.command.grade import lanes
from tests.kit.support.checkout import COURSE, ROOT, TINY, imported_by, run_python, start_grade
from tests.kit.support.files import write_files
from tests.kit.support.processes import alive, descendants, until
from tests.kit.support.terminal import Terminal
from tests.kit.support.tiny import Say, copy_tiny, solve

STAGES = COURSE.stages
SLUGS = [stage.slug for stage in STAGES]
CORE = [stage.slug for stage in STAGES if not stage.bonus]
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

LOOP = "open('started', 'w').close()\nwhile True:\n    pass\n"


def patient(folder: Path) -> Path:
    """The tiny course, which lets an import take longer than any test."""
    return copy_tiny(folder / "patient", {"load_seconds = 5": "load_seconds = 90"}).root


def grade(
    *words: str, course: Path = TINY.root, cwd: Path | None = None, columns: int = 80
) -> subprocess.CompletedProcess[str]:
    env = {"COLUMNS": str(columns)}
    return run_python("-m", "grader", *words, "--course", course, env=env, cwd=cwd)


@pytest.fixture(scope="module")
def stubs() -> subprocess.CompletedProcess[str]:
    return grade("--submission", str(ROOT / "exercises"), course=ROOT)


@pytest.fixture(scope="module")
def solutions() -> subprocess.CompletedProcess[str]:
    return grade(*CORE, "--submission", str(ROOT / "solutions"), "--json", course=ROOT)


def test_untouched_stubs_are_not_yet_and_calm(stubs: subprocess.CompletedProcess[str]) -> None:
    assert stubs.returncode == 1
    assert stubs.stderr == ""
    assert "✗" not in stubs.stdout
    assert "failed" not in stubs.stdout
    assert "0 / 100" in stubs.stdout
    assert stubs.stdout.count("not started") == len(CORE) + 1, "the bonus stages share a line"
    assert "Welcome!" in stubs.stdout
    assert "\x1b" not in stubs.stdout
    assert max(map(len, stubs.stdout.splitlines())) <= 80


def test_the_solutions_get_everything(solutions: subprocess.CompletedProcess[str]) -> None:
    everything(solutions, CORE, bonus=0)


@pytest.mark.slow
def test_the_solutions_of_the_bonus_stages_too() -> None:
    done = grade("--submission", str(ROOT / "solutions"), "--json", course=ROOT)
    everything(done, SLUGS, bonus=sum(stage.points for stage in STAGES if stage.bonus))


def everything(done: subprocess.CompletedProcess[str], slugs: list[str], bonus: int) -> None:
    assert done.returncode == 0, done.stdout
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert (report["score"], report["max_score"], report["bonus"]) == (100, 100, bonus)
    assert [stage["slug"] for stage in report["stages"]] == slugs
    assert {stage["status"] for stage in report["stages"]} == {"passed"}


# --- the report of DESIGN section 5, key by key --------------------------------------------------

NUMBER = (int, float)
REPORT = {
    "schema": int,
    "course": str,
    "submission": str,
    "device": str,
    "score": NUMBER,
    "max_score": NUMBER,
    "bonus": NUMBER,
    "stages": list,
    "version": str,
}
STAGE = {
    "slug": str,
    "title": str,
    "status": str,
    "score": NUMBER,
    "max_score": NUMBER,
    "bonus": bool,
    "caused_by": (str, type(None)),
    "checks": list,
}
CHECK = {
    "id": str,
    "title": str,
    "outcome": str,
    "score": NUMBER,
    "max_score": NUMBER,
    "message": str,
    "diagnosis": (dict, type(None)),
    "hint": int,
    "way": str,
    "size": int,
    "seconds": NUMBER,
}
DIAGNOSIS = {"id": str, "text": str, "hint": int}
OPTIONAL = ("version", "hint", "way", "size")  # left out if there is none


def fits(data: dict[str, Any], kinds: dict[str, Any]) -> None:
    keys = {key: kind for key, kind in kinds.items() if key in data or key not in OPTIONAL}
    assert list(data) == list(keys)
    for key, kind in keys.items():
        assert isinstance(data[key], kind), key
        assert kind is bool or not isinstance(data[key], bool), key


def test_json_is_schema_1(solutions: subprocess.CompletedProcess[str], tmp_path: Path) -> None:
    (tmp_path / "moving_average.py").write_text(
        "import numpy as np\n\n\ndef moving_average(values, width):\n"
        "    if not 1 <= width <= len(values):\n        raise ValueError\n"
        "    return np.convolve(values, np.ones(width), mode='valid')\n",
        encoding="utf-8",
    )
    shutil.copy(TINY.root / "solutions" / "smooth.py", tmp_path)
    shutil.copy(TINY.root / "exercises" / "roughness.py", tmp_path)
    wrong = grade("--submission", str(tmp_path), "--json")
    assert wrong.returncode == 1
    reports = [json.loads(solutions.stdout), json.loads(wrong.stdout)]
    diagnoses = []
    for report in reports:
        fits(report, REPORT)
        assert report["schema"] == 1
        assert report["device"] in ("cpu", "cuda", "mps")
        for stage in report["stages"]:
            fits(stage, STAGE)
            assert stage["status"] in ("passed", "failed", "not_started", "error")
            assert stage["score"] == sum(check["score"] for check in stage["checks"])
            for check in stage["checks"]:
                fits(check, CHECK)
                assert check["outcome"] in ("passed", "failed", "skipped", "error", "timeout")
                if check["diagnosis"] is not None:
                    fits(check["diagnosis"], DIAGNOSIS)
                    diagnoses.append(check["diagnosis"]["id"])
    assert "average_sum" in diagnoses
    assert [stage["caused_by"] for stage in reports[1]["stages"]] == [None, "moving_average", None]
    assert reports[1]["stages"][2]["status"] == "not_started"


# --- unchanged stages ----------------------------------------------------------------------------


def test_unchanged_stages_keep_their_verdicts_at_once(
    tiny: Path, say: Say, checks_apart: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A verdict depends on it, and the first run in this process sets it.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    solve(tiny, "moving_average", "smooth")  # the bonus stage stays a stub

    def report(*words: str) -> Any:
        return json.loads(say("grade", *words, "--json")[1])

    first, again = report(), report()
    unchanged = again.pop("unchanged")
    assert unchanged == ["moving_average", "smooth"]
    for stage in (*first["stages"], *again["stages"]):
        for check in stage["checks"]:
            del check["seconds"]
    assert again == first
    assert "unchanged" not in report("--fresh")
    assert "unchanged" not in report("--seed", "3")
    assert "unchanged" not in report("--submission", str(tiny / "exercises"))
    smooth = tiny / "exercises" / "smooth.py"
    smooth.write_text(smooth.read_text("utf-8") + "\n", encoding="utf-8")
    assert report()["unchanged"] == ["moving_average"]

    told = "1 unchanged stage was not rerun; `grade --fresh` reruns it"
    imported = imported_by("smooth", shows=told, cwd=tiny)
    assert "grader.engine" in imported
    assert not imported & {"torch", "numpy", "pytest"}


def test_a_file_that_is_lost_can_be_restored(tiny: Path, say: Say, checks_apart: None) -> None:
    file = tiny / "exercises" / "moving_average.py"
    file.write_text("\n", encoding="utf-8")
    assert "grade reset moving_average" in say("grade", "moving_average")[1]
    file.unlink()
    advice = "If the file is lost:  grade reset moving_average"
    for words in ((), ("--all",)):
        _, said, _ = say("grade", "moving_average", *words)
        assert "There is no file moving_average.py" in said and advice in said
        assert "grade hint" not in said
    elsewhere = ("moving_average", "--submission", str(tiny / "exercises"))
    assert "grade reset" not in say("grade", *elsewhere)[1]


def test_what_is_offered_for_a_submission_elsewhere_can_be_typed_as_it_is(
    tiny: Path, say: Say, checks_apart: None
) -> None:
    folder = tiny / "my work, second try, with what the tutor said about the first"
    folder.mkdir()
    text = "def roughness(values):\n    return -1.0\n"
    (folder / "roughness.py").write_text(text, encoding="utf-8")
    _, said, _ = say("grade", "roughness", "--submission", str(folder))
    [offered] = re.findall(r"grade repro .*", said)
    code, shown, _ = say(*shlex.split(offered)[1:])
    assert code == 0 and "from roughness import roughness" in shown


def test_the_working_folder_is_named_if_it_is_graded(
    tiny: Path, say: Say, checks_apart: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny / "exercises")
    assert " exercises, cpu, seed " in say("grade", "smooth")[1]


def test_a_file_in_a_folder_below_is_named(tiny: Path, say: Say, checks_apart: None) -> None:
    below = tiny / "unpacked" / "my homework"
    below.mkdir(parents=True)
    shutil.copy(TINY.root / "solutions" / "smooth.py", below)
    _, said, _ = say("grade", "smooth", "--submission", "unpacked")
    assert "There is no file smooth.py; did you name it my homework/smooth.py?" in said


# --- words on the command line -------------------------------------------------------------------


def one_line(done: tuple[int, str, str], *needles: str) -> None:
    code, shown, errors = done
    assert (code, shown) == (2, "")
    lines = errors.splitlines()
    assert len(lines) == 1, errors
    for needle in needles:
        assert needle in lines[0]


def test_a_stage_that_is_not_there(tiny: Path, say: Say) -> None:
    done = grade("smoth")
    told = done.returncode, done.stdout, done.stderr
    one_line(told, "there is no stage 'smoth'", "did you mean 'smooth'?")
    one_line(say("nosuch"), "there is no stage 'nosuch'", "grade list")


def test_an_answer_in_a_text_cell_of_a_notebook_is_told(tiny: Path, say: Say) -> None:
    cells = [{"cell_type": "markdown", "source": "def smooth(values): ..."}]
    (tiny / "work.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    code, shown, _ = say("--submission", "work.ipynb")
    assert code == 1 and "smooth is in a text cell, which is not run: make it a code cell." in shown


def test_a_notebook_beside_files_without_answers_is_told(tiny: Path, say: Say) -> None:
    (tiny / "exercises" / "my.ipynb").write_text('{"cells": []}', encoding="utf-8")
    told = "my.ipynb was not graded: grade it with --submission exercises/my.ipynb"
    assert told in say()[1] and told in say("--submission", "exercises")[1]
    (tiny / "exercises" / "my.ipynb").rename(tiny / "my own.ipynb")
    assert "graded: grade it with --submission 'my own.ipynb'" in say()[1]
    shutil.copytree(tiny / "solutions", tiny / "exercises", dirs_exist_ok=True)
    assert "was not graded" not in say("--submission", "exercises")[1]


def test_one_file_in_a_folder_is_graded_as_the_file(tiny: Path, say: Say) -> None:
    texts = [(tiny / "solutions" / f"{s}.py").read_text() for s in ("moving_average", "roughness")]
    code = re.sub(r"^from \w+ import .*$", "", "\n".join(texts), flags=re.MULTILINE)
    write_files(tiny / "work", {"solution.py": code})
    shown = say("--submission", "work")[1]
    assert "There is no file" not in shown
    assert (
        say("--submission", "work/solution.py")[1]
        .split("seed")[0]
        .replace("work/solution.py", "work")
        == shown.split("seed")[0]
    )


def test_a_submission_that_is_not_there(tiny: Path, say: Say) -> None:
    folder = tiny / "notes"
    folder.mkdir()
    one_line(say("--submission", str(folder / "absent")), "absent: cannot be read")
    (folder / "notes.txt").write_text("no code")
    one_line(say("--submission", str(folder / "notes.txt")), "a folder of .py files")
    (folder / "work.ipynb").write_text("{}")
    one_line(say("--submission", str(folder)), "--submission", "work.ipynb")


def test_a_course_that_is_not_there(tmp_path: Path, say: Say) -> None:
    one_line(say("--course", str(tmp_path)), "course.toml")


# --- colour and width ----------------------------------------------------------------------------


def test_colour_only_where_it_is_wanted() -> None:
    words = ("--submission", str(TINY.exercises), "--course", str(TINY.root))
    for more, in_colour in (({}, True), ({"NO_COLOR": "1"}, False)):
        with Terminal(ROOT, *words, **more) as terminal:
            assert terminal.ends() == 1
            terminal.until(lambda shown=terminal: "not started" in shown.raw, "not shown")
            assert bool(re.search(r"\x1b\[[0-9;]*3[0-7]m", terminal.raw)) is in_colour


def test_long_words_stay_within_80_columns(tiny: Path, say: Say, checks_apart: None) -> None:
    word = "unbreakable" * 30
    (tiny / "exercises" / "moving_average.py").write_text(
        f"def moving_average(values, width):\n    {word}()\n"
    )
    code, shown, _ = say("--all")
    assert code == 1
    assert "unbreakable" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown


# --- a seed repeats a run ------------------------------------------------------------------------


def test_a_seed_repeats_a_run_exactly(tiny: Path, say: Say, checks_apart: None) -> None:
    (tiny / "exercises" / "moving_average.py").write_text(
        "import random\n\nimport numpy as np\n\n\ndef moving_average(values, width):\n"
        "    if len(values) == 7:  # the one case that is drawn anew for each seed\n"
        "        raise RuntimeError(f'{random.random()} {np.random.rand()} {values[0]}')\n"
        "    return np.convolve(values, np.full(width, 1 / width), 'valid')\n"
    )

    def messages(shown: str) -> list[str]:
        (stage,) = json.loads(shown)["stages"]
        return [check["message"] for check in stage["checks"]]

    words = ["moving_average", "--fresh", "--json", "--seed"]
    first = messages(say(*words, "5")[1])
    assert first == messages(grade(*words, "5", course=tiny, cwd=tiny).stdout)  # another process
    assert first != messages(say(*words, "6")[1])


def test_as_many_work_at_a_time_as_are_asked_for_or_there_are_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert lanes(3) == 3
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)  # as on a Mac
    assert lanes(None) == os.cpu_count()


# --- stopped in the middle -----------------------------------------------------------------------


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Starts `grade` on this moving_average.py in a process group of its own, as a shell does."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    started: list[subprocess.Popen[str]] = []

    def start(source: str) -> subprocess.Popen[str]:
        folder = tmp_path / "submission"
        folder.mkdir()
        (folder / "moving_average.py").write_text(source)
        words = ("--submission", folder, "--course", patient(tmp_path))
        env = {"TMPDIR": str(scratch)}
        started.append(start_grade(*words, env=env, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        left = alive(descendants(process.pid) | {process.pid})
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        process.communicate()


def stopped_by_ctrl_c(process: subprocess.Popen[str]) -> None:
    """Press Ctrl-C, and again if that does nothing: an import may swallow the first one."""
    start = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    try:
        out, err = process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert time.monotonic() - start < 40  # of the 90 that the loop may take
    # An interrupted exec() makes Python end by the signal, after our words: shells call it 130 too.
    assert process.returncode in (130, -signal.SIGINT), out + err
    said = "grade: stopped; no work is lost: rerun the command to continue"
    assert (out, err.splitlines()) == ("", [said])


@linux_only
@pytest.mark.parametrize(
    "begun, after",
    [("*/*/started", 0.0), ("*", 0.0), ("*", 0.15), ("*", 0.4)],
    ids=["in an endless loop", "while starting", "soon after", "later"],
)
def test_ctrl_c_leaves_nothing(
    running: Callable[[str], subprocess.Popen[str]], tmp_path: Path, begun: str, after: float
) -> None:
    process = running(LOOP)
    is_begun = lambda: list(tmp_path.glob(f"scratch/{begun}")) and descendants(process.pid)  # noqa: E731
    assert until(is_begun, 60)
    time.sleep(after)
    below = descendants(process.pid)
    assert len(below) >= 2 or begun == "*"  # the isolated interpreter and a worker, or pairs
    stopped_by_ctrl_c(process)
    assert until(lambda: not alive(below), 30), alive(below)
    assert list((tmp_path / "scratch").iterdir()) == []


@linux_only
def test_killed_it_leaves_no_process(
    running: Callable[[str], subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = running(LOOP)
    assert until(lambda: list(tmp_path.glob("scratch/*/*/started")), 60)
    below = descendants(process.pid)
    assert len(below) >= 2
    process.kill()
    process.wait(timeout=30)
    assert until(lambda: not alive(below), 30), alive(below)


def test_a_terminal_without_a_size_shows_everything() -> None:
    assert "moving_average" in grade("list", columns=0).stdout
