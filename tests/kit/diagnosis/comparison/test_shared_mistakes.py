"""A usual mistake in the course's own solution gets its name in each stage that has it."""

from __future__ import annotations

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
CASES = [
    *((slug, "scaled_scores(q, k)", "(q @ k.transpose(-2, -1))", "no_scale") for slug in PREFIXES),
    *(
        (slug, "self.w_k(", "self.w_v(", "key_through_w_v")
        for slug in PREFIXES
        if slug != "fused_qkv"
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("slug, right, wrong, name", CASES)
def test_it_is_named(
    slug: str, right: str, wrong: str, name: str, interpreter: Interpreter
) -> None:
    stage = COURSE.stage(slug)
    source = stage.solution_file.read_text(encoding="utf-8")
    assert right in source
    answer = WrongAnswer(slug, name, name, source.replace(right, wrong))
    told: list[str] = []

    def body(checks: Checks) -> None:
        for _, reasons in explained(slug, [answer], interpreter, checks):
            told.extend(reason.id for reason in reasons)

    with_checks(COURSE, [stage], body)
    assert told == [f"{PREFIXES[slug]}_{name}"]
