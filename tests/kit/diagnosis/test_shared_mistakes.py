"""A usual mistake in the course's own solution gets its name in each stage that has it."""

from __future__ import annotations

import pytest

from grader.run.session import Checks, with_checks
from grader.run.workers import Interpreter
from tests.kit.checkout import COURSE
from tests.kit.explained import explained
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
RIGHT, WRONG = "scaled_scores(q, k)", "(q @ k.transpose(-2, -1))"


@pytest.mark.slow
@pytest.mark.parametrize("slug", PREFIXES)
def test_scores_without_a_scale_are_named(slug: str, interpreter: Interpreter) -> None:
    stage = COURSE.stage(slug)
    source = stage.solution_file.read_text(encoding="utf-8")
    assert RIGHT in source
    answer = WrongAnswer(slug, "no_scale", "no scale", source.replace(RIGHT, WRONG))
    told: list[str] = []

    def body(checks: Checks) -> None:
        for _, reasons in explained(slug, [answer], interpreter, checks):
            told.extend(reason.id for reason in reasons)

    with_checks(COURSE, [stage], body)
    assert told == [f"{PREFIXES[slug]}_no_scale"]
