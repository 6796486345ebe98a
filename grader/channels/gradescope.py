"""The files for Gradescope: an autograder's scripts and results.json. Pure.

https://gradescope-autograders.readthedocs.io/en/latest/specs/ defines their format.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from grader.channels.project import library
from grader.classes.folder.counted import counted
from grader.classes.late import Late
from grader.show.screen import amount, count
from grader.types.course import Course
from grader.types.report import CheckResult, Outcome, Report, StageResult, Status
from grader.types.resources import filled, resource
from grader.types.text import safe

# When students see the checks that are not `visible`, and Gradescope's name for it.
WHEN = {"published": "after_published", "due": "after_due_date", "never": "hidden"}
_THEN = {
    "published": "when the grades are published",
    "due": "after the due date",
    "never": "only to the instructors",
}
_TORCH = "templates/gradescope_torch.sh"
_LETTERS = 10_000  # characters of one check's output


def results(
    report: Report,
    course: Course,
    when: str,
    seconds: float,
    notes: Sequence[str] = (),
    late: Late | None = None,
) -> dict[str, Any]:
    """The results.json of a report; `notes` say what was unusual about the submission.

    Students see the visible checks at once, and the others at the time `when`, a key of WHEN. Bonus
    points are shown but not counted, so the score never exceeds the maximum, unless there are no
    other points. Being `late` costs a share of the score. Raises ValueError if the grader could not
    run a check, because then there is no verdict.
    """
    points = counted(report, late)
    has_core = any(not stage.bonus for stage in report.stages)
    tests: list[dict[str, Any]] = []
    shown: list[CheckResult] = []
    others = 0
    for number, stage in enumerate(report.for_students.stages, start=1):
        if stage.status is Status.ERROR or any(c.outcome is Outcome.ERROR for c in stage.checks):
            raise ValueError(f"{stage.slug}: the grader could not run its checks")
        names = course.stage(stage.slug).visible
        for place, check in enumerate(stage.checks, start=1):
            is_visible = check.id.removeprefix(f"{stage.slug}.") in names
            counts = not (stage.bonus and has_core)
            tests.append(_test(stage, check, f"{number}.{place}", counts=counts))
            tests[-1]["visibility"] = "visible" if is_visible else WHEN[when]
            if not is_visible:
                others += 1
            elif check.outcome is not Outcome.SKIPPED:
                shown.append(check)
    seed = [f"Seed of the random inputs: {report.seed}."] if report.seed else []
    seed += [f"Version of the course: {report.version}."] if report.version else []
    came = [f"The submission came {late.words}."] if late else []
    lines = [*notes, *report.unusual, *came, _summary(shown, others, when), *seed, *report.unlocked]
    return {
        **_frame(min(points.score, points.most), lines, seconds),
        "extra_data": {
            "max_score": points.most,
            "bonus": points.bonus,
            "notes": [safe(note) for note in report.notes],
        },
        "tests": tests,
    }


def refusal(reason: str, seconds: float) -> dict[str, Any]:
    """The results.json of a submission that cannot be read: no points, and the reason."""
    return {
        **_frame(0, [reason, "No points. Fix that and submit again."], seconds),
        "tests": [
            {
                "name": "The submission can be read",
                "status": "failed",
                "output": safe(reason),
                "output_format": "text",
                "visibility": "visible",
            }
        ],
    }


def setup_script(packages: Sequence[str], assignment: str) -> str:
    """setup.sh: installs the packages in the versions of constraints.txt, then tests the grader."""
    others = [line for line in packages if library(line) != "torch"]
    return filled(
        __package__,
        "templates/gradescope_setup.sh",
        torch="" if others == [*packages] else resource(__package__, _TORCH),
        packages=shlex.join(others),
        assignment=shlex.quote(assignment),
    )


def run_script(assignment: str, when: str, minutes: float) -> str:
    """run_autograder: grades /autograder/submission and writes results.json."""
    return filled(
        __package__,
        "templates/gradescope_run.sh",
        assignment=shlex.quote(assignment),
        when=when,
        minutes=f"{minutes:g}",
    )


def _frame(score: float, lines: Sequence[str], seconds: float) -> dict[str, Any]:
    """The keys that every results.json has. With "text", no student's text acts as markup."""
    return {
        "score": score,
        "execution_time": round(seconds, 1),
        "output": safe("\n".join(lines)),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
    }


def _summary(shown: Sequence[CheckResult], others: int, when: str) -> str:
    """What a student may see at once: of the hidden checks, only their number."""
    passed = sum(check.outcome is Outcome.PASSED for check in shown)
    if not shown:
        return f"{count(others)} ran. The results are shown {_THEN[when]}."
    if passed == len(shown):
        words = "Your visible checks pass"
    else:
        words = f"{amount(passed)} of your {count(len(shown), 'visible check')} pass"
    if not others:
        return f"{words}."
    return f"{words}; {count(others, 'more check')} ran, shown {_THEN[when]}."


def _test(stage: StageResult, check: CheckResult, number: str, *, counts: bool) -> dict[str, Any]:
    """A check as one of Gradescope's tests; its points may be a bonus that does not count."""
    earned = check.score >= check.max_score
    test: dict[str, Any] = {
        "name": safe(f"{stage.title}: {check.title}"),
        "number": number,
        "status": "passed" if earned else "failed",
        "output": safe(_output(stage, check, counts=counts))[:_LETTERS],
        "output_format": "text",
        "tags": [stage.slug],
    }
    if counts:
        test |= {"score": min(check.score, check.max_score), "max_score": check.max_score}
    return test


def _output(stage: StageResult, check: CheckResult, *, counts: bool) -> str:
    """Why points are lost, the likely cause, and the hint about it."""
    lines = []
    if not counts:
        points = f"{amount(check.score)} of {amount(check.max_score)}"
        lines.append(f"Bonus: {points} points, not counted in the score.")
    if check.outcome is Outcome.PASSED:
        return "\n".join(lines)
    if check.outcome is Outcome.SKIPPED:
        lines.append(f"Skipped: {check.message}")
        return "\n".join(lines)
    if check.outcome is Outcome.TIMEOUT:
        lines.append("It ran out of time and was stopped.")
    if stage.caused_by is not None:
        lines.append(f"Fix {stage.caused_by} first: this stage fails because of it.")
    lines.append(check.message)
    hint = ""
    if check.diagnosis is not None:
        lines.append(f"\n{check.diagnosis.opening}{check.diagnosis.text}")
        hint = f" {check.diagnosis.hint}" if check.diagnosis.hint is not None else ""
    if stage.caused_by is None and not stage.is_exam:
        lines.append(f"\nA hint: grade hint {stage.slug}{hint}")
    return "\n".join(lines)
