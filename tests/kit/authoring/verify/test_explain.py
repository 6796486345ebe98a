"""How a course explains its wrong answers: the tiny course, and one stage of the kit's own."""

import json
import re
import signal
import time
from collections.abc import Sequence
from types import SimpleNamespace

import psutil
import pytest

from grader.authoring.mutants.making import mutants_of
from grader.authoring.mutants.types import Mutant
from grader.authoring.verify import explain as explaining
from grader.authoring.verify.explain import How, StageExplained, explain
from grader.command.main import main
from grader.read.misconceptions import read_misconceptions
from grader.types.course import Course, Stage
from grader.types.report import Diagnosis
from tests.kit.support.checkout import TINY, start_grade
from tests.kit.support.files import edit
from tests.kit.support.processes import until
from tests.kit.support.tiny import Capture, Say, Typed


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some mutants of each function, the dropped statements among them: all would take long."""

    def some(stage: Stage) -> tuple[Mutant, ...]:
        found = mutants_of(stage)
        dropped = [each for each in found if each.operator == "drop"]
        return (*found[:3], *dropped, *(each for each in found if "default=1.0" in each.after[0]))

    monkeypatch.setattr(explaining, "mutants_of", some)


def explained(course: Course, slug: str, *, lanes: int = 1) -> StageExplained:
    (stage,) = explain(course, [course.stage(slug)], lanes=lanes).stages
    return stage


@pytest.mark.usefixtures("few")
def test_every_misconception_gets_its_own_name_and_every_caught_mutant_a_way(
    course: Course,
) -> None:
    told: list[tuple[str, int, int]] = []
    stage = course.stage("smooth")
    report = explain(course, [stage], progress=lambda *what: told.append(what))
    (found,) = report.stages
    known, mutants = read_misconceptions(stage), explaining.mutants_of(stage)
    assert report.finished and found.is_sound
    assert [(each.id, each.how, each.told) for each in found.misconceptions] == [
        (each.id, How.NAMED, (each.id,)) for each in known
    ]
    assert found.tried == found.all_mutants == len(mutants)
    assert [each.id for each in found.mutants] == [mutant.id for mutant in mutants]
    ways = {each.how for each in found.mutants}
    assert {How.NAMED, How.NOTHING} <= ways
    count = len(known) + len(mutants)
    assert told == [("smooth", done, count) for done in range(count + 1)]


@pytest.mark.usefixtures("few")
def test_an_unexplained_mutant_is_shown_with_its_change_and_what_its_learner_reads(
    course: Course,
) -> None:
    found = explained(course, "smooth", lanes=2)
    (nothing,) = (each for each in found.mutants if each.change == ("- return values", "+ pass"))
    assert nothing.how is How.NOTHING and nothing.told == ()
    assert nothing.message == "smooth(...) returned None: is a `return` missing?"


@pytest.mark.usefixtures("few")
def test_a_mutant_that_passes_or_is_recorded_as_equivalent_is_not_counted(course: Course) -> None:
    stage = course.stage("roughness")
    edit(stage.check_file, "([1.0], 0.0)", "([1.0, 1.0], 0.0)")
    before, after = "default=0.0)", "default=1.0)"
    found = explained(course, "roughness")
    assert found.tried == len(explaining.mutants_of(stage)) > len(found.mutants)
    assert all(after not in each.change[1] for each in found.mutants)
    (live,) = (each for each in mutants_of(stage) if each.after[0].endswith(after))
    assert live.before[0].endswith(before)
    stage.mutants_file.parent.mkdir(exist_ok=True)
    stage.mutants_file.write_text(
        f"[[equivalent]]\nwhere = {live.where!r}\nbefore = {live.before[0]!r}\n"
        f"after = {live.after[0]!r}\nreason = 'one value is never given'\n",
        encoding="utf-8",
    )
    assert explained(course, "roughness").tried == found.tried - 1


def test_the_sample_is_spread_evenly_and_always_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining, "SAMPLE", 4)
    mutants = [SimpleNamespace(id=str(number)) for number in range(10)]

    def sampled(some: Sequence[object]) -> list[int]:
        return [int(each.id) for each in explaining._sampled(some)]

    first = sampled(mutants)
    parts = [range(2), range(2, 5), range(5, 7), range(7, 10)]
    assert len(first) == 4
    assert all(number in part for number, part in zip(first, parts, strict=True))
    assert sampled(mutants) == first
    assert sampled(mutants[:3]) == [0, 1, 2] and sampled([]) == []


# --- the command -------------------------------------------------------------------------------


ROUGHNESS = ("verify", "--explain", "roughness", "--plain", "--jobs", "1", "--course")


def test_a_misconception_with_anothers_name_is_a_failure_and_one_without_is_none(
    course: Course, monkeypatch: pytest.MonkeyPatch, say: Say
) -> None:
    monkeypatch.setattr(explaining, "mutants_of", lambda stage: ())
    monkeypatch.setattr(explaining, "diagnose", lambda *_: {"c": Diagnosis("rough_range", "no")})
    code, output, _ = say(*ROUGHNESS, str(course.root))
    assert code == 1
    assert "WRONG NAME: the misconception rough_upwards gets rough_range" in output
    assert "You look at steps upwards only." in output
    assert "1 of 3 misconceptions get their own name" in output

    monkeypatch.setattr(explaining, "diagnose", lambda *_: {})
    code, output, _ = say(*ROUGHNESS, str(course.root))
    assert code == 0
    assert "the misconception rough_upwards is not named: a learner gets no reason" in output


@pytest.mark.usefixtures("few")
def test_the_screen_shows_the_shares_with_and_without_places(
    course: Course, capsys: Capture
) -> None:
    assert main(["verify", "--explain", "smooth", "--jobs", "1", "--course", str(course.root)]) == 0
    output = capsys.readouterr().out
    assert max(map(len, output.splitlines())) <= 80
    words = " ".join(output.split())
    assert "get a name or a symptom" in words and "also counting places" in words
    assert re.search(r"smooth 4 of 4 5 \d \d \d \d \d ", words)
    assert "smooth: nothing explains smooth.drop." in output
    assert "\n- return values\n+ pass\n" in output


@pytest.mark.parametrize(
    "words, told",
    [
        (["--explain", "--mutants"], "--mutants and --explain: type one of them"),
        (["--explain", "--needed"], "--needed only works with --mutants: add it"),
        (["--all"], "--all only works with --explain: add it"),
        (["--explain", "--seeds", "2"], "--seeds does not work with --explain: remove it"),
        (["--mutants", "--seeds", "2"], "--seeds does not work with --mutants: remove it"),
    ],
)
def test_its_options_go_together(words: list[str], told: str, refused: Typed) -> None:
    assert refused("verify", *words, "--course", str(TINY.root)) == f"grade: {told}\n"


@pytest.mark.slow
def test_a_stage_of_the_kit_is_explained_and_its_json_says_how() -> None:
    with start_grade("verify", "--explain", "concat_heads", "--json") as process:
        output, errors = process.communicate()
    assert process.returncode == 0, errors
    report = json.loads(output)
    (stage,) = report["stages"]
    assert report["finished"] and stage["slug"] == "concat_heads"
    assert {each["how"] for each in stage["misconceptions"]} == {"named"}
    ways = [each["how"] for each in stage["mutants"]]
    assert len(ways) > 20 and "nothing" in ways
    assert all(each["told"] for each in stage["mutants"] if each["how"] in ("named", "symptom"))


@pytest.mark.slow
def test_ctrl_c_ends_it_at_once_with_what_is_known() -> None:
    words = ("verify", "--explain", "softmax", "--plain", "--jobs", "2", "--all")
    with start_grade(*words) as process:
        # The interpreter and two lanes.
        assert until(lambda: len(psutil.Process(process.pid).children()) >= 3, 120)
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert errors == ""
    assert "Stopped: these are the results so far." in output
