"""The stage's example: five modules, and which of your tests each of them fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.tracing import Heatmap, Step

MODULE = """
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("sizes")
        self.parts = num_heads
        self.chance = dropout
        made = [nn.Linear(d_model, d_model, bias=bias) for _ in range(4)]
        self.w_q, self.w_k, self.w_v, self.w_o = made
        for one in made:
            nn.init.xavier_uniform_(one.weight)
            if bias:
                one.bias.data.zero_()

    def forward(self, query, key, value, mask=None):
        D = query.shape[-1]
        biases = None
        if self.w_q.bias is not None:
            biases = torch.cat([self.w_q.bias, self.w_k.bias, self.w_v.bias])
        sees = None
        if mask is not None:
            shown = SHOWN.expand(len(query), self.parts, query.shape[1], key.shape[1])
            sees = shown.any(-1, keepdim=True)
            mask = (~shown & sees).flatten(0, 1)
        found, maps = F.multi_head_attention_forward(
            query.transpose(0, 1), key.transpose(0, 1), SOURCE.transpose(0, 1), D, self.parts,
            None, biases, None, None, False, self.chance, torch.eye(D), None,
            training=LEARNS, attn_mask=mask, use_separate_proj_weight=True,
            q_proj_weight=self.w_q.weight, k_proj_weight=self.w_k.weight,
            v_proj_weight=self.w_v.weight, average_attn_weights=False,
        )
        found = found.transpose(0, 1).unflatten(2, (self.parts, -1))
        if sees is not None:
            found, maps = found * sees.transpose(1, 2), maps * sees
        return self.w_o(found.flatten(2)), maps
"""
USUAL = {"SHOWN": "mask.bool()", "SOURCE": "value", "LEARNS": "self.training"}
MODULES: dict[str, dict[str, str]] = {
    "right": {},
    "mask": {"SHOWN": "(mask == 0)"},
    "value": {"SOURCE": "key"},
    "drops": {"LEARNS": "True"},
    "never": {"LEARNS": "False"},
}
SHOWN = 12  # tests


def source(changes: dict[str, str]) -> str:
    text = MODULE
    for word, code in {**USUAL, **changes}.items():
        text = text.replace(word, code)
    return text


def trace(submission: Any) -> Iterator[Step | Heatmap | str]:
    yield (
        "Your tests on five modules: a right one; one whose `mask` hides what is allowed; one that "
        "takes a key for a `value`; one that always `drops` out, and one that `never` does. These "
        "are examples; the grader uses others."
    )
    sources = {name: source(changes) for name, changes in MODULES.items()}
    trials = submission.tried("make_attention", sources, "Attention", whole=True)
    for name, trial in trials.items():
        if trial.ended:
            yield f"{name}: your tests do not finish. {trial.ended}"
    tests = [test for test, _ in trials["right"].outcomes][:SHOWN]
    if not tests:
        yield "There are no tests that could be shown."
        return
    failed = {
        name: {test for test, outcome in trial.outcomes if outcome in ("failed", "errored")}
        for name, trial in trials.items()
    }
    table = torch.tensor([[int(test in failed[name]) for name in MODULES] for test in tests])
    names = [test.removeprefix("test_") for test in tests]
    yield Step(
        "fails",
        table,
        f"test module={len(MODULES)}",
        says="1 where a test fails.",
        labels={"test": names, "module": list(MODULES)},
        compare=False,
    )
    yield Heatmap(
        "Where a test fails",
        table[None].float(),
        ["1 = it fails"],
        names,
        list(MODULES),
        "test",
        "module",
    )
    if failed["right"]:
        yield "Your tests fail on the right module. Fix that first: until then nothing else counts."
        return
    caught = [name for name in MODULES if failed[name]]
    yield f"Caught: {', '.join(caught) or 'none'}, of {len(MODULES) - 1} wrong ones."
