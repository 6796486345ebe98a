"""A wrong module that nothing else explains is told the first wrong value of its forward."""

import re
from dataclasses import replace

import pytest

from grader.diagnosis.comparison.values.recording import with_value
from grader.engine import Engine, Request
from grader.run.collecting import with_checks
from grader.run.session import Checks
from grader.run.solutions import solution_files
from grader.run.workers import Interpreter
from grader.types.course import Stage
from grader.types.report import Diagnosis, Kind, Report
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE
from tests.kit.wrong_answers import wrong_source

STAGE = COURSE.stage("causal_self_attention")
NEXT = "None of its tensors equals what comes next: "
TOLD = {
    "mask_renormalised": f"gets the scaled scores right \\(.*\\). {NEXT}the masked scores",
    "keys_interleaved": "^Your result is right only at the first position of .*; all others have "
    "wrong numbers. .*makes the query's heads and the value's heads .*, but not "
    "the key's heads .* exactly the right numbers, each one once, but in other places",
    "no_grad": "",
    "two_dtypes": "^In causal_self_attention.py, line 151, your forward makes a Double tensor; its "
    "arguments are Float.$",
}
RIGHT = "weights = attention_weights(apply_mask(scaled_scores(q, k), mask))"
TWO_DTYPES = f"scale = torch.ones(T, dtype=torch.float64)\n        {RIGHT} * scale"


@pytest.fixture(scope="module")
def reports(interpreter: Interpreter) -> dict[str, tuple[Report, Report]]:
    sources = {name: wrong_source(STAGE.slug, name) for name in TOLD if name != "two_dtypes"}
    right = solution_files(COURSE)[STAGE.file_name].decode()
    ours = {"two_dtypes": TWO_DTYPES, "raises": f"assert T > 2\n        {RIGHT} * 2"}
    sources |= {name: right.replace(RIGHT, wrong) for name, wrong in ours.items()}
    return graded(interpreter, STAGE, sources)


def graded(
    interpreter: Interpreter, stage: Stage, sources: dict[str, str]
) -> dict[str, tuple[Report, Report]]:
    """Each answer's report before and after; no time is spent on a repair."""

    def body(checks: Checks) -> dict[str, tuple[Report, Report]]:
        engine, found = Engine(COURSE, "cpu", interpreter, checks), {}
        for name, source in sources.items():
            files = {**solution_files(COURSE), stage.file_name: source.encode()}
            request = Request(Submission(name, files), (stage,), 1)
            report = engine.grade(request)
            found[name] = report, engine.with_place(request, report, 0.0)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("grader.engine.VALUE_SECONDS", 60.0)  # the machine may be busy
        return with_checks(COURSE, [*COURSE.required(stage), stage], body)


def told(report: Report) -> list[Diagnosis]:
    checks = [check.diagnosis for check in report.stages[0].checks]
    return [found for found in checks if found and "our forward" in found.text]


@pytest.mark.parametrize("name", TOLD)
def test_it_tells_what_is_wrong_first(reports: dict[str, tuple[Report, Report]], name: str) -> None:
    found = told(reports[name][1])
    assert bool(found) == bool(TOLD[name])
    for each in found:
        assert re.search(TOLD[name], each.text)
        assert each.kind is (Kind.SYMPTOM if each.text.startswith("Your result") else Kind.VALUE)


@pytest.mark.parametrize("name", TOLD)
def test_the_verdict_is_the_same(reports: dict[str, tuple[Report, Report]], name: str) -> None:
    before, after = (report.stages[0] for report in reports[name])
    checks = [replace(check, diagnosis=None) for check in after.checks]
    assert checks == [replace(check, diagnosis=None) for check in before.checks]
    for one, other in zip(before.checks, after.checks, strict=True):
        if one.diagnosis is not None:
            assert other.diagnosis.id == one.diagnosis.id
            assert other.diagnosis.text.startswith(one.diagnosis.text)


def test_beside_an_error_no_value_of_another_case_is_told(
    reports: dict[str, tuple[Report, Report]],
) -> None:
    report = reports["raises"][1]
    beside = [c.diagnosis for c in report.stages[0].checks if "AssertionError" in c.message]
    assert told(report) and beside and not any(beside)


def test_a_value_may_ask_for_more_precision_than_its_dtype(interpreter: Interpreter) -> None:
    stage, far = COURSE.stage("half_precision"), "The answer needs the scaled scores (B, H, Tq, Tk)"
    expected = {
        "scale_tokens": f"{far}. Your numbers are 1.41 times these (half_precision.py, line 10).",
        "everything_bfloat16": "The answer begins with the scaled scores (B, H, Tq, Tk). In "
        "half_precision.py, line 10, your numbers are nearly these, but differ by up to ",
    }
    sources = {name: wrong_source(stage.slug, name) for name in expected}
    for name, (_, report) in graded(interpreter, stage, sources).items():
        texts = [check.diagnosis.text for check in report.stages[0].checks if check.diagnosis]
        assert any(text.startswith(expected[name]) for text in texts), texts


def test_no_value_is_told_of_a_right_result_in_another_dtype(interpreter: Interpreter) -> None:
    stage = COURSE.stage("half_precision")
    solution = solution_files(COURSE)[stage.file_name].decode()
    sources = {"kept_wide": solution.replace("v.to(wide)).to(v.dtype)", "v.to(wide))")}
    [(before, after)] = graded(interpreter, stage, sources).values()
    assert any(check.diagnosis for check in before.stages[0].checks)
    assert after.stages == before.stages


def test_what_the_result_and_the_tensor_have_in_common_is_told_once() -> None:
    symptom = Diagnosis("symptom:order", "Your result is in reverse order.")
    value = "Your f gets a right, but not b. In f.py, line 2, your tensor is {}."
    ways = ("in reverse order", "wrong in the same way"), ("cut short", "cut short")
    for relation, told in ways:
        found = with_value(symptom, Diagnosis("value:b", value.format(relation)))
        assert found == replace(symptom, text=f"{symptom.text} {value.format(told)}")
