"""A verdict is kept while nothing that it depends on changes; whatever is wrong costs a rerun."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from grader.read import files
from grader.read.dependencies import course_digest, text_digests
from grader.read.kept import Kept
from grader.read.progress import memory_folder
from grader.run.solutions import solution_files
from grader.types.report import CheckResult, Outcome, Report, StageResult, Status
from grader.types.submission import Submission
from tests.kit.support.checkout import TINY

SOLVED = solution_files(TINY)
ALL = {"moving_average", "smooth", "roughness"}


def texts(files: Mapping[str, bytes] = SOLVED, of_course: str = "course") -> dict[str, str]:
    return text_digests(TINY, Submission("x", files), of_course)


def report(**results: tuple[Status, float]) -> Report:
    stages = []
    for slug, (status, score) in results.items():
        outcome = Outcome.PASSED if status is Status.PASSED else Outcome.FAILED
        check = CheckResult(f"{slug}.ends", "The ends", outcome, score, 6, seconds=0.5)
        stages.append(StageResult(slug, "Smooth", status, score, 6, False, (check,)))
    return Report("smoothing", "exercises", "cpu", 0, 6, 0, tuple(stages))


PASSED = report(**dict.fromkeys(ALL, (Status.PASSED, 6)))


def file_of(root: Path) -> Path:
    return memory_folder(root) / "kept.json"


def read(root: Path, now: Mapping[str, str], device: str = "auto") -> dict[str, Report]:
    return Kept(root, TINY, device).read(TINY.stages, now)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Kept(tmp_path, TINY, "auto").keep(PASSED, texts())
    return tmp_path


def test_an_unchanged_verdict_is_kept_whole_but_for_the_seconds(root: Path) -> None:
    kept = read(root, texts())
    assert set(kept) == ALL
    (result,) = kept["smooth"].stages
    (expected,) = (stage for stage in PASSED.stages if stage.slug == "smooth")
    (check,) = expected.checks
    assert result == replace(expected, checks=(replace(check, seconds=0.0),))
    assert kept["smooth"].device == "cpu"


@pytest.mark.parametrize(
    ("file", "left"),
    [
        ("smooth.py", {"moving_average", "roughness"}),
        ("moving_average.py", {"roughness"}),  # which smooth requires
        ("helper.py", set()),
    ],
)
def test_a_changed_file_costs_the_verdicts_that_depend_on_it(
    root: Path, file: str, left: set[str]
) -> None:
    assert set(read(root, texts({**SOLVED, file: b"x = 1\n"}))) == left


def test_a_changed_kit_or_course_costs_every_verdict(root: Path) -> None:
    assert course_digest(TINY) != "course"
    assert not read(root, texts(of_course=course_digest(TINY)))


def test_another_device_costs_every_verdict(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not read(root, texts(), device="cuda")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    assert not read(root, texts())


def test_another_version_of_a_library_costs_every_verdict(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: f"{name} 9")
    assert not read(root, texts())


@pytest.mark.parametrize(
    ("status", "score"),
    [(Status.FAILED, 6), (Status.FAILED, 3), (Status.PASSED, 3), (Status.NOT_STARTED, 0)],
)
def test_only_a_pass_with_full_points_is_kept(root: Path, status: Status, score: float) -> None:
    """And one that fails now, say for another seed, is not kept from before."""
    Kept(root, TINY, "auto").keep(report(smooth=(status, score)), texts())
    assert set(read(root, texts())) == {"moving_average", "roughness"}


@pytest.mark.parametrize(
    "damaged", [b"", b"\xff", b"[]", b"[" * 100_000, b'{"smooth": 3}', b'{"smooth": {"seal": "x"}}']
)
def test_a_damaged_file_costs_a_rerun_and_is_replaced(root: Path, damaged: bytes) -> None:
    file_of(root).write_bytes(damaged)
    assert not read(root, texts())
    Kept(root, TINY, "auto").keep(PASSED, texts())
    assert set(read(root, texts())) == ALL


def test_a_verdict_edited_by_hand_does_not_count(root: Path) -> None:
    data = json.loads(file_of(root).read_text("utf-8"))
    data["smooth"]["report"]["stages"][0]["score"] = 600
    file_of(root).write_text(json.dumps(data), encoding="utf-8")
    assert set(read(root, texts())) == ALL - {"smooth"}


def test_a_sealed_verdict_without_a_stage_does_not_count(root: Path) -> None:
    kept = Kept(root, TINY, "auto")
    for nonsense in ({}, [], {"stages": []}):
        entry = {"seal": kept._seal(texts()["smooth"], nonsense), "report": nonsense}
        file_of(root).write_text(json.dumps({"smooth": entry}), encoding="utf-8")
        assert not read(root, texts())


def test_a_kill_in_the_middle_of_writing_leaves_the_verdicts_before(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*paths: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        Kept(root, TINY, "auto").keep(report(smooth=(Status.FAILED, 0)), texts())
    assert set(read(root, texts())) == ALL


def test_a_file_that_cannot_be_written_or_read_is_no_error(tmp_path: Path) -> None:
    (tmp_path / ".grade").write_text("a file, where the folder should be", encoding="utf-8")
    Kept(tmp_path, TINY, "auto").keep(PASSED, texts())
    assert not read(tmp_path, texts())
