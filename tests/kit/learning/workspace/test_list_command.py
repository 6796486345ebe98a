"""`grade list`: what there is to do."""

import json
import re
from pathlib import Path

import pytest

from grader.command.main import main
from grader.read.course_file import find_stage, read_course
from grader.read.dependencies import course_digest, text_digests
from grader.read.progress import memory_folder, remember_results, update_progress
from grader.read.submission import read_submission
from grader.types.progress import NOTEBOOK
from grader.types.report import StageResult, Status
from tests.kit.support.files import edit
from tests.kit.support.tiny import Capture, Say, Typed, solve


def test_lists_every_stage(birds: Path, grade: Typed) -> None:
    shown = [" ".join(line.split()) for line in grade("list").splitlines()]
    assert [line for line in shown if line] == [
        "Paper birds 2 stages, 100 points",
        "1 fold Fold a sheet 40 points",
        "write fold",
        "2 wings Two wings 60 points",
        "write left_wing, right_wing",
        "needs fold",
        "Bonus",
        "3 nest A nest +5 points",
        "write Nest",
        "Check one: grade STAGE",
        "For a hint: grade hint STAGE",
    ]


def test_a_stages_number_is_the_one_that_grade_knows_it_by(birds: Path, grade: Typed) -> None:
    toml = birds / "course.toml"
    edit(toml, "points = 60", "points = 60\nbonus = true")
    edit(toml, "points = 5\nbonus = true", "points = 5")
    course = read_course(toml)
    shown = re.findall(r"^ +(\d+)  (\w+)", grade("list"), re.MULTILINE)
    assert [slug for _, slug in shown] == ["fold", "nest", "wings"]
    assert all(find_stage(course, number).slug == slug for number, slug in shown)


def test_from_a_folder_below_and_by_name(
    birds: Path, grade: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(birds / "exercises")
    from_below = grade("list")
    monkeypatch.chdir("/")
    by_name = grade("list", "--course", str(birds))
    assert by_name.replace(f" --course {birds}", "").split() == from_below.split()


def graded(birds: Path, text: str = "") -> None:
    """Remember that fold passed, on the present files or on this text."""
    course = read_course(birds / "course.toml")
    submission = read_submission(birds / "exercises")
    texts = {"fold": text} if text else text_digests(course, submission, course_digest(course))
    result = StageResult("fold", "Fold", Status.PASSED, 40, 40, False, ())
    remember_results(birds, [result], submission, texts)


def test_shows_what_is_remembered_and_tells_of_a_spoilt_memory(
    birds: Path, capsys: Capture
) -> None:
    update_progress(birds, lambda now: now.with_hint("fold", 2))
    graded(birds)
    assert main(["list"]) == 0
    assert "so far  passed, best 40 of 40, first passed on 20" in capsys.readouterr().out
    (memory_folder(birds) / "progress.json").write_text("{", encoding="utf-8")
    assert main(["list"]) == 0
    shown = capsys.readouterr()
    assert "so far" not in shown.out and "progress.json.corrupt-1" in shown.err


def test_says_when_a_verdict_is_not_on_the_present_files(birds: Path, capsys: Capture) -> None:
    def shown() -> str:
        assert main(["list"]) == 0
        return " ".join(capsys.readouterr().out.split())

    graded(birds)
    (birds / "exercises" / "fold.py").write_text("x = 1\n", encoding="utf-8")
    assert "so far needs to be graded again, best 40 of 40, first passed on 20" in shown()
    graded(birds, NOTEBOOK)
    assert "so far passed in a notebook, best 40 of 40" in shown()
    file = memory_folder(birds) / "progress.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    del data["stages"]["fold"]["judged"]  # as an older version of the kit has written it
    file.write_text(json.dumps(data), encoding="utf-8")
    assert "so far not graded yet, best 40 of 40" in shown()


def test_a_stage_waits_while_an_earlier_one_makes_it_fail(tiny: Path, say: Say) -> None:
    solve(tiny, "moving_average", "smooth")
    edit(
        tiny / "exercises" / "moving_average.py",
        "    ### BEGIN",
        "    return values\n    ### BEGIN",
    )
    assert "waiting" in say("grade")[1]
    assert "so far  waiting" in say("list")[1]
