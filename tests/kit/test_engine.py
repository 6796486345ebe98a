"""The engine as a whole grades the learner's own file, and says whose fault a failure is."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.engine import Request, grade
from grader.read.course_file import read_course
from grader.run.solutions import solution_files
from grader.types.course import Stage
from grader.types.report import Report, Status
from grader.types.submission import Submission

COURSE = read_course(Path(__file__).parents[2] / "course.toml")
SOLUTIONS = solution_files(COURSE)
STUBS = {stage.file_name: stage.exercise_file.read_bytes() for stage in COURSE.stages}


def graded(files: dict[str, bytes], stages: tuple[Stage, ...] = COURSE.stages) -> Report:
    submission = Submission("a submission", files)
    return grade(COURSE, Request(submission, stages, seed=11), "cpu")


def some() -> tuple[Stage, ...]:
    """The core, and of the bonus stages one that calls `split_heads` and one that does not."""
    bonus = [stage for stage in COURSE.stages if stage.bonus]
    calls = next(stage for stage in bonus if "split_heads" in stage.requires)
    other = next(stage for stage in bonus if "split_heads" not in stage.requires)
    return tuple(s for s in COURSE.stages if not s.bonus or s in (calls, other))


@pytest.mark.parametrize(
    "stages", [some(), pytest.param(COURSE.stages, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_one_poisoned_line_turns_its_stage_red_and_is_the_cause_of_later_ones(
    stages: tuple[Stage, ...],
) -> None:
    source = SOLUTIONS["split_heads.py"]
    poisoned = source.replace(b".transpose(1, 2)", b".transpose(1, 2).flip(1)")
    assert poisoned != source
    report = graded({**SOLUTIONS, "split_heads.py": poisoned}, stages)
    by_slug = {stage.slug: stage for stage in report.stages}
    assert by_slug["split_heads"].status is Status.FAILED
    for stage in report.stages:
        if "split_heads" in COURSE.stage(stage.slug).requires:
            assert stage.caused_by == "split_heads"
        elif stage.slug != "split_heads":
            assert stage.status is Status.PASSED
    assert report.score < report.max_score == 100


def test_an_untouched_stub_stays_quiet_though_the_file_it_imports_is_broken() -> None:
    report = graded({**STUBS, "masking.py": b"def causal_mask(seq_len)\n    pass\n"})
    by_slug = {stage.slug: stage.status for stage in report.stages}
    assert by_slug.pop("masking") is Status.FAILED
    assert set(by_slug.values()) == {Status.NOT_STARTED}
    assert report.score == 0
