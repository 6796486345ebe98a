"""Mutants of the tiny course: all are caught, and each check that grows weak is told."""

import ast
import json
import math
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from grader.authoring.mutants.making import mutants_of
from grader.authoring.mutants.record import read_records
from grader.authoring.mutants.survivors import try_mutants
from grader.authoring.mutants.types import Fate, StageTrials
from grader.authoring.verify.verify import verify
from grader.read.course_file import read_course
from grader.read.misconceptions import read_misconceptions
from grader.run.lanes import can_fork
from grader.types.course import Course, EntryPoint
from grader.types.errors import CourseError
from tests.kit.support.checkout import ROOT, start_grade
from tests.kit.support.files import edit
from tests.kit.support.processes import until

pytestmark = pytest.mark.skipif(not can_fork("cpu"), reason="no fork on this system")


def tried(course: Course, slug: str, *, needed: bool = False) -> StageTrials:
    """What becomes of one stage's mutants."""
    (trials,) = try_mutants(course, [course.stage(slug)], needed=needed).stages
    return trials


def live(trials: StageTrials) -> set[str]:
    return {trial.id for trial in trials.trials if trial.fate is Fate.LIVE}


def record(course: Course, slug: str, text: str) -> None:
    file = course.stage(slug).mutants_file
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")


@pytest.mark.slow
def test_several_at_a_time_come_to_the_same(course: Course) -> None:
    told: list[tuple[str, int, int]] = []
    fates = []
    for lanes in (1, 3):
        stages = [course.stage("smooth")]
        (trials,) = try_mutants(
            course, stages, lanes=lanes, progress=lambda *what: told.append(what)
        ).stages
        fates.append([(trial.id, trial.fate) for trial in trials.trials])
    assert fates[0] == fates[1]
    count = len(fates[0])
    assert told == [("smooth", done, count) for _ in (1, 3) for done in range(count + 1)]


# --- weak checks -----------------------------------------------------------------------------


def test_a_live_mutant_is_shown_as_a_diff(course: Course) -> None:
    edit(course.stage("roughness").check_file, "([1.0], 0.0)", "([1.0, 1.0], 0.0)")
    trials = tried(course, "roughness")
    diffs = [trial.diff for trial in trials.trials if trial.fate is Fate.LIVE]
    assert not trials.is_sound
    assert any(
        "-    return max((abs(right - left) for left" in diff and "default=1.0)" in diff
        for diff in diffs
    )


