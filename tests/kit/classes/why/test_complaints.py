"""An instructor answers a student's complaint: why a stage has its points, and a page about it."""

import os
import re
from pathlib import Path

import pytest

from grader.command.main import main
from grader.engine import Engine, Request
from grader.types.report import Report
from tests.kit.classes.folder_class import ONE_TOO_FEW, RIGHT, class_of, grade_class, hand_in, rows
from tests.kit.support.checkout import ROOT, TINY, run_python
from tests.kit.support.files import edit, write_files
from tests.kit.support.tiny import Capture, Typed, copy_tiny

ATTACK = "</pre><script>alert(1)</script>\\x1b[31m"
STUB = "def moving_average(values, width):\n    raise NotImplementedError\n"
HOSTILE = f"def moving_average(values, width):\n    raise RuntimeError('{ATTACK}')\n"
WRONG = """import torch


def attention_weights(scores):
    # <b>mine</b>
    return torch.softmax(scores, dim=-1) + 1e-3
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a class of the tiny course, which no test here changes."""
    folder = tmp_path_factory.mktemp("complaints")
    hand_in(folder / "submissions", ann=RIGHT, bob=ONE_TOO_FEW, dan=STUB, eve=HOSTILE)
    submissions, out = folder / "submissions", folder / "out"
    assert grade_class(TINY.root, out, submissions, "--seed", "5") == 0
    return out


def test_why_of_a_stage_shows_that_stage_alone_and_writes_a_harmless_page(
    out: Path, grade: Typed
) -> None:
    shown = grade(*class_of(TINY.root, out), "--why", "eve", "moving_average")
    assert "seed 5" in shown and "every check gave the same result" in shown
    assert "1  def moving_average" in shown or "raise RuntimeError" in shown
    assert "smooth" not in shown and "\x1b" not in shown
    page = (out / "why" / "moving_average" / "eve.html").read_text("utf-8")
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page and "\x1b" not in page
    assert "<dd>5</dd>" in page and "bob" not in page
    assert page.count('<th scope="row">') == 1  # one stage


@pytest.mark.parametrize(
    ("student", "stage", "said"),
    [
        ("ann", "moving_average", "passed"),
        ("bob", "moving_average", "expected"),
        ("bob", "smooth", "because moving_average"),
        ("dan", "moving_average", "not started"),
    ],
)
def test_why_of_a_stage_has_no_advice_for_a_learner(
    out: Path, grade: Typed, student: str, stage: str, said: str
) -> None:
    shown = grade(*class_of(TINY.root, out), "--why", student, stage)
    assert said in shown and "every check gave the same result" in shown
    assert not re.search(r"grade (hint|solution)|Next|Put your code|grade again", shown)


