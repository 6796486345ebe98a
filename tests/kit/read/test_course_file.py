"""course.toml: what is wrong with it is said in one line that names place and fault."""

import copy
import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.read import workspace
from grader.read.course_file import find_stage, parse_course, read_course
from grader.read.workspace import locate_course
from grader.types.course import EntryPoint, Limits
from grader.types.errors import CourseError, KitError
from tests.kit.support.birds import TOML
from tests.kit.support.checkout import COURSE, ROOT

BIRDS: dict[str, Any] = {
    "schema": 1,
    "name": "paper-birds",
    "title": "Paper birds",
    "stages": [
        {"slug": "fold", "title": "Fold a sheet", "points": 40, "entry_points": {"fold": "number"}},
        {
            "slug": "bird",
            "title": "The whole bird",
            "points": 60.5,
            "bonus": True,
            "requires": ["fold"],
            "entry_points": {"Bird": "object -> (tensor, any)", "wings": "(array)"},
        },
    ],
}
Break = Callable[[dict[str, Any]], Any]


def top(**keys: Any) -> Break:
    return lambda data: data.update(keys)


def released(*tables: dict[str, Any]) -> Break:
    return top(assignments=[{"name": "a", "stages": ["fold"], **table} for table in tables])


def fold(**keys: Any) -> Break:
    return lambda data: data["stages"][0].update(keys)


def forbidding(cost: object) -> Break:
    return fold(forbidden=["a.b"], forbidden_cost=cost)


def bird(**keys: Any) -> Break:
    return lambda data: data["stages"][1].update(keys)


def no_fold(key: str) -> Break:
    return lambda data: data["stages"][0].pop(key)


def test_a_limit_is_the_same_however_it_is_written() -> None:
    tables: list[dict[str, Any]] = [{**BIRDS, "limits": {"call_seconds": x}} for x in (9, 9.0)]
    one, two = (repr(parse_course(table, Path("/birds")).limits) for table in tables)
    assert one == two


def test_reads_everything() -> None:
    course = parse_course(BIRDS, Path("/birds"))
    assert (course.name, course.title, course.limits) == ("paper-birds", "Paper birds", Limits())
    assert [stage.slug for stage in course.stages] == ["fold", "bird"]
    first, second = course.stages
    assert first.entry_points == (EntryPoint("fold", ("number",)),)
    assert second.entry_points == (
        EntryPoint("Bird", ("tensor", "any"), is_tuple=True, is_class=True, is_object=True),
        EntryPoint("wings", ("array",), is_tuple=True),
    )
    assert (second.points, second.bonus, second.requires) == (60.5, True, ("fold",))
    assert course.required(second) == (first,)
    assert first.check_file == Path("/birds/tests/checks/test_fold.py")
    assert first.misconceptions_file == Path("/birds/hints/misconceptions/fold.py")
    assert (first.visible, course.is_partial) == ((), False)
    assert (first.forbidden, first.forbidden_cost) == ((), 1)


def test_what_a_package_says_has_defaults() -> None:
    course = parse_course({**BIRDS, "preload": ["numpy"]}, ROOT)
    said = (course.authors, course.license, course.version, course.package, course.requirements)
    assert said == ((), "", "", "paper-birds", ("numpy",))
    course = parse_course({**BIRDS, "preload": ["numpy"], "requirements": [], "package": "b"}, ROOT)
    assert (course.package, course.requirements) == ("b", ())


def test_a_stage_is_found_by_every_slug_that_it_had() -> None:
    data = copy.deepcopy(BIRDS)
    data["stages"][0]["formerly"] = "crease"
    data["stages"][1]["formerly"] = ["wing", "flight"]
    course = parse_course(data, ROOT)
    assert [find_stage(course, word).slug for word in ("crease", "wing", "flight", "bird")] == [
        *("fold", "bird", "bird", "bird")
    ]
    assert [stage.cell_name for stage in course.stages] == ["crease", "wing"]