def without_assertions(source: str, check: str) -> str:
    """A check file whose check `check` runs as before and asserts nothing."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == f"test_{check}":
            docstring, *body = node.body
            harmless = ast.parse("with __import__('contextlib').suppress(AssertionError): pass")
            block = harmless.body[0]
            assert isinstance(block, ast.With)
            block.body = body
            node.body = [docstring, block]
    return ast.unparse(tree)


def blunted(
    course: Course, slug: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, StageTrials]]:
    """Each check of a stage, and the trials when it asserts nothing.

    To save time, nothing is tried but what no other check finds, or what it is to find.
    """
    stage = course.stage(slug)
    needed = tried(course, slug, needed=True)
    assert needed.is_sound
    whole = stage.check_file.read_text(encoding="utf-8")
    overlaps = read_records(stage).overlaps
    for check in re.findall(r"^def test_(\w+)", whole, re.MULTILINE):
        (need,) = (need for need in needed.needs if need.check == f"{slug}.{check}")
        few = {*need.only, *getattr(overlaps.get(check), "catches", ())}
        stage.check_file.write_text(without_assertions(whole, check), encoding="utf-8")
        with monkeypatch.context() as patch:
            for kind in (mutants_of, read_misconceptions):
                chosen = tuple(each for each in kind(stage) if each.id in few)
                name = f"grader.authoring.mutants.survivors.{kind.__name__}"
                patch.setattr(name, lambda _, chosen=chosen: chosen)
            yield check, tried(course, slug)
    stage.check_file.write_text(whole, encoding="utf-8")


def is_told(course: Course, trials: StageTrials, check: str) -> bool:
    """Whether a mutant is said to live, at all or in this check, or else a misconception."""
    if live(trials) or any(each.check == f"{trials.slug}.{check}" for each in trials.escapes):
        return True
    (proof,) = verify(course, [course.stage(trials.slug)]).stages
    return any("no check catches " in problem for problem in proof.problems)


@pytest.mark.slow
def test_for_a_check_that_asserts_nothing_it_is_told_what_now_lives(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 0
    for stage in course.stages:
        for check, trials in blunted(course, stage.slug, monkeypatch):
            count += 1
            assert is_told(course, trials, check) and not trials.is_sound, (stage.slug, check)
            blunt = f": {stage.slug}.{check} catches no mutant and no misconception: sharpen"
            assert any(blunt in said for said in trials.problems), check
    assert count == 7


@pytest.mark.slow
def test_of_a_stage_of_the_kits_course_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = shutil.ignore_patterns("__pycache__", ".*", "kit", "*.egg-info")
    shutil.copytree(ROOT, tmp_path / "copy", ignore=left_out)
    course = read_course(tmp_path / "copy" / "course.toml")
    for check, trials in blunted(course, "concat_heads", monkeypatch):
        assert is_told(course, trials, check) and not trials.is_sound, check


def removed(diff: str) -> list[str]:
    return [line for line in diff.splitlines()[2:] if line.startswith("-")]


@pytest.mark.slow
def test_what_lives_in_a_check_is_shown_as_what_lives_at_all(course: Course) -> None:
    stage = course.stage("moving_average")
    whole = stage.check_file.read_text(encoding="utf-8")
    stage.check_file.write_text(without_assertions(whole, "length"), encoding="utf-8")
    overlap = read_records(stage).overlaps["length"]
    escapes = tried(course, "moving_average").escapes
    assert {each.check for each in escapes} == {"moving_average.length"}
    assert {each.id for each in escapes} == {*overlap.catches}
    code, output = plain(course, "moving_average")
    assert code == 1
    for each in escapes:
        assert f"moving_average: {each.id} passes the check length\n" in output
        assert all(f"removed: {line[1:]}" in output for line in removed(each.diff))
        assert each.says in output
    assert any(removed(each.diff) for each in escapes) and any(each.says for each in escapes)


# --- what an author records ------------------------------------------------------------------

SAME = """
[[equivalent]]
where = "smooth"
before = "for _ in range(times):"
after = "for _ in range(times + 0):"
reason = "nothing is added"
"""


@pytest.mark.slow
@pytest.mark.parametrize("after, said", [("0", "is no longer a mutant"), ("1", "is caught by")])
def test_a_record_of_no_mutant_or_of_one_that_is_caught_is_named(
    course: Course, after: str, said: str
) -> None:
    record(course, "smooth", SAME.replace("times + 0", f"times + {after}"))
    (problem,) = tried(course, "smooth").problems
    assert problem.startswith(f"tests/mutants/smooth.toml: equivalent 1 {said}")


def test_a_malformed_record_is_an_error(course: Course) -> None:
    record(course, "smooth", "[[equivalent]]\nwhere = 3\n")
    with pytest.raises(CourseError, match=r"tests/mutants/smooth\.toml: equivalent 1: 'where'"):
        tried(course, "smooth")


# --- what each check is needed for -----------------------------------------------------------


@pytest.mark.slow
def test_needed_tells_what_a_check_alone_catches(course: Course) -> None:
    trials = tried(course, "moving_average", needed=True)
    needs = {need.check.partition(".")[2]: need.only for need in trials.needs}
    assert needs["length"] == ()
    assert needs["unchanged"] == ("average_in_place",)
    assert "average_sum" in needs["values"]
    assert trials.is_sound


@pytest.mark.slow
def test_a_check_that_nothing_needs_wants_a_reason(course: Course) -> None:
    course.stage("moving_average").mutants_file.unlink()
    problems = tried(course, "moving_average", needed=True).problems
    told = (
        "catches nothing that other checks don't catch too: sharpen it, or give the reason "
        "under [overlaps]"
    )
    (problem,) = problems
    assert problem.startswith("tests/checks/test_moving_average.py:")
    assert problem.endswith(f": moving_average.length {told}")
    assert tried(course, "moving_average").is_sound


@pytest.mark.slow
def test_an_overlap_that_is_none_is_named(course: Course) -> None:
    found = tried(course, "smooth", needed=True).needs[0].only[0]
    tables = (
        f"[overlaps.{check}]\nreason = 'good'\ncatches = ['{found}']\n"
        for check in ("value", "values")
    )
    record(course, "smooth", "\n".join(tables))
    problems = sorted(tried(course, "smooth", needed=True).problems)
    assert len(problems) == 2, problems
    assert "overlaps.values: only this check catches smooth." in problems[0]
    assert "overlaps: there is no check 'value' (did you mean 'values'?)" in problems[1]


STALE = """
[overlaps.unchanged]
reason = "says it plainly"
catches = ["average_gone"]

