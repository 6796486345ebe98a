"""The course's finale: what the solution's module learns, and what each missing part does.

The margins of copying were measured over seeds 1 to 8.
"""

import importlib
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from grader.learning.finale.programs import Program, all_programs
from grader.learning.finale.training import Run, Studio, studio, train
from grader.read.submission import read_submission
from tests.kit.support.checkout import COURSE, ROOT

PROGRAMS = {program.name: program for program in all_programs(COURSE)}
SHARPNESS = "largest weight of a row at the start"
UNSEEN = "loss in text it has not seen"
FIRST, SECOND = "loss in the first word", "loss in the second word"


# --- a few steps, in this process ---------------------------------------------------------------


@pytest.fixture
def classes(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The names of the course's file, run with the solutions as in the worker."""
    torch.set_num_threads(1)  # as in the worker
    program = PROGRAMS["novel"]
    slugs = [stage.slug for stage in COURSE.stages]
    for slug in slugs:
        monkeypatch.delitem(sys.modules, slug, raising=False)
    monkeypatch.syspath_prepend(str(ROOT / "solutions"))
    importlib.invalidate_caches()
    names: dict[str, Any] = {}
    exec(f"{program.source}\nTEXT = {program.text!r}\n", names)
    yield names
    for slug in slugs:
        sys.modules.pop(slug, None)


def test_it_begins_to_learn(classes: dict[str, Any]) -> None:
    copying = classes["Copying"](1, "", "cpu")
    losses = copying.steps(60)
    assert abs(losses[0] - math.log(26)) < 0.6  # it knows nothing
    assert sum(losses[-5:]) / 5 < losses[0] - 0.15


@pytest.mark.parametrize("without", PROGRAMS["copying"].without)
def test_every_part_can_be_left_out(classes: dict[str, Any], without: str) -> None:
    copying = classes["Copying"](1, without, "cpu")
    assert copying.steps(2) != classes["Copying"](1, "", "cpu").steps(2)
    heatmap = copying.heatmap()
    assert len(heatmap["tensor"]) == len(heatmap["fit"]) == (1 if without == "heads" else 4)
    hidden = heatmap["tensor"].triu(1).abs().max() == 0
    assert hidden == (without != "mask")


def test_the_same_seed_learns_the_same(classes: dict[str, Any]) -> None:
    one, other, third = (classes["Copying"](seed, "", "cpu").steps(2) for seed in (1, 1, 2))
    assert one == other != third


def test_the_bigram_of_the_novel_is_a_bound_that_few_steps_do_not_reach(
    classes: dict[str, Any],
) -> None:
    novel = classes["Novel"](1, "", "cpu")
    assert novel.guides()["letter pairs"] == pytest.approx(2.416, abs=0.001)
    assert novel.steps(2)[-1] > 3
    novel.SAMPLE = 3
    assert len(novel.sample()) == 3


def test_without_the_scale_the_softmax_is_sharp_from_the_start(classes: dict[str, Any]) -> None:
    soft, sharp = (classes["Copying"](1, without, "cpu").scores() for without in ("", "scaling"))
    assert soft[SHARPNESS] < 0.65 and sharp[SHARPNESS] > 0.75


# --- the whole of it, in the worker -------------------------------------------------------------


def trained(room: Studio, program: Program, without: str) -> tuple[Run, str]:
    """A training to its end, and what it writes then."""
    submission, samples = read_submission(ROOT / "solutions"), []
    with room.trainee(program, submission, 1, without) as trainee:
        run = train(trainee, program, without, lambda moment: samples.append(moment.sample))
    assert run.is_whole
    return run, samples[-1]


@pytest.mark.slow
def test_a_head_learns_to_copy_and_each_missing_part_shows() -> None:
    program = PROGRAMS["copying"]
    with studio(COURSE, "cpu") as room:
        runs = {part: trained(room, program, part) for part in ("", *program.without)}
    right, written = runs[""]
    assert right.scores[SECOND] < 0.12  # 0.04 to 0.08
    assert right.scores[FIRST] > 3.1  # it cannot be known: 3.18 is the least possible
    (_, before), (_, after) = right.heatmap.panels
    back = [(row, row - 3) for row in range(3, 7)]
    assert min(after[row][column] for row, column in back) > 0.9
    assert max(before[row][column] for row, column in back) < 0.9
    assert written == "lamp -> lamp\nbird -> bird\nstep -> step"
    assert runs["mask"][0].scores[FIRST] < 0.1  # impossible without a look at the answer
    assert runs["heads"][0].scores[SECOND] > 0.16  # 0.20 to 0.29
    assert runs["scaling"][0].scores[SHARPNESS] > right.scores[SHARPNESS] + 0.15


@pytest.mark.slow
def test_the_novel_is_learnt_below_the_bigram_and_each_missing_part_shows() -> None:
    third = replace(PROGRAMS["novel"], steps=400)
    with studio(COURSE, "cpu") as room:
        right, _ = trained(room, third, "")
        mask, rubbish = trained(room, replace(third, steps=300), "mask")
        scaling, _ = trained(room, third, "scaling")
    assert right.scores[UNSEEN] < 2.2 < right.guides["letter pairs"] - 0.2  # 2.12; 1.75 in the end
    assert mask.scores[UNSEEN] < 0.2  # 0.060; 0.044 in the end
    assert scaling.scores[UNSEEN] > right.scores[UNSEEN] + 0.03  # 0.101; 0.056 in the end
    assert scaling.scores[SHARPNESS] > 2 * right.scores[SHARPNESS]
    known = set(third.text.split())
    assert sum(word in known for word in rubbish.split()) < 0.6 * len(rubbish.split())
