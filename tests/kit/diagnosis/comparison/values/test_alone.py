"""A wrong answer that is right by itself shows that the learner's code keeps something."""

from __future__ import annotations

import pytest

from grader.engine import Engine, Request
from grader.run.collecting import with_checks
from grader.run.session import Checks
from grader.run.solutions import solution_files
from grader.run.workers import Interpreter
from grader.types.report import Report
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE

KEEPS = "your code keeps something from one call to the next"
CALL = f"Your answer to this call is right by itself, but not after the calls before it: {KEEPS}"
# The stage, what the solution has, what the learner has in its place, and what the report says.
CASES = {
    "a mask is kept between checks": (
        "masking",
        "    allowed = torch.ones(seq_len, seq_len, dtype=torch.bool).tril()",
        (
            "    torch.kept = kept = getattr(torch, 'kept', [torch.ones(seq_len, seq_len)])\n"
            "    allowed = kept[0][:seq_len, :seq_len].bool().tril()"
        ),
        f"By itself this passes, but not after the checks before it: {KEEPS}",
    ),
    "what is added grows with each call": (
        "causal_self_attention",
        "        return output",
        (
            "        self.calls = getattr(self, 'calls', -1) + 1\n"
            "        return (output + self.calls) * (1 + self.calls)"
        ),
        CALL,
    ),
    "the first length is kept, and others raise": (
        "causal_self_attention",
        "        return output",
        (
            "        self.first = [*getattr(self, 'first', []), x.shape[1]]\n"
            "        return output + (0 * x.view(-1, self.first[0], x.shape[2])).sum()"
        ),
        CALL,
    ),
    "what is kept does no harm": (
        "causal_self_attention",
        "        return output",
        "        self.kept = x\n        return output.flip(-1).abs() + 0.3 * output",
        "",
    ),
}


@pytest.fixture(scope="module")
def reports(interpreter: Interpreter) -> dict[str, Report]:
    """The report on each case; no time is spent on a repair."""
    last = COURSE.stage("causal_self_attention")
    files = solution_files(COURSE)

    def body(checks: Checks) -> dict[str, Report]:
        engine, found = Engine(COURSE, "cpu", interpreter, checks), {}
        for name, (slug, right, wrong, _) in CASES.items():
            stage = COURSE.stage(slug)
            source = files[stage.file_name].decode()
            assert right in source
            edited = source.replace(right, wrong).encode()
            request = Request(Submission(name, {**files, stage.file_name: edited}), (stage,), 1)
            found[name] = engine.with_place(request, engine.grade(request), 0.0)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("grader.engine.VALUE_SECONDS", 60.0)  # the machine may be busy
        return with_checks(COURSE, [*COURSE.required(last), last], body)


@pytest.mark.parametrize("name", CASES)
def test_a_report_says_it_if_what_is_kept_makes_the_answer_wrong(
    reports: dict[str, Report], name: str
) -> None:
    expected = CASES[name][3]
    found = [check.diagnosis for check in reports[name].stages[0].checks if check.diagnosis]
    assert any(expected in each.text for each in found) if expected else found
    assert expected or not any(KEEPS in each.text for each in found)