def test_a_stage_may_ask_for_tests() -> None:
    data = copy.deepcopy(BIRDS)
    data["stages"][1]["entry_points"] = {"make_bird": "tests"}
    first, second = parse_course(data, ROOT).stages
    assert second.entry_points == (EntryPoint("make_bird", (), is_fixture=True),)
    assert (first.fixture, second.fixture) == ("", "make_bird")
    [entry] = second.entry_points
    asked = ["test_wings", "TestWings", "WingsTest", "make_bird", "wings", "contest"]
    assert [name for name in asked if entry.asks_for(name)] == asked[:3]


def test_nobody_builds_on_tests() -> None:
    data = copy.deepcopy(BIRDS)
    data["stages"][0]["entry_points"] = {"fold": "tests"}
    with pytest.raises(CourseError, match="requires 'fold', where learners write tests"):
        parse_course(data, ROOT)


def test_what_a_stage_forbids() -> None:
    data = copy.deepcopy(BIRDS)
    data["stages"][1].update(forbidden=["numpy.convolve", "a_1.B_2.c"], forbidden_cost=0.25)
    first, second = parse_course(data, ROOT).stages
    assert first.forbidden == ()
    assert (second.forbidden, second.forbidden_cost) == (("numpy.convolve", "a_1.B_2.c"), 0.25)