[overlaps.length]
reason = "tells of the number"
catches = ["average_in_place"]
"""


@pytest.mark.slow
def test_a_witness_that_is_none_is_named(course: Course) -> None:
    record(course, "moving_average", STALE)
    trials = tried(course, "moving_average")
    (problem,) = trials.problems
    said = "'average_gone' is no mutant and no misconception"
    place = "tests/mutants/moving_average.toml: overlaps.unchanged"
    assert problem == f"{place}: {said}: --needed prints what to write"
    ((check, id),) = ((each.check, each.id) for each in trials.escapes)
    assert (check, id) == ("moving_average.length", "average_in_place")


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", STALE])
def test_what_needed_prints_is_the_record_that_there_has_to_be(course: Course, before: str) -> None:
    record(course, "moving_average", before)
    words = ("moving_average", "--needed", "--course", str(course.root))
    output, _ = grade(*words).communicate()
    assert "Write this into tests/mutants/moving_average.toml:" in output
    tables = "\n".join(re.findall(r"^\[overlaps\.\w+\]\nreason.*\ncatches.*$", output, re.M))
    assert tables.count("[overlaps.") == 1
    assert ('reason = "tells of the number"' in tables) == bool(before)
    record(course, "moving_average", tables.replace('""', '"why not"'))
    trials = tried(course, "moving_average", needed=True)
    assert trials.is_sound and not any(need.overlap for need in trials.needs)


@pytest.mark.slow
def test_needed_prints_how_to_explain_what_lives(course: Course) -> None:
    edit(course.stage("roughness").check_file, "([1.0], 0.0)", "([1.0, 1.0], 0.0)")
    output, _ = grade("roughness", "--needed", "--course", str(course.root)).communicate()
    assert "Write this into tests/mutants/roughness.toml, for" in output
    tables = re.findall(r"^\[\[equivalent\]\]\nwhere.*\nbefore.*\nafter.*\nreason.*$", output, re.M)
    record(course, "roughness", "\n".join(tables).replace('""', '"nobody asks for no values"'))
    after = tried(course, "roughness")
    assert after.is_sound and after.count(Fate.EXPLAINED) == len(tables) > 0


# --- odd stages and ends ---------------------------------------------------------------------


def test_a_solution_that_fails_is_told_and_not_changed(course: Course) -> None:
    edit(course.stage("smooth").solution_file, "range(times)", "range(times + 1)")
    trials = tried(course, "smooth")
    assert trials.trials == ()
    assert "the solution fails smooth.values" in trials.problems[0]


def test_a_stage_whose_solution_is_a_test_has_no_mutants(course: Course) -> None:
    fixture = EntryPoint("values", ("tests",), is_fixture=True)
    (trials,) = try_mutants(
        course, [replace(course.stage("roughness"), entry_points=(fixture,))]
    ).stages
    assert trials.skipped and trials.mutants == 0 and trials.is_sound


@pytest.mark.slow
def test_what_hangs_or_dies_is_caught(course: Course) -> None:
    edit(
        course.stage("roughness").solution_file,
        "    neighbours_in_pairs",
        "    for _ in iter(int, 1):\n        break\n"
        "    if not values:\n        os._exit(3)\n    neighbours_in_pairs",
    )
    edit(course.stage("roughness").solution_file, "from itertools", "import os\nfrom itertools")
    trials = tried(course, "roughness")
    assert trials.count(Fate.TIMED_OUT) > 0 and trials.count(Fate.CRASHED) > 0


def test_what_one_mutant_leaves_behind_does_not_catch_the_next(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(math, "kept", 1.0, raising=False)
    stage = course.stage("roughness")
    edit(stage.check_file, "([1.0], 0.0)", "([1.0, 1.0], 0.0)")
    more = "    math.kept = max(1.0, math.kept)\n    neighbours_in_pairs"  # what it adds stays
    edit(stage.solution_file, "    neighbours_in_pairs", more)
    edit(stage.solution_file, "from itertools", "import math\nfrom itertools")
    edit(stage.solution_file, "return max(", "return math.kept * max(")
    diffs = [trial.diff for trial in tried(course, "roughness").trials if trial.fate is Fate.LIVE]
    assert any("default=1.0)" in diff for diff in diffs)


def grade(*words: str) -> subprocess.Popen[str]:
    return start_grade("verify", "--mutants", *words, env={"COLUMNS": "60"})


def plain(course: Course, slug: str) -> tuple[int, str]:
    """The exit code and what is shown of one stage, without a table."""
    process = grade(slug, "--plain", "--course", str(course.root))
    output, _ = process.communicate()
    return process.returncode, output


@pytest.mark.slow
def test_every_mutant_is_tried_and_none_lives(course: Course) -> None:
    process = grade("--course", str(course.root), "--json", "--jobs", "1")
    output, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    report = json.loads(output)
    assert report["finished"]
    for one, found in zip(course.stages, report["stages"], strict=True):
        trials = found["trials"]
        assert [trial["id"] for trial in trials] == [mutant.id for mutant in mutants_of(one)]
        assert {trial["fate"] for trial in trials} == {"caught"}
        assert found["problems"] == [] and all(trial["caught_by"] for trial in trials)


def test_the_command_shows_what_lives_and_fails(course: Course) -> None:
    edit(course.stage("smooth").check_file, "@pytest.mark.points(1)\ndef", "def")
    edit(course.stage("smooth").check_file, "(3)", "(4)")
    edit(course.stage("smooth").check_file, "test_once", "once")
    code, output = plain(course, "smooth")
    assert code == 1
    assert "removed: def smooth(values: np.ndarray, width: int, times: int = 1)" in output
    assert "added: def smooth(values: np.ndarray, width: int, times: int = 2)" in output
    assert "smooth: 21 mutants, 19 caught, 0 explained, 2 live" in output
    assert "Every mutant" not in output


def test_the_command_says_that_nothing_lives(course: Course) -> None:
    code, output = plain(course, "smooth")
    assert code == 0 and "Every mutant is caught or explained." in output


@pytest.mark.slow
def test_ctrl_c_ends_it_at_once_with_what_is_known() -> None:
    with grade("multi_head_attention", "--plain", "--jobs", "2") as process:
        # The first mutants.
        assert until(lambda: psutil.Process(process.pid).children(), 120)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert "Stopped: these are the results so far." in output
    assert "multi_head_attention: " in output
