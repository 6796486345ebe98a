"""A class's folder is graded once, goes on where it stopped, and every point can be defended."""

import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psutil
import pytest

from grader.classes.alone import alone
from grader.classes.folder.ledger import FILE, open_ledger
from grader.command.main import main
from grader.engine import Engine, Request
from tests.kit.classes.folder_class import (
    AVERAGE,
    NO_ERROR,
    ONE_TOO_FEW,
    RIGHT,
    class_of,
    grade_class,
    gradebook,
    hand_in,
    results_of,
    scores,
    verdicts,
)
from tests.kit.support.checkout import TINY, start_grade
from tests.kit.support.files import edit, write_files
from tests.kit.support.tiny import Capture, Say, Typed, copy_tiny

ENDS = "import os\nos._exit(0)\n"


@pytest.fixture(scope="module")
def seven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny course, seven submissions to it, and their results, graded with seed 5.

    They are right, wrong in two ways, copied, untouched, hostile and unreadable. One file is
    skipped.
    """
    root = tmp_path_factory.mktemp("seven")
    copy_tiny(root / "course")
    folder = root / "submissions"
    stub = (TINY.root / "exercises" / "moving_average.py").read_text("utf-8")
    known = {"ann": RIGHT, "bob": ONE_TOO_FEW, "cas": NO_ERROR, "dan": NO_ERROR}
    hand_in(folder, **known, eve=stub, fay=ENDS)
    (folder / "gus.ipynb").write_text("no notebook", encoding="utf-8")
    (folder / "hal.docx").touch()
    grade_class(root / "course", root / "results", folder, "--seed", "5")
    return root


@pytest.fixture
def course(seven: Path, tmp_path: Path) -> Path:
    """A copy of the tiny course, which a test may change."""
    return Path(shutil.copytree(seven / "course", tmp_path / "course"))


@pytest.fixture
def submissions(seven: Path, tmp_path: Path) -> Path:
    """A copy of the seven submissions."""
    return Path(shutil.copytree(seven / "submissions", tmp_path / "submissions"))


@pytest.fixture
def results(seven: Path, tmp_path: Path) -> Path:
    """A copy of their results."""
    return Path(shutil.copytree(seven / "results", tmp_path / "results"))


SCORES = {"ann": "10", "bob": "1", "cas": "9", "dan": "9", "eve": "0", "fay": "0", "gus": "0"}


def test_everybody_gets_the_points_that_grade_gives(
    course: Path, submissions: Path, tmp_path: Path, capsys: Capture, grade: Typed
) -> None:
    out = tmp_path / "results"
    assert "gus" in grade(*class_of(course, out), str(submissions), "--seed", "5")
    found = scores(out)
    for student in sorted(SCORES.keys() - {"gus"}):
        words = ["--course", str(course), "--submission", str(submissions / student)]
        main(["grade", *words, "--json", "--seed", "5", "moving_average", "smooth"])
        report = json.loads(capsys.readouterr().out)
        assert float(found[student]) == report["score"], student
    assert found == SCORES


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_submission_that_the_kit_fails_on_costs_nobody_else_a_verdict(
    jobs: str, course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    words = (course, tmp_path / "out", tmp_path / "class", "--jobs", jobs)
    hand_in(tmp_path / "class", ann=RIGHT, eve=NO_ERROR, fay=ONE_TOO_FEW)
    grade_one = Engine.grade

    def fails_on_eve(engine: Engine, request: Request, *rest: Any, **more: Any) -> Any:
        if NO_ERROR.encode() in request.submission.files.values():
            raise ZeroDivisionError("a fault of the kit")
        return grade_one(engine, request, *rest, **more)

    with monkeypatch.context() as patched:
        patched.setattr(Engine, "grade", fails_on_eve)
        assert grade_class(*words) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "the kit failed on it: ZeroDivisionError: a fault of the kit" in said
    assert scores(tmp_path / "out") == {"ann": "10", "eve": "", "fay": "1"}
    assert grade_class(*words) == 0
    assert scores(tmp_path / "out") == {"ann": "10", "eve": "9", "fay": "1"}


@pytest.mark.parametrize("word", ["soon", "0", "-1", "nan", "inf"])
def test_the_seconds_for_a_submission_are_a_number_above_0(
    course: Path, tmp_path: Path, capsys: Capture, word: str
) -> None:
    words = ("here", f"--seconds-per-submission={word}")
    assert grade_class(course, tmp_path / "results", *words) == 2
    assert f"must be a number above 0, not '{word}'" in capsys.readouterr().err


SLEEPS = f"import time\n{RIGHT}".replace("    return", "    time.sleep(1.8)\n    return")


@pytest.mark.slow
def test_who_came_near_the_limit_is_named_and_nobody_passes_it(
    course: Path, tmp_path: Path, capsys: Capture
) -> None:
    submissions, out = tmp_path / "submissions", tmp_path / "results"
    hand_in(submissions, ann=RIGHT, sly=SLEEPS)
    start = time.monotonic()
    assert grade_class(course, out, submissions, "--seconds-per-submission", "4") == 0
    assert time.monotonic() - start < 25  # with the start of the command
    told = capsys.readouterr().out
    assert "Used more than half of the 4 seconds for one submission:" in told
    assert re.search(r"sly: [45] seconds", told) and "ann:" not in told
    assert "some checks may not have run" in told and "--regrade --seconds-per" in told
    assert scores(out)["ann"] == "10" and float(scores(out)["sly"]) < 10
    assert grade_class(course, out, "--regrade") == 0  # the results keep the number
    assert "nothing to regrade" in capsys.readouterr().out


def test_the_screen_says_that_its_mean_is_without_the_unreadable(
    course: Path, tmp_path: Path, capsys: Capture
) -> None:
    hand_in(tmp_path / "two", ann=RIGHT)
    (tmp_path / "two" / "gus.ipynb").write_text("no notebook", encoding="utf-8")
    assert grade_class(course, tmp_path / "out", tmp_path / "two") == 0
    said = capsys.readouterr().out
    assert "2 submissions graded" in said
    assert "Of 10 points, without the 1 unreadable: median 10, mean 10, from 10 to 10." in said


def test_a_student_whose_files_are_gone_keeps_the_verdict_and_is_named(
    course: Path, tmp_path: Path, capsys: Capture
) -> None:
    folder = tmp_path / "two"
    hand_in(folder, ann=RIGHT, kim=RIGHT)
    assert grade_class(course, tmp_path / "out", folder) == 0
    assert "from before" not in capsys.readouterr().out
    (folder / "kim").rename(folder / "kimberly")
    assert grade_class(course, tmp_path / "out", folder) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "1 submission graded, 3 in total" in said and "verdict from before: kim." in said


def test_the_lines_of_json_hold_the_whole_verdict(results: Path) -> None:
    by_student = results_of(results)
    assert by_student.keys() == SCORES.keys()
    assert by_student["bob"]["report"]["score"] == 1
    assert by_student["bob"]["seed"] == 5
    assert by_student["gus"]["report"]["score"] == 0
    reasons = {c["message"] for s in by_student["gus"]["report"]["stages"] for c in s["checks"]}
    assert reasons == set(by_student["gus"]["notes"])


def test_junit_is_written_for_each_student(course: Path, submissions: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    hand_in(submissions, **dict.fromkeys(("å b", "å" * 100, "å" * 101, "Ab", "aB", "con.x"), RIGHT))
    grade_class(course, out, submissions, "--junit")
    files = sorted((out / "junit").iterdir())
    assert len({file.name.lower() for file in files}) == len(SCORES) + 6
    assert not (out / "junit" / "con.x.xml").exists()  # Windows would write to a device
    totals = {file.stem: ElementTree.parse(file).getroot().get("failures") for file in files}
    assert totals["ann"] == "0" and totals["bob"] != "0"


def numbers(out: Path) -> dict[str, int]:
    """The place in the ledger of each verdict that counts."""
    with open_ledger(out, create=False) as ledger:
        return {entry.student: entry.number for entry in ledger.latest() if not entry.is_lost}


def test_only_what_is_new_is_graded_with_the_seed_of_the_class(
    course: Path, results: Path, submissions: Path, grade: Typed
) -> None:
    before = numbers(results)
    hand_in(submissions, bob=RIGHT, hal=ONE_TOO_FEW)
    assert "8 in total, seed 5." in grade(*class_of(course, results), str(submissions), "--junit")
    assert "graded, seed 5. Of 10 points" in (results / "report.html").read_text("utf-8")
    assert 'name="seed" value="5"' in (results / "junit" / "hal.xml").read_text("utf-8")
    after = numbers(results)
    assert {student for student in after if after[student] != before.get(student)} == {"bob", "hal"}
    assert scores(results) == {**SCORES, "bob": "10", "hal": "1"}
    with open_ledger(results, create=False) as ledger:
        assert [entry.report and entry.report.score for entry in ledger.history("bob")] == [1, 10]
        assert {entry.seed for entry in ledger.latest()} == {5}


def test_the_same_answers_are_graded_once(course: Path, submissions: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    grade_class(course, out, submissions, "--jobs", "1")
    with open_ledger(out, create=False) as ledger:
        seconds = {entry.student: entry.seconds for entry in ledger.latest()}
    assert seconds["cas"] > 0 and seconds["dan"] == 0


def test_a_timeout_of_one_student_counts_for_no_other(course: Path, tmp_path: Path) -> None:
    out, endless = tmp_path / "results", f"{AVERAGE}    while True: pass\n"
    hand_in(tmp_path / "two", ann=endless, bob=endless)
    grade_class(course, out, tmp_path / "two", "--seconds-per-submission", "1", "--jobs", "1")
    with open_ledger(out, create=False) as ledger:
        assert all(entry.seconds > 0 for entry in ledger.latest())


def change_check(course: Path, old: str, new: str) -> None:
    edit(course / "tests" / "checks" / "test_moving_average.py", old, new)


def test_a_change_that_changes_no_points_needs_no_asking(
    course: Path, results: Path, submissions: Path, say: Say, grade: Typed
) -> None:
    before = numbers(results)
    change_check(course, "@pytest.mark.points(3)", "@pytest.mark.points(3.0)")
    change_check(course, 'what="the average"', 'what="the mean", atol=99.0')

    assert "may be different now" in grade(*class_of(course, results), str(submissions))
    assert numbers(results) == before

    code, shown, _ = say(*class_of(course, results), "--regrade")
    assert code == 0 and "no points change" in shown
    assert scores(results) == SCORES and numbers(results) != before


def test_a_check_that_was_mended_gives_points_when_they_are_accepted(
    course: Path, results: Path, capsys: Capture, grade: Typed
) -> None:
    change_check(course, "    with expect_raises", "    return\n    with expect_raises")
    (course / "hints" / "misconceptions" / "moving_average.py").unlink()
    # The check now passes whatever is handed in, so that it can be seen who gains by it.
    before = numbers(results)
    assert grade_class(course, results, "--regrade") == 1  # no terminal to ask on
    asked = capsys.readouterr()
    assert "--yes" in asked.err and numbers(results) == before
    shown = asked.out
    assert re.search(r"cas +9 -> 10", shown) and re.search(r"dan +9 -> 10", shown)
    assert "gained refusal" in shown and "ann" not in shown.split("would change")[1]
    assert scores(results) == SCORES

    assert grade_class(course, results, "--regrade", "--yes") == 0
    assert scores(results)["cas"] == scores(results)["dan"] == "10"
    with open_ledger(results, create=False) as ledger:
        assert [entry.report and entry.report.score for entry in ledger.history("cas")] == [9, 10]
    assert "hal.docx is not a folder" in (results / "report.html").read_text("utf-8")
    assert "nothing to regrade" in grade(*class_of(course, results), "--regrade", "--yes")


def test_without_a_terminal_regrade_says_how_to_accept_before_it_works(
    course: Path, results: Path, capsys: Capture, refused: Typed
) -> None:
    edit(course / "course.toml", "points = 6", "points = 5")
    capsys.readouterr()
    assert grade_class(course, results, "--regrade") == 2  # in two lines
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert "to accept them, add --yes" in first and "has 5 points" in second
    assert "--yes" not in refused(*class_of(course, results), "--regrade", "--yes")


def test_a_library_that_is_missing_is_named_and_what_needs_it_regraded_once_it_is_there(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grade: Typed
) -> None:
    out, lib = tmp_path / "results", tmp_path / "lib"
    hand_in(tmp_path / "class", ann=RIGHT, bob=f"import a_library\n{RIGHT}", eve=RIGHT)
    (tmp_path / "class" / "eve" / "moving_average.py").unlink()
    grade_class(course, out, tmp_path / "class")
    notes = {student: row["notes"] for student, row in gradebook(out).items()}
    assert notes["bob"].startswith("a_library is neither submitted nor installed here: if ")
    assert notes["ann"] == notes["eve"] == ""
    regrade = (*class_of(course, out), "--regrade", "--yes")
    assert "nothing to regrade" in grade(*regrade)
    write_files(lib, {"a_library.py": ""})
    monkeypatch.syspath_prepend(lib)
    assert "Regraded 1: " in grade(*regrade)


def test_who_is_at_work_keeps_another_out(
    course: Path, submissions: Path, tmp_path: Path, refused: Typed
) -> None:
    out = tmp_path / "results"
    with alone(out):
        for words in ([str(submissions)], ["--regrade"]):
            assert f"process {os.getpid()} on" in refused(*class_of(course, out), *words)


def test_an_untouched_stub_is_not_graded_again(course: Path, results: Path) -> None:
    change_check(course, 'what="the average"', 'what="the average", atol=99.0')
    before = numbers(results)
    grade_class(course, results, "--regrade", "--yes")
    after = numbers(results)
    # smooth is begun in eve's folder and rests on moving_average; gus has nothing to grade.
    assert {student for student in after if after[student] == before[student]} == {"gus"}


def test_why_replays_a_verdict_exactly(
    course: Path, results: Path, submissions: Path, grade: Typed
) -> None:
    shutil.rmtree(submissions)  # the ledger has what was handed in
    shown = grade(*class_of(course, results), "--why", "bob")
    assert "every check gave the same result" in shown and "seed 5" in shown
    assert len(shown.splitlines()) <= 24 and "do not pass yet" not in shown
    one = next(line for line in shown.splitlines() if "--why=bob moving_average" in line)
    words = shlex.split(one[one.index("grade class") :])[2:]
    assert Path(words[-1]) == course  # the command works in any folder
    shown = grade("class", *words)
    assert "every check gave the same result" in shown
    assert "The average is wrong" in shown or "shape" in shown


def test_why_points_at_a_mistake_that_has_no_name(
    course: Path, tmp_path: Path, grade: Typed
) -> None:
    submissions, out = tmp_path / "submissions", tmp_path / "results"
    hand_in(submissions, ian=RIGHT.replace("/ width", "/ width * 1.5"))
    grade_class(course, out, submissions)
    shown = grade(*class_of(course, out), "--why", "ian", "moving_average")
    assert "this operation, which is not needed" in shown and "^^^" in shown
    assert "every check gave the same result" in shown


def test_the_report_points_into_one_of_the_answers_that_share_a_mistake_without_a_name(
    course: Path, tmp_path: Path
) -> None:
    submissions, out = tmp_path / "submissions", tmp_path / "results"
    wrong = RIGHT.replace("/ width", "/ width * 1.5")
    hand_in(submissions, ann=RIGHT, ian=wrong, joe=f"# mine\n{wrong}")
    grade_class(course, out, submissions)
    page = (out / "report.html").read_text(encoding="utf-8")
    shown = page.partition('<h2 id="unexplained">')[2].partition("</section>")[0]
    assert "ian</bdi>" in shown and "joe</bdi>" in shown and "ann" not in shown
    assert "line 6: this operation, which is not needed" in shown and "^^^" in shown
    grade_class(course, out, submissions)  # nothing is new: the ledger has kept the place
    assert (out / "report.html").read_text(encoding="utf-8") == page


def test_why_of_nobody_names_who_is_meant(course: Path, results: Path, refused: Typed) -> None:
    for name in ("bobb", "BOB", "bo"):
        assert "did you mean 'bob'?" in refused(*class_of(course, results), "--why", name)


def test_why_of_what_could_not_be_read_says_so(course: Path, results: Path, grade: Typed) -> None:
    shown = " ".join(grade(*class_of(course, results), "--why", "gus").split())
    assert ": 0 points, seed" in shown and "is not a notebook" in shown


def test_points_that_do_not_add_up_are_told_before_anybody_is_graded(
    course: Path, submissions: Path, tmp_path: Path, refused: Typed
) -> None:
    edit(course / "course.toml", "points = 6", "points = 5")
    said = refused(*class_of(course, tmp_path / "results"), str(submissions))
    assert "has 5 points, but the checks in" in said and "are worth 6" in said


def test_a_check_that_is_worth_less_is_not_called_lost(
    course: Path, results: Path, grade: Typed
) -> None:
    edit(course / "course.toml", "points = 6", "points = 5")
    change_check(course, "points(3)", "points(2)")
    shown = grade(*class_of(course, results), "--regrade", "--yes")
    assert "worth other points now:" in shown and "lost" not in shown
    assert "can-be-read" not in shown
    rows = gradebook(results).values()  # also of who has nothing that can be read
    assert len({row["max_score"] for row in rows}) == 1


def test_follow_through_gives_a_stage_its_points_that_only_an_earlier_one_spoils(
    course: Path, submissions: Path, tmp_path: Path
) -> None:
    edit(course / "course.toml", "preload =", "follow_through = true\npreload =")
    out = tmp_path / "results"
    grade_class(course, out, submissions, "--seed", "5")
    assert scores(out) == {**SCORES, "bob": "5", "eve": "4", "fay": "4"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name the folder"),
        (("nowhere",), "cannot be read"),
        (
            ("here", "--force"),
            "--force works only with --nbgrader: to regrade here, type --regrade",
        ),
        (("here", "--nbgrader", "x", "--times", "a.csv"), "--out does not work with --nbgrader"),
        (("--regrade",), "has no results yet"),
        (
            ("smooth", "--regrade"),
            "--regrade reads the submissions that --out keeps: remove 'smooth'",
        ),
        (("smooth", "--requests", "a.csv"), "--requests reads the submissions that --out keeps"),
        (("--regrade", "--times", "a.csv"), "--times counts only when a folder is graded"),
        (("--why", "ann"), "has no results yet"),
        (("here", "--assignment", "other"), "no assignment 'other': choose one of "),
        ((".",), "is inside ., where it would count as a student: choose another folder"),
        (("results",), "is inside results"),
    ],
)
def test_a_mistake_of_the_instructors_is_told_in_a_line(
    course: Path,
    tmp_path: Path,
    refused: Typed,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    error = refused(*class_of(course, tmp_path / "results"), *words)
    assert said in error and "Traceback" not in error


def test_a_question_about_no_results_asks_for_them(refused: Typed) -> None:
    assert "--why needs the folder of the class's results" in refused("class", "--why", "ann")


STUDENTS, KILLS = 60, 24


def start(course: Path, out: Path, submissions: Path) -> subprocess.Popen[str]:
    words = ("class", submissions, "--out", out, "--course", course, "--seed", "5")
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return start_grade(*words, start_new_session=True, **silent)


def hand_in_another(folder: Path, count: int) -> None:
    """So many new submissions, no two the same."""
    answers = (RIGHT, ONE_TOO_FEW, NO_ERROR, ENDS)
    first = len(list(folder.glob("*")))
    for number in range(first, first + count):
        answer = f"{answers[number % 4]}\nNUMBER = {number}\n"
        hand_in(folder, **{f"s{number:04}": answer})


def lanes_and_workers(command: int) -> tuple[list[int], list[int]]:
    """The processes that grade for a command, and those in which submissions run."""
    lanes, workers = [], []
    with suppress(psutil.Error):
        for child in psutil.Process(command).children():
            if "-c" in child.cmdline():  # the isolated interpreter, with a copy for each lane
                workers += [w.pid for copy in child.children() for w in copy.children()]
            else:
                lanes.append(child.pid)
    return lanes, workers


def killed(process: subprocess.Popen[str], kind: str, draw: random.Random) -> bool:
    """Kill the command, or one of its lanes or workers: False if there is none just now."""
    if process.poll() is not None:
        return False
    try:
        if kind == "command":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            os.kill(draw.choice(lanes_and_workers(process.pid)[kind == "worker"]), signal.SIGKILL)
    except (IndexError, ProcessLookupError):
        return False
    return True


def kill_and_resume(course: Path, folder: Path, out: Path, kills: int) -> None:
    """Grade while the command, a lane or a worker is killed at random moments; then to the end.

    Whenever the class ends before the next kill, more is handed in: no kill is left out.
    """

    def kept() -> dict[str, int]:
        return numbers(out) if (out / FILE).exists() else {}

    draw = random.Random(3)
    finished: dict[str, int] = {}
    process = start(course, out, folder)
    for number in range(kills):
        kind = ("command", "lane", "worker", "lane")[number % 4]
        time.sleep(draw.uniform(0, 0.3))  # perhaps before anything is graded
        while number % 8 == 4 and process.poll() is None and kept() == finished:
            time.sleep(0.01)  # this kill is of the command, and comes after something new
        while not killed(process, kind, draw):
            if process.poll() is not None:
                hand_in_another(folder, STUDENTS)
                process = start(course, out, folder)
            time.sleep(0.01)
        if kind == "command":
            process.wait()
            there = kept()
            assert finished.items() <= there.items(), "what is finished is neither lost nor redone"
            finished = there
            process = start(course, out, folder)
    assert finished, "what was graded before a kill is kept"
    process.wait()
    assert start(course, out, folder).wait() == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_again_and_again_it_ends_as_if_it_had_never_been(
    course: Path, tmp_path: Path
) -> None:
    folder, out = tmp_path / "many", tmp_path / "killed"
    hand_in_another(folder, STUDENTS)
    kill_and_resume(course, folder, out, KILLS)
    assert start(course, tmp_path / "whole", folder).wait() == 0
    for found, due in zip(verdicts(out), verdicts(tmp_path / "whole"), strict=True):
        assert found == due
    with open_ledger(out, create=False) as ledger:
        students = ledger.students()
        assert len(students) == len(list(folder.iterdir()))
        for student in students:
            assert len([entry for entry in ledger.history(student) if not entry.is_lost]) == 1