def test_what_is_released_to_a_class() -> None:
    data = copy.deepcopy(BIRDS)
    assert [(a.name, [s.slug for s in a.stages]) for a in parse_course(data, ROOT).assignments] == [
        ("paper-birds", ["fold"])  # where nothing is said, all but the bonus
    ]
    data["stages"][0]["visible"] = ["shape"]
    data["assignments"] = [{"name": "week-1", "stages": ["bird", "fold"]}]
    data["partial"] = True
    course = parse_course(data, ROOT)
    assert [(a.name, [s.slug for s in a.stages]) for a in course.assignments] == [
        ("week-1", ["fold", "bird"])  # in the course's order
    ]
    assert (course.stages[0].visible, course.is_partial) == (("shape",), True)


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (top(shcema=1), "unknown key 'shcema' (did you mean 'schema'?)"),
        (top(schema=2), "'schema' must be 1, not 2"),
        (top(name="../up"), "'name' '../up' must be letters, digits"),
        (top(partial="no"), "'partial' must be true or false"),
        (top(follow_through=1), "'follow_through' must be true or false"),
        (top(authors="Ada"), "'authors' must be a list, not 'Ada'"),
        (top(license=["MIT"]), r"'license' must be text in quotes, not ['MIT']"),
        (top(version="v1"), "'version' must be numbers like '1.2', not 'v1'"),
        (top(package="paper birds"), "'package' 'paper birds' must be letters"),
        (top(package="birds-"), "with a letter or digit at both ends"),
        (top(requirements=[1]), "'requirements' must be a list of strings"),
        (top(accepted_answers=-1), "'accepted_answers' must be 0 or more, not -1"),
        (top(accepted_answers=True), "'accepted_answers' must be 0 or more"),
        (top(assignments=["a"]), "assignment 1 is not a table"),
        (top(assignments=[{"stages": ["fold"]}]), "assignment 1: 'name' is missing"),
        (released({"name": "a/b"}), "assignment 'a/b': the name must be letters"),
        (released({"stages": []}), "assignment 'a': 'stages' names no stage"),
        (released({"stages": ["fodl"]}), "'a': there is no stage 'fodl' (did you mean 'fold'?)"),
        (released({}, {}), "assignment 'a': the name is used twice"),
        (released({"stages": ["bird"]}), "'a': has 'bird' but not 'fold', which it requires"),
        (lambda data: data.pop("schema"), "'schema' is missing"),
        (lambda data: data.pop("title"), "'title' is missing"),
        (top(name=7), "'name' must be text in quotes, not 7"),
        (top(stages={}), "'stages' must be a list of tables: write [[stages]]"),
        (top(stages=["fold"]), "stage 1 is not a table"),
        (top(stages={"fold": {}}), "'stages' must be a list"),
        (top(preload="torch"), "'preload' must be a list, not 'torch'"),
        (top(preload=[1]), "'preload' must be a list of strings"),
        (top(limits=5), "'limits' is not a table"),
        (top(limits={"call_second": 1}), "limits: unknown key 'call_second' (did you mean 'call_"),
        (top(limits={"memory_mb": 0}), "limits: 'memory_mb' must be more than 0"),
        (top(limits={"file_mb": True}), "limits: 'file_mb' must be more than 0"),
        (top(limits={"file_mb": math.inf}), "limits: 'file_mb' must be more than 0"),
        (top(limits={"file_mb": 0.5}), "limits: 'file_mb' must be a whole number"),
        (no_fold("slug"), "stage 1: 'slug' is missing"),
        (fold(pionts=3), "stage 'fold': unknown key 'pionts' (did you mean 'points'?)"),
        (fold(timezone="UTC"), "unknown key 'timezone' (it belongs at the top, above all tables)"),
        (fold(due="now"), "unknown key 'due' (it belongs in an [[assignments]] table)"),
        (top(pointz=3), "unknown key 'pointz'"),
        (fold(name="x"), "stage 'fold': unknown key 'name'"),
        (top(points=3), "unknown key 'points' (it belongs in a [[stages]] table)"),
        (fold(slug="Fold"), "stage 'Fold': the slug is not a lower-case Python name"),
        (fold(slug="größe"), "the slug may only hold a to z, 0 to 9 and _"),
        (fold(slug="hint"), "stage 'hint': the slug is a command of `grade`"),
        (fold(slug="lambda"), "stage 'lambda': the slug is a keyword of Python"),
        (fold(slug="random"), "stage 'random': the slug is a module of P"),
        (fold(slug="references"), "stage 'references': the slug is a module of"),
        (fold(slug="../fold"), "stage '../fold': the slug is not a lower-case"),
        (bird(slug="fold"), "stage 'fold': the slug is used twice"),
        (fold(slug="changes"), "stage 'changes': the slug is the name of hints/CHANGES.md"),
        (fold(formerly="Fold"), "stage 'fold': formerly: 'Fold' is not a slug"),
        (fold(formerly=3), "stage 'fold': 'formerly' must be a list"),
        (fold(formerly="fold"), "stage 'fold': formerly: 'fold' is the slug of a stage already"),
        (bird(formerly=["wing", "fold"]), "formerly: 'fold' is the slug of a stage already"),
        (bird(formerly=["wing", "wing"]), "formerly: 'wing' is the slug of a stage already"),
        (fold(formerly="bird"), "stage 'bird': the slug is one that an earlier stage had"),
        (no_fold("points"), "stage 'fold': 'points' is missing"),
        (fold(points=0), "stage 'fold': 'points' must be more than 0 and at most 1e9, not 0"),
        (fold(points=math.inf), "stage 'fold': 'points' must be more than 0"),
        (fold(points=True), "stage 'fold': 'points' must be more than 0"),
        (fold(points="3"), "stage 'fold': 'points' must be a number, not '3'"),
        (fold(bonus=1), "stage 'fold': 'bonus' must be true or false, not 1"),
        (fold(requires=["bird"]), "stage 'fold': requires 'bird', which is not an earlier stage"),
        (bird(requires=["folt"]), "which is not an earlier stage (did you mean 'fold'?)"),
        (fold(requires="bird"), "stage 'fold': 'requires' must be a list"),
        (no_fold("entry_points"), "stage 'fold': 'entry_points' is missing"),
        (fold(entry_points={}), "stage 'fold': 'entry_points' is empty"),
        (fold(entry_points=["fold"]), "stage 'fold': 'entry_points' must be a table"),
        (fold(entry_points={"fold": "tensr"}), "unknown kind 'tensr' (did you mean 'tensor'?)"),
        (fold(entry_points={"fold": "tests", "wing": "number"}), "must have no other entry point"),
        (
            fold(entry_points={"fold": "tests"}, forbidden=["a.b"]),
            "must have no other entry point and no 'forbidden'",
        ),
        (fold(entry_points={"fold": "(tests)"}), "unknown kind 'tests'"),
        (fold(entry_points={"fold": "list"}), "unknown kind 'list': 'any' stands for every other"),
        (fold(entry_points={"fold": ""}), "entry point 'fold': '' is not like 'tensor'"),
        (fold(entry_points={"fold": 1}), "entry point 'fold': 1 is not like 'tensor'"),
        (fold(forbidden="a.b"), "stage 'fold': 'forbidden' must be a list, not 'a.b'"),
        (fold(forbidden=[1]), "stage 'fold': 'forbidden' must be a list of strings"),
        *(
            (fold(forbidden=["a.b", name]), f"forbidden: {name!r} is not a dotted name like 'pack")
            for name in ("wings", "", "a..b", ".a.b", "a.b.", "a.1b", "a.b()", "a b.c", "é.b")
        ),
        (fold(forbidden=["sorted"]), "not a dotted name like 'builtins.sorted'"),
        (fold(forbidden=["a.b", "a.b"]), "stage 'fold': forbidden: 'a.b' appears twice"),
        *(
            (forbidding(cost), f"stage 'fold': 'forbidden_cost' must be from 0 to 1, not {cost!r}")
            for cost in (-0.1, 1.1, True, float("nan"))
        ),
        (forbidding("all"), "stage 'fold': 'forbidden_cost' must be a number, not 'all'"),
        (fold(forbidden_cost=0.5), "stage 'fold': has 'forbidden_cost' but no 'forbidden'"),
    ],
)
def test_says_what_is_wrong(spoil: Break, match: str) -> None:
    data = copy.deepcopy(BIRDS)
    spoil(data)
    with pytest.raises(CourseError, match=re.escape(match)) as caught:
        parse_course(data, Path("/birds"))
    assert str(caught.value).startswith("course.toml: ") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"schema = {", "is not TOML"),
        (b"a = 1\na = 2", "course.toml:2: this key is there twice: a = 2"),
        (b"[a]\n[a]", r"this table is there twice; .*two brackets, \[\[\.\.\.\]\]: \[a\]"),
        (b"a = True", "toml:1: write .* true or false here: a = True"),
        (b"a = [1 2]", r"a comma or a closing bracket is missing: a = \[1 2\]"),
        (b"a 1", "toml:1: is not TOML: Expected '=' after a key in a key/value pair: a 1"),
        (b'name = "\xff"', "is not UTF-8"),
    ],
)
def test_a_file_that_is_no_toml(tmp_path: Path, content: bytes, match: str) -> None:
    file = tmp_path / "course.toml"
    file.write_bytes(content)
    with pytest.raises(CourseError, match=match):
        read_course(file)


