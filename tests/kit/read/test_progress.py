"""What is remembered is never lost: not by a kill, a spoilt file or two commands at once."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from grader.read import progress as module
from grader.read.progress import (
    Remembered,
    memory_folder,
    parse_progress,
    read_progress,
    remember_results,
    to_json,
    update_progress,
)
from grader.types.errors import ProgressError
from grader.types.progress import NOTEBOOK, Advice, Progress, StageProgress
from grader.types.report import CheckResult, Diagnosis, Outcome, StageResult, Status
from grader.types.submission import Submission
from tests.kit.support.checkout import ROOT


def file_of(root: Path) -> Path:
    return memory_folder(root) / "progress.json"


def store(root: Path, text: str | bytes) -> Path:
    memory_folder(root).mkdir(exist_ok=True)
    file_of(root).write_bytes(text.encode() if isinstance(text, str) else text)
    return file_of(root)


def used(root: Path, slug: str, rung: int) -> Remembered:
    return update_progress(root, lambda now: now.with_hint(slug, rung))


FOLDED = {"fold.py": b"def fold(): ..."}
UNEVEN = Diagnosis("uneven", "You fold at a third.", 4)
TORN = Diagnosis("torn", "You tear the sheet.", 2)


def result(
    slug: str, status: Status, score: float, diagnosis: Diagnosis | None = None
) -> StageResult:
    outcome = Outcome.PASSED if status is Status.PASSED else Outcome.FAILED
    check = CheckResult(f"{slug}.even", "Even", outcome, score, 12, diagnosis=diagnosis)
    return StageResult(slug, "Fold", status, score, 12, False, (check,))


def test_nothing_is_remembered_at_first_and_looking_leaves_no_trace(tmp_path: Path) -> None:
    assert read_progress(tmp_path) == Remembered(Progress())
    assert list(tmp_path.iterdir()) == []


def test_remembers(tmp_path: Path) -> None:
    used(tmp_path, "fold", 1)
    used(tmp_path, "bird", 3)
    graded = [result("fold", Status.FAILED, 3)]
    remember_results(tmp_path, graded, Submission("mine", FOLDED), {"fold": "a text"})
    found = read_progress(tmp_path)
    assert found.note == ""
    assert found.progress.last_hint == "bird"
    fold = found.progress.stage("fold")
    assert (fold.rungs, fold.status, fold.best, fold.attempts) == (1, Status.FAILED, 3.0, 1)
    assert found.progress.stage("bird") == StageProgress(3)
    assert found.progress.stage("nest") == StageProgress()


def test_the_best_score_and_the_first_success_stay() -> None:
    now = Progress()
    for number, (status, score) in enumerate(
        [(Status.FAILED, 8), (Status.FAILED, 3), (Status.PASSED, 12), (Status.FAILED, 0)]
    ):
        now = now.with_result(result("fold", status, score), f"answer {number}", f"day {number}")
    fold = now.stage("fold")
    assert (fold.status, fold.best, fold.passed, fold.attempts) == (Status.FAILED, 12, "day 2", 4)


def test_an_attempt_is_an_answer_that_is_new() -> None:
    now = Progress()
    for digest in ("a", "a", "b", "b", "a"):
        now = now.with_result(result("fold", Status.FAILED, 0), digest, "today")
    assert now.stage("fold").attempts == 3
    untouched = now.with_result(result("fold", Status.NOT_STARTED, 0), "stub", "today")
    assert untouched.stage("fold").attempts == 3


def test_a_named_mistake_brings_its_hint_until_it_was_given_or_is_mended() -> None:
    now = Progress().with_hint("fold", 1)
    assert now.stage("fold").next_rung(5) == 2
    now = now.with_result(result("fold", Status.FAILED, 0, UNEVEN), "a", "today")
    assert now.stage("fold").next_rung(5) == 4
    given = now.with_hint("fold", 4)
    assert given.stage("fold").next_rung(5) == 5
    again = given.with_result(result("fold", Status.FAILED, 0, UNEVEN), "b", "today")
    assert again.stage("fold").next_rung(5) == 5
    other = again.with_result(result("fold", Status.FAILED, 0, TORN), "c", "today")
    assert other.stage("fold").next_rung(5) == 2
    rest = StageProgress(advice=Advice(4, "uneven", "An earlier text.", given=True))
    retold = Progress({"fold": rest}).with_result(result("fold", Status.FAILED, 0, UNEVEN), "", "")
    advice = retold.stage("fold").advice
    assert advice is not None and (advice.text, advice.given) == (UNEVEN.text, True)
    mended = other.with_result(result("fold", Status.PASSED, 12), "d", "today")
    assert mended.stage("fold").advice is None and mended.stage("fold").next_rung(5) == 5


def test_a_stage_is_open_once_it_has_passed_or_was_given_up() -> None:
    failed = Progress().with_result(result("fold", Status.FAILED, 0), "a", "today")
    assert not failed.stage("fold").is_open
    assert failed.with_surrender("fold").stage("fold").is_open
    passed = failed.with_result(result("fold", Status.PASSED, 12), "b", "today")
    worse = passed.with_result(result("fold", Status.FAILED, 0), "c", "today")
    assert worse.stage("fold").is_open


def test_a_verdict_counts_for_the_text_that_it_is_on() -> None:
    now = Progress().with_hint("fold", 3)
    now = now.with_result(result("fold", Status.PASSED, 12), "a", "today", "this text")
    assert now.of({"fold": "this text", "nest": "any"}) == now
    for texts in ({"fold": "another"}, {"nest": "this text"}, {}):
        fold = now.of(texts).stage("fold")
        assert (fold.status, fold.score, fold.is_changed) == (None, 0, True)
        assert (fold.best, fold.attempts, fold.passed, fold.rungs) == (12, 1, "today", 3)


def test_a_verdict_on_a_notebook_is_none_on_the_files() -> None:
    now = Progress().with_result(result("fold", Status.PASSED, 12), "a", "today", NOTEBOOK)
    assert now.of({"fold": "a text"}).stage("fold").status is None
    assert now.of({}, notebooks=True) == now


@pytest.mark.parametrize(
    "written", [{"status": "passed"}, {"score": 12}, {"judged": None}, {"judged": "0" * 64}]
)
def test_what_another_version_wrote_over_is_no_verdict(written: dict[str, Any]) -> None:
    ours = Progress().with_result(result("fold", Status.FAILED, 3), "a", "today", "this text")
    data = to_json(ours)
    data["stages"]["fold"].update(written)
    theirs = parse_progress(data)
    assert theirs.of({"fold": "this text"}).stage("fold").status is None
    assert theirs.stage("fold").best == 3


def test_of_an_older_version_all_is_kept_and_nothing_is_judged(tmp_path: Path) -> None:
    fold = {"status": "passed", "score": 12, "best": 12.0, "attempts": 2, "passed": "today"}
    store(tmp_path, json.dumps({"schema": 1, "stages": {"fold": fold}}))
    found = read_progress(tmp_path).progress.of({"fold": "a text"}, notebooks=True).stage("fold")
    assert (found.status, found.score, found.is_changed) == (None, 0, False)
    assert (found.best, found.attempts, found.is_open) == (12, 2, True)
    used(tmp_path, "fold", 1)
    assert json.loads(file_of(tmp_path).read_text())["stages"]["fold"] == {**fold, "rungs": 1}


def test_an_earlier_hint_seen_again_takes_none_away() -> None:
    assert Progress().with_hint("fold", 4).with_hint("fold", 2).stage("fold").rungs == 4


def test_an_answer_is_due_until_it_was_shown(tmp_path: Path) -> None:
    update_progress(tmp_path, lambda now: now.with_hint("fold", 2, asks=True))
    update_progress(tmp_path, lambda now: now.with_hint("fold", 1))
    stage = read_progress(tmp_path).progress.stage("fold")
    assert (stage.rungs, stage.asked, stage.next_rung(5)) == (2, 2, 2)
    update_progress(tmp_path, lambda now: now.with_hint("fold", 2))
    stage = read_progress(tmp_path).progress.stage("fold")
    assert (stage.rungs, stage.asked, stage.next_rung(5)) == (2, 0, 3)


def test_keeps_itself_out_of_git_and_leaves_no_litter(tmp_path: Path) -> None:
    used(tmp_path, "fold", 1)
    names = sorted(file.name for file in memory_folder(tmp_path).iterdir())
    assert names == [".gitignore", "lock", "progress.json"]
    assert (memory_folder(tmp_path) / ".gitignore").read_text() == "*\n"


def test_what_another_version_wrote_is_kept(tmp_path: Path) -> None:
    theirs = {
        "schema": 1,
        "streak": [1, {"two": None}],
        "stages": {"fold": {"rungs": 2, "mood": 7.5}, "old_stage": {"stars": 9}},
    }
    store(tmp_path, json.dumps(theirs))
    used(tmp_path, "fold", 3)
    assert json.loads(file_of(tmp_path).read_text()) == {
        "schema": 1,
        "last_hint": "fold",
        "streak": [1, {"two": None}],
        "stages": {"fold": {"rungs": 3, "mood": 7.5}, "old_stage": {"stars": 9}},
    }


def test_what_is_written_can_be_read() -> None:
    progress = Progress(
        {
            "fold": StageProgress(
                rungs=2,
                status=Status.FAILED,
                best=3.5,
                attempts=4,
                digest="ab12",
                judged="cd34",
                passed="2026-01-14T10:00:00+00:00",
                gave_up=True,
                advice=Advice(3, "uneven", "You fold at a third.", given=True),
                asked=2,
                rest={"mood": 3},
            ),
            "bird": StageProgress(),
        },
        "fold",
        {"more": [1]},
    )
    assert parse_progress(json.loads(json.dumps(to_json(progress)))) == progress


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "null", "[]", b"\xff\xfe", b"\0" * 100, '{"stages": {}}', '{"schema": "1"}'),
        '{"schema": 1, "stages": []}',
        '{"schema": 1, "stages": {"fold": 3}}',
        '{"schema": 1, "stages": {"fold": {"rungs": "2"}}}',
        '{"schema": 1, "stages": {"fold": {"rungs": -1}}}',
        '{"schema": 1, "stages": {"fold": {"rungs": true}}}',
        '{"schema": 1, "stages": {"fold": {"asked": -1}}}',
        '{"schema": 1, "stages": {"fold": {"status": "done"}}}',
        '{"schema": 1, "stages": {"fold": {"status": []}}}',
        '{"schema": 1, "stages": {"fold": {"score": NaN}}}',
        '{"schema": 1, "stages": {"fold": {"best": -Infinity}}}',
        f'{{"schema": 1, "stages": {{"fold": {{"best": {10**400}}}}}}}',
        '{"schema": 1, "stages": {"fold": {"judged": 7}}}',
        '{"schema": 1, "last_hint": 4}',
        "[" * 100_000,
    ],
)
def test_a_spoilt_file_is_set_aside(tmp_path: Path, text: str | bytes) -> None:
    spoilt = store(tmp_path, text).read_bytes()
    found = read_progress(tmp_path)
    assert found.progress == Progress()
    assert "progress.json: is damaged; it is kept as progress.json.corrupt-1" in found.note
    assert "\n" not in found.note
    assert file_of(tmp_path).with_name("progress.json.corrupt-1").read_bytes() == spoilt
    assert used(tmp_path, "fold", 1).note == ""
    assert read_progress(tmp_path).progress.stage("fold").rungs == 1


def test_every_spoilt_file_is_kept(tmp_path: Path) -> None:
    store(tmp_path, "first")
    assert "corrupt-1" in used(tmp_path, "fold", 1).note
    store(tmp_path, "second")
    assert "corrupt-2" in used(tmp_path, "fold", 1).note
    kept = [file_of(tmp_path).with_name(f"progress.json.corrupt-{n}").read_text() for n in (1, 2)]
    assert kept == ["first", "second"]


def test_a_newer_file_is_left_alone(tmp_path: Path) -> None:
    file = store(tmp_path, '{"schema": 2, "all": "new"}')
    for attempt in (read_progress, lambda root: used(root, "fold", 1)):
        with pytest.raises(ProgressError, match=r"newer version of the kit \(schema 2\)"):
            attempt(tmp_path)
    assert file.read_text() == '{"schema": 2, "all": "new"}'


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    memory_folder(tmp_path).write_text("a file stands in the way")
    with pytest.raises(ProgressError, match=r"\.grade: cannot be written") as caught:
        used(tmp_path, "fold", 1)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no POSIX permissions here")
def test_a_read_only_folder(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is read-only for root")
    used(tmp_path, "fold", 2)
    for path in (file_of(tmp_path), memory_folder(tmp_path)):
        path.chmod(0o500)
    try:
        assert read_progress(tmp_path).progress.stage("fold").rungs == 2
        with pytest.raises(
            ProgressError, match=r"\.grade: cannot be written \(Permission denied\)"
        ):
            used(tmp_path, "fold", 3)
    finally:
        memory_folder(tmp_path).chmod(0o700)


def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used(tmp_path, "fold", 2)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(ProgressError, match="No space left on device"):
        used(tmp_path, "fold", 3)
    monkeypatch.undo()
    assert read_progress(tmp_path).progress.stage("fold").rungs == 2


COUNT = """
import sys
from pathlib import Path
from grader.read.progress import update_progress

def one_more(now):
    return now.with_hint("fold", now.stage("fold").rungs + 1)

root, times = Path(sys.argv[1]), int(sys.argv[2])
for _ in range(times):
    rungs = update_progress(root, one_more).progress.stage("fold").rungs
    print(rungs, flush=True)
"""


def counting(root: Path, times: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", COUNT, str(root), str(times)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_killed_at_any_moment_nothing_is_lost(tmp_path: Path) -> None:
    chance = random.Random(3)
    for _ in range(8):
        process = counting(tmp_path, 1_000_000)
        process.stdout.readline()  # it has begun to write
        time.sleep(chance.uniform(0, 0.02))
        process.kill()
        told = [int(line) for line in process.stdout.read().splitlines() if line.strip()]
        process.stdout.close()
        process.wait()
        found = read_progress(tmp_path)
        assert found.note == ""
        assert found.progress.stage("fold").rungs >= max(told, default=1)


def test_two_at_once_lose_nothing(tmp_path: Path) -> None:
    both = [counting(tmp_path, 60) for _ in range(2)]
    for process in both:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert read_progress(tmp_path).progress.stage("fold").rungs == 120
