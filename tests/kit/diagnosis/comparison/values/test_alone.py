"""A wrong answer that is right by itself shows that the learner's code keeps something."""

import pytest

from grader.engine import Engine, Request
from grader.run.collecting import with_checks
from grader.run.session import Checks
from grader.run.solutions import solution_files
from grader.run.workers import Interpreter
from grader.types.report import Report
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE

STAGE, MODULE = COURSE.stage("scaled_scores"), COURSE.stage("causal_self_attention")
HELD = COURSE.stage("need_weights")
RIGHT = "    return q @ keys / math.sqrt(d_k)"
COUNTED = "    scaled_scores.calls = getattr(scaled_scores, 'calls', -1) + 1\n"
KEEPS = "your code keeps something from one call to the next"
BETWEEN_CALLS = f"right by itself, but not after the calls before it: {KEEPS}"
BETWEEN_CHECKS = f"By itself this passes, but not after the checks before it: {KEEPS}"
# What the learner has in place of the solution's last line, and what the report says.
CASES = {
    "what is added grows with each call": (
        f"{COUNTED}{RIGHT} + scaled_scores.calls",
        {BETWEEN_CALLS, BETWEEN_CHECKS},
    ),
    "every call but the first raises": (
        f"{COUNTED}    q.view(-1)[[0][scaled_scores.calls]]\n{RIGHT}",
        {BETWEEN_CHECKS},  # where all checks fail alike, one is run again
    ),
    "what is kept does no harm": (f"{COUNTED}{RIGHT}.flip(-1).abs() + 0.3", set[str]()),
}

EXPANDED = """
        self.mask = mask if mask is None else (mask != 0).expand(len(q), self.num_heads, -1, -1)
        scores = """
SHARED = "        CausalSelfAttention.num_heads = num_heads\n"  # by all modules
# The buffer has a name of its own, and the shorter mask replaces the longer one.
CUT = "        mask = self.cut = self.cut[:, :, :T, :T]"
# eval() comes with the first call, and must not be left out with it.
IN_EVALUATION = "        return output if self.training else output.flip(-1).abs() + 0.3"


@pytest.fixture(scope="module")
def reports(interpreter: Interpreter) -> dict[str, Report]:
    """The report on each case; no time is spent on a repair."""
    files = solution_files(COURSE)
    right = files[STAGE.file_name].decode()
    assert RIGHT in right

    def body(checks: Checks) -> dict[str, Report]:
        engine, found = Engine(COURSE, "cpu", interpreter, checks), {}
        for name, (wrong, _) in CASES.items():
            edited = right.replace(RIGHT, wrong).encode()
            request = Request(Submission(name, {**files, STAGE.file_name: edited}), (STAGE,), 1)
            found[name] = engine.with_place(request, engine.grade(request), 0.0)
        wrong = files[MODULE.file_name].decode().replace("        return output", IN_EVALUATION)
        held = files[HELD.file_name].decode().replace("        scores = ", EXPANDED)
        shared = files[MODULE.file_name].decode()
        shared = shared.replace("        self.num_heads = num_heads\n", SHARED)
        cut = files[MODULE.file_name].decode().replace('"mask"', '"cut"')
        cut = cut.replace('        mask = self.get_buffer("cut")[:, :, :T, :T]', CUT)
        cut = cut.replace("self.context_size < T", "self.cut.shape[-1] < T")
        edited = {"mode": wrong, "shared": shared, "cut": cut}
        sources = [*((name, MODULE, source) for name, source in edited.items())]
        for name, stage, source in [*sources, ("held", HELD, held)]:
            submission = Submission(name, {**files, stage.file_name: source.encode()})
            request = Request(submission, (stage,), 1)
            found[name] = engine.with_place(request, engine.grade(request), 0.0)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("grader.engine.VALUE_SECONDS", 60.0)  # the machine may be busy
        return with_checks(COURSE, [*COURSE.required(MODULE), MODULE, HELD], body)


@pytest.mark.parametrize("name", CASES)
def test_a_report_says_it_if_what_is_kept_makes_the_answer_wrong(
    reports: dict[str, Report], name: str
) -> None:
    expected = CASES[name][1]
    found = [check.diagnosis.text for check in reports[name].stages[0].checks if check.diagnosis]
    assert all(any(each in text for text in found) for each in expected), found
    assert expected or not any(KEEPS in text for text in found)


def test_what_is_wrong_in_evaluation_mode_alone_keeps_nothing(reports: dict[str, Report]) -> None:
    found = [check.diagnosis.text for check in reports["mode"].stages[0].checks if check.diagnosis]
    assert found and not any(KEEPS in text for text in found)


def test_what_another_module_leaves_behind_is_kept(reports: dict[str, Report]) -> None:
    found = [each.diagnosis.text for each in reports["shared"].stages[0].checks if each.diagnosis]
    assert any(BETWEEN_CALLS in text for text in found)


def test_a_buffer_of_another_name_hides_no_mask_that_is_kept(reports: dict[str, Report]) -> None:
    found = [each.diagnosis.text for each in reports["cut"].stages[0].checks if each.diagnosis]
    assert any(BETWEEN_CALLS in text for text in found)


def test_what_an_object_holds_is_no_answer_to_a_call(reports: dict[str, Report]) -> None:
    checks = reports["held"].stages[0].checks
    assert any("within the module" in check.message for check in checks)
    assert not any(check.diagnosis and KEEPS in check.diagnosis.text for check in checks)
