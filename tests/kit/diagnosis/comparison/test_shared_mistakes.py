"""A usual mistake in the course's own solution gets its name in each stage that has it."""

import pytest

from grader.run.collecting import with_checks
from grader.run.session import Checks
from grader.run.workers import Interpreter
from tests.kit.explained import explained
from tests.kit.support.checkout import COURSE
from tests.kit.wrong_answers import WrongAnswer

PREFIXES = {
    "multi_head_attention": "mha",
    "need_weights": "need",
    "fused_qkv": "fused",
    "grouped_query": "gqa",
    "causal_self_attention": "csa",
    "rope": "rope",
    "kv_cache": "kv",
}
MISTAKES = (
    ("no_scale", "scaled_scores(q, k)", "(q @ k.transpose(-2, -1))"),
    ("key_through_w_v", "self.w_k(", "self.w_v("),
)


@pytest.mark.slow
@pytest.mark.parametrize("slug", PREFIXES)
def test_they_are_named(slug: str, interpreter: Interpreter) -> None:
    stage = COURSE.stage(slug)
    source = stage.solution_file.read_text(encoding="utf-8")
    answers = [
        WrongAnswer(slug, name, name, source.replace(right, wrong))
        for name, right, wrong in MISTAKES
        if right in source
    ]
    assert len(answers) == (1 if slug == "fused_qkv" else 2)

    def body(checks: Checks) -> None:
        for answer, reasons in explained(slug, answers, interpreter, checks):
            assert [reason.id for reason in reasons] == [f"{PREFIXES[slug]}_{answer.name}"]

    with_checks(COURSE, [stage], body)