def test_the_course_of_this_repository() -> None:
    assert sum(stage.points for stage in COURSE.stages if not stage.bonus) == 100
    for stage in COURSE.stages:
        for file in (stage.solution_file, stage.exercise_file, stage.check_file, stage.hints_file):
            assert file.is_file()


def test_a_broken_course_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "course.toml").write_text("schema = 3", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CourseError, match="'schema' must be 1"):
        locate_course(None)


def test_elsewhere_it_is_the_course_beside_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workspace, "_CHECKOUT", tmp_path / "checkout")
    monkeypatch.setattr(workspace, "COURSES", "none")
    with pytest.raises(KitError, match=r"no course\.toml here or above, .* name it with --course"):
        locate_course(None)
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "course.toml").write_text(TOML, encoding="utf-8")
    assert locate_course(None).name == "paper-birds"


def test_finds_a_stage_or_the_one_that_comes_close() -> None:
    course = parse_course(BIRDS, Path("/birds"))
    assert find_stage(course, "bird").title == "The whole bird"
    with pytest.raises(KitError, match=r"there is no stage 'birds'; did you mean 'bird'\?"):
        find_stage(course, "birds")
    with pytest.raises(KitError, match=r"there is no stage 'hints'; did you mean 'hint'\?"):
        find_stage(course, "hints")
    with pytest.raises(KitError, match=r"there is no stage 'wings'; did you mean 'bird'\?"):
        find_stage(course, "wings")  # what it asks for
    for word in ("bird.wings", "exercises/bird.py", r"C:\birds\bird.py", "bird.py"):
        with pytest.raises(KitError, match=r"did you mean 'bird'\?"):
            find_stage(course, word)
    for word in ("xyz", "test", "help"):  # not `reset`, for one that is typed by habit
        said = f"there is no stage '{word}'; `grade list` shows the stages, `grade --help` the comm"
        with pytest.raises(KitError, match=said):
            find_stage(course, word)
    start = time.process_time()
    with pytest.raises(KitError, match="there is no stage 'xxx"):
        find_stage(course, "x" * 30_000)
    assert time.process_time() - start < 1
