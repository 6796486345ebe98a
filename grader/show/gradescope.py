"""What Gradescope is given: the scripts of an autograder and results.json. Pure.

The form is that of https://gradescope-autograders.readthedocs.io/en/latest/specs/.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from grader.show.screen import amount, count
from grader.types.course import Course
from grader.types.report import CheckResult, Outcome, Report, StageResult, Status
from grader.types.text import safe

# When students see the checks that are not `visible`, and Gradescope's word for it.
WHEN = {"published": "after_published", "due": "after_due_date", "never": "hidden"}
_THEN = {
    "published": "when the grades are published",
    "due": "after the due date",
    "never": "to the instructors alone",
}
_LETTERS = 10_000  # of one check's output


def results(
    report: Report, course: Course, when: str, seconds: float, notes: Sequence[str] = ()
) -> dict[str, Any]:
    """The results.json of a report; `notes` say what was odd about the submission.

    Students see the visible checks at once and the others as `when`, a key of WHEN, says. Points of
    bonus stages are told and not counted, so that the score is never more than the maximum. Raises
    ValueError for a report with a check that the grader could not run: that is no verdict.
    """
    tests: list[dict[str, Any]] = []
    shown: list[CheckResult] = []
    others = 0
    for number, stage in enumerate(report.stages, start=1):
        if stage.status is Status.ERROR or any(c.outcome is Outcome.ERROR for c in stage.checks):
            raise ValueError(f"{stage.slug}: the grader could not run its checks")
        names = course.stage(stage.slug).visible
        for place, check in enumerate(stage.checks, start=1):
            is_visible = check.id.removeprefix(f"{stage.slug}.") in names
            tests.append(_test(stage, check, f"{number}.{place}"))
            tests[-1]["visibility"] = "visible" if is_visible else WHEN[when]
            if not is_visible:
                others += 1
            elif check.outcome is not Outcome.SKIPPED:
                shown.append(check)
    lines = [*notes, _summary(shown, others, when)]
    return {
        **_frame(min(report.score, report.max_score), lines, seconds),
        "extra_data": {
            "max_score": report.max_score,
            "bonus": report.bonus,
            "notes": [safe(note) for note in report.notes],
        },
        "tests": tests,
    }


def refusal(reason: str, seconds: float) -> dict[str, Any]:
    """The results.json of a submission that cannot be read: no points, and why."""
    return {
        **_frame(0, [reason, "No points. Mend that and submit again."], seconds),
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
    """setup.sh: installs the packages at the versions of constraints.txt, then tries the grader."""
    torch = [name for name in packages if name == "torch"]
    others = " ".join(shlex.quote(name) for name in packages if name != "torch")
    return _SETUP.format(
        torch=_TORCH if torch else "", packages=others, assignment=shlex.quote(assignment)
    )


def run_script(assignment: str, when: str, minutes: float) -> str:
    """run_autograder: grades /autograder/submission and writes the results."""
    return _RUN.format(assignment=shlex.quote(assignment), when=when, minutes=f"{minutes:g}")


def _frame(score: float, lines: Sequence[str], seconds: float) -> dict[str, Any]:
    """What every results.json has. "text": nothing that a student wrote is taken for markup."""
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
    """What a student may know at once: nothing of the checks that are not visible but how many."""
    passed = sum(check.outcome is Outcome.PASSED for check in shown)
    if not shown:
        return f"{count(others)} ran. The results are shown {_THEN[when]}."
    if passed == len(shown):
        said = "Your visible checks pass"
    else:
        said = f"{amount(passed)} of your {count(len(shown), 'visible check')} pass"
    if not others:
        return f"{said}."
    return f"{said}; {count(others, 'more check')} ran, shown {_THEN[when]}."


def _test(stage: StageResult, check: CheckResult, number: str) -> dict[str, Any]:
    earned = check.score >= check.max_score
    test: dict[str, Any] = {
        "name": safe(f"{stage.title}: {check.title}"),
        "number": number,
        "status": "passed" if earned else "failed",
        "output": safe(_output(stage, check))[:_LETTERS],
        "output_format": "text",
        "tags": [stage.slug],
    }
    if not stage.bonus:
        test |= {"score": min(check.score, check.max_score), "max_score": check.max_score}
    return test


def _output(stage: StageResult, check: CheckResult) -> str:
    """Why points are lost, the likely cause and the hint that speaks to it."""
    lines = []
    if stage.bonus:
        points = f"{amount(check.score)} of {amount(check.max_score)}"
        lines.append(f"A bonus: {points} points, which the score does not count.")
    if check.outcome is Outcome.PASSED:
        return "\n".join(lines)
    if check.outcome is Outcome.SKIPPED:
        lines.append(f"Skipped: {check.message}")
        return "\n".join(lines)
    if check.outcome is Outcome.TIMEOUT:
        lines.append("It ran out of time and was stopped.")
    if stage.caused_by is not None:
        lines.append(f"Mend {stage.caused_by} first: this stage fails because of it.")
    lines.append(check.message)
    hint = ""
    if check.diagnosis is not None:
        lines.append(f"\nLikely: {check.diagnosis.text}")
        hint = f" {check.diagnosis.hint}" if check.diagnosis.hint is not None else ""
    if stage.caused_by is None:
        lines.append(f"\nA hint: grade hint {stage.slug}{hint}")
    return "\n".join(lines)


_SETUP = """\
#!/usr/bin/env bash
# Gradescope runs this once, when the image of the autograder is built.
set -euo pipefail
root=${{AUTOGRADER_ROOT:-/autograder}}
cd "$root/source"

if [ ! -x "$root/venv/bin/python" ]; then
    if ! python3 -m venv "$root/venv" 2> /dev/null; then
        apt-get update -qq
        apt-get install -y -qq python3 python3-venv
        python3 -m venv "$root/venv"
    fi
fi
python="$root/venv/bin/python"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10) and
    "The grader needs Python 3.10 or later: choose a newer Ubuntu as the base image.")'

{torch}"$python" -m pip install -q -c constraints.txt {packages}

# Only the grader may read the checks, even on a kernel that cannot lock submissions in.
if [ "$(id -u)" = 0 ]; then
    chown -R nobody "$root/source"
    chmod -R go= "$root/source"
fi

# The course's own solutions must get everything, or no student is to be graded by this.
"$python" -m grader --course course --submission course/solutions --device cpu
echo "The autograder for {assignment} is ready."
"""

_TORCH = """\
# torch for the processor alone: a tenth of the size
torch=$(sed -n 's/^torch==\\([0-9.]*\\).*/\\1/p' constraints.txt | head -n 1)
"$python" -m pip install -q "torch${torch:+==$torch}" \\
    --index-url https://download.pytorch.org/whl/cpu
"""

_RUN = """\
#!/usr/bin/env bash
# Gradescope runs this for every submission. Where there is no results.json afterwards the grader
# itself has failed: nobody gets points or loses any, and what is printed here says why.
root=${{AUTOGRADER_ROOT:-/autograder}}
cd "$root/source" || exit 1
exec "${{AUTOGRADER_PYTHON:-$root/venv/bin/python}}" -m grader release gradescope \\
    --course course --assignment {assignment} --hidden {when} --minutes {minutes} --run "$root"
"""