def test_the_page_is_written_even_if_nobody_reads_the_screen_to_its_end(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("grader.classes.why.command.overview", closed)
    assert main([*class_of(TINY.root, out), "--why", "bob"]) == 1
    assert (out / "why" / "bob.html").is_file()


@pytest.mark.skipif(os.name != "posix", reason="names are text")
def test_a_name_is_the_same_however_it_was_typed(
    tmp_path: Path, grade: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out, names = tmp_path / "out", ("Zoe\u0308", os.fsdecode(b"\xff"))
    hand_in(tmp_path / "class", **dict.fromkeys(names, RIGHT))
    course = copy_tiny(tmp_path / os.fsdecode(b"\xfe")).root
    assert grade_class(course, out, tmp_path / "class") == 0
    for name in names:
        assert "6 / 6" in grade("class", "--out", str(out), "--why", name)
    write_files(tmp_path, {"asked.csv": f"student\n{names[0]}\n"})
    assert "stands 1" in grade(
        "class", "--out", str(out), "--requests", str(tmp_path / "asked.csv")
    )


def test_why_of_something_that_is_no_stage_says_so(out: Path, refused: Typed) -> None:
    for word, said in (
        ("smoth", "did you mean 'smooth'?"),
        ("3", "'roughness' was not graded; choose"),
        ("../class", "there is no stage '../class'"),
    ):
        assert said in refused(*class_of(TINY.root, out), "--why", "ann", word)


REQUESTS = """Student,stage,words
bob,moving_average,"=HYPERLINK(""x"")"
ann,,I want more
eve,moving_average.refusal,
zoe,smooth,where am I?
bob,smoth,
bob,moving_average.lenght,
,smooth,who am I?
dan,,
"""


def test_each_request_gets_a_verdict_and_a_reason(
    out: Path, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "requests.csv"
    file.write_text(REQUESTS, encoding="utf-8")
    assert grade_class(TINY.root, out, "--requests", str(file)) == 1
    shown = capsys.readouterr().out
    assert "8 requests: stands 4, changes 0, check 4." in shown
    decisions = rows(out / "decisions.csv")
    assert [row["verdict"] for row in decisions] == ["stands"] * 3 + ["check"] * 4 + ["stands"]
    assert decisions[0]["words"] == '\'=HYPERLINK("x")'
    assert decisions[0]["seed"] == "5"
    assert decisions[0]["points"] == decisions[0]["points_now"] == "1"
    reason = decisions[0]["reason"]
    assert "moving_average.length: The shape" in reason
    assert " checks failed: " in reason and " (-1); " in reason and ": - " not in reason
    assert decisions[1]["points"] == "10" and "All checks pass" in decisions[1]["reason"]
    assert "moving_average.refusal: " in decisions[2]["reason"]  # not the one to fix first
    assert "RuntimeError" in decisions[2]["reason"] and "\x1b" not in decisions[2]["reason"]
    assert "no such student" in decisions[3]["reason"] and "'smooth'?" in decisions[4]["reason"]
    assert decisions[5]["reason"] == (
        "moving_average has no check 'lenght' (did you mean 'length'?)"
    )
    assert decisions[6]["reason"] == "this row names no student"
    assert decisions[7]["reason"].count("written") == 1


def test_other_requests_replace_no_earlier_decisions(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    hand_in(tmp_path / "class", **{"ann": RIGHT, "bob ": RIGHT, "bob": ONE_TOO_FEW})
    grade_class(TINY.root, out, tmp_path / "class")
    for name, asked in (("a", "ann"), ("b", "bob "), ("b", "bob ")):
        (tmp_path / name).write_text(f"student,stage\n{asked},\n", encoding="utf-8")
        capsys.readouterr()
        assert grade_class(TINY.root, out, "--requests", str(tmp_path / name)) == 0
    assert "earlier decisions" not in capsys.readouterr().out  # the last ones say the same
    assert [row["points"] for row in rows(out / "decisions.csv")] == ["10"]
    assert sorted(file.name for file in out.glob("decisions*")) == [
        "decisions.csv",
        "decisions.csv-1",
    ]
    assert [row["student"] for row in rows(out / "decisions.csv-1")] == ["ann"]


def test_the_reason_says_once_what_is_missing_and_what_did_not_count(
    tmp_path: Path, capsys: Capture
) -> None:
    out, ann = tmp_path / "out", tmp_path / "submissions" / "ann"
    write_files(ann, {"smooth.py": "smooth = 1", "all.ipynb": '{"cells": []}'})
    assert grade_class(TINY.root, out, tmp_path / "submissions") == 0
    assert "something was unusual: 1 submission. See Notes in" in capsys.readouterr().out
    write_files(tmp_path, {"requests.csv": "student,stage\nann,moving_average\n"})
    assert grade_class(TINY.root, out, "--requests", tmp_path / "requests.csv") == 0
    (decision,) = rows(out / "decisions.csv")
    assert decision["reason"].count("There is no file moving_average.py") == 1
    assert decision["reason"].endswith("all.ipynb was not graded: the .py files were.")


def test_a_request_of_many_words_hides_no_other(out: Path, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "requests.csv"
    file.write_text(f"student,stage\nann,{'x' * 70_000}\n{'y' * 70_000},\nzoe,\n")
    assert grade_class(TINY.root, out, "--requests", str(file)) == 1
    shown = capsys.readouterr().out
    assert "check 3." in shown and shown.count("\n") < 40
    assert [len(row["student"]) for row in rows(out / "decisions.csv")] == [3, 70_000, 3]


def test_a_student_who_asks_a_hundred_times_is_graded_once(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "requests.csv"
    asked = [f"bob,moving_average{'.length' * (n % 2)},{n}\n" for n in range(100)]
    file.write_text("".join(["student,stage,words\n", *asked, "ann,,\n"]), encoding="utf-8")
    graded: list[str] = []
    grade = Engine.grade

    def counted(engine: Engine, request: Request) -> Report:
        graded.append(request.submission.name)
        return grade(engine, request)

    monkeypatch.setattr(Engine, "grade", counted)
    assert grade_class(TINY.root, out, "--requests", str(file), "--jobs", "1") == 0
    assert graded.count("bob") == 1
    decisions = rows(out / "decisions.csv")
    assert [row["words"] for row in decisions] == [*map(str, range(100)), ""]
    assert {row["verdict"] for row in decisions} == {"stands"}


@pytest.mark.slow
def test_a_request_says_what_a_new_version_would_change(tmp_path: Path, grade: Typed) -> None:
    course, submissions, out = tmp_path / "course", tmp_path / "submissions", tmp_path / "out"
    copy_tiny(course)
    file = tmp_path / "requests.csv"
    file.write_text("student,stage\nbob,moving_average\nian,moving_average\n", "utf-8")
    hand_in(submissions, bob=RIGHT.replace("raise ValueError('width')", "pass"), ian=RIGHT)
    grade_class(course, out, str(submissions))
    check = course / "tests" / "checks" / "test_moving_average.py"
    edit(check, "    with expect_raises", "    return\n    with expect_raises")
    (course / "hints" / "misconceptions" / "moving_average.py").unlink()
    assert grade_class(course, out, "--requests", str(file)) == 1
    decisions = rows(out / "decisions.csv")
    assert [row["verdict"] for row in decisions] == ["changes", "stands"]
    assert float(decisions[0]["points_now"]) > float(decisions[0]["points"])
    assert "--regrade makes these points count" in decisions[0]["reason"]
    shown = " ".join(grade(*class_of(course, out), "--why", "bob", "moving_average").split())
    assert "the stored verdict" in shown and "come from the present version" in shown
    assert "moving_average does not fail in the present version" in shown

    grade_class(course, out, "--regrade", "--yes")
    shown = " ".join(grade(*class_of(course, out), "--why", "bob", "moving_average").split())
    assert "Changed: the course has changed moving_average and smooth, or what they need." in shown
    assert "gained refusal" in shown and "refusal passes now; before: " in shown


@pytest.mark.slow
def test_the_lines_of_torch_show_the_failure_and_the_page_tells_no_check(
    tmp_path: Path, capfd: Capture
) -> None:
    submissions, out = tmp_path / "submissions", tmp_path / "out"
    (submissions / "ann").mkdir(parents=True)
    for file in (ROOT / "solutions").glob("*.py"):
        (submissions / "ann" / file.name).write_bytes(file.read_bytes())
    (submissions / "ann" / "softmax.py").write_text(WRONG, encoding="utf-8")
    assert grade_class(ROOT, out, str(submissions), "--seed", "5") == 0
    capfd.readouterr()
    assert grade_class(ROOT, out, "--why", "ann", "softmax.sums") == 0
    shown = capfd.readouterr().out
    assert "return torch.softmax(scores, dim=-1) + 1e-3" in shown and "seed 5" in shown
    # The lines draw the numbers of this input, so they stand above, as they do on the page.
    numbers = shown.partition("What softmax.sums gave to the code:")[2]
    assert "scores [2 x 3 x 4 x 5]" in numbers and "tensor([[[[" in numbers
    lines = shown[shown.index("# softmax.sums: ") :].partition("\n  Regraded just now")[0]
    done = run_python("-c", lines, cwd=submissions / "ann")
    assert "tensor([[[[" in done.stdout and not done.stderr
    page = (out / "why" / "softmax" / "ann.html").read_text("utf-8")
    assert "&lt;b&gt;mine" in page or "from softmax import" in page
    assert "<b>mine" not in page and "expected" in page and "The numbers of scores" in page
    for kind in ("tests/checks/test_softmax.py", "solutions/softmax.py"):
        code = {line.strip() for line in (ROOT / kind).read_text("utf-8").splitlines()}
        assert not [line for line in code if len(line) > 30 and line in page], kind
