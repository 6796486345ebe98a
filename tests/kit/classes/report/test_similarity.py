"""Answers that are alike beyond what the task brings about are found; independent ones are not."""

import ast
import random
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from grader.classes.report import compared_code, similarity
from grader.classes.report.similarity import Given, similar
from grader.classes.report.types import Alike, Similar
from grader.read.stubs import read_solution, read_stub
from grader.types.course import EntryPoint, Stage
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE, TINY

pytest.importorskip("rapidfuzz", reason="rapidfuzz is not installed")

RIGHT = Path(__file__).parents[4] / "tests" / "accepted"

STAGE = Stage("fold", "Fold", 1, False, (), (EntryPoint("fold", ("any",)),), Path())
OTHER = Stage("fly", "Fly", 1, False, (), (EntryPoint("fly", ("any",)),), Path())
STUB = '''"""Fold."""
import math

LIMIT = 7


def fold(sheet, times):
    """Fold it."""
    raise NotImplementedError("fold is not written yet")
'''
SOLUTION = STUB.replace('raise NotImplementedError("fold is not written yet")', "return sheet")
GIVEN = (Given(STAGE, STUB, SOLUTION),)
ODD = """import math

LIMIT = 7


def fold(sheet, times):
    edges = [edge for edge in sheet.edges if edge.length > LIMIT * 3]
    while times and edges:
        edges.sort(key=lambda edge: (-edge.length, edge.place % 5))
        first, *edges = edges  # the longest
        sheet.bend(first, angle=math.pi * 0.75, softly=times < 2)
        times -= 1
    return sheet.pressed(edges[::-1])
"""
RENAMED = """import math
import os
LIMIT = 7
def fold(s, n):
    '''I wrote this.'''
    # all mine
    long_ones = [
        e
        for e in s.edges
        if e.length > LIMIT * 3
    ]
    while n and long_ones:
        long_ones.sort(key=lambda z: (-z.length, z.place % 5))
        a, *long_ones = long_ones
        s.bend(a, angle=math.pi * 0.75, softly=n < 2); n -= 1
    return s.pressed(long_ones[::-1])
"""


def other(number: int) -> str:
    """An answer like no other one."""
    draw = random.Random(number)

    def value(depth: int = 3) -> str:
        made = (
            lambda: draw.choice(["sheet", "times", str(draw.randrange(99))]),
            lambda: f"{value(depth - 1)} {draw.choice('+-*/%@')} {value(depth - 1)}",
            lambda: f"sheet.w{draw.randrange(999)}({value(depth - 1)})",
            lambda: f"[{value(depth - 1)}, {value(0)}]",
            lambda: f"times[{value(depth - 1)}:]",
            lambda: f"({value(depth - 1)} if {value(0)} else {value(0)})",
        )
        return draw.choice(made[1:] if depth else made[:1])()

    lines = [f"    sheet {draw.choice('+-*/')}= {value()}" for _ in range(20)]
    return f"def fold(sheet, times):\n{chr(10).join(lines)}\n    return sheet\n"


def folder(source: str, file: str = "fold.py") -> Submission:
    return Submission("", {file: source.encode()})


def compared(answers: Mapping[str, Submission | str], given: tuple[Given, ...] = GIVEN) -> Similar:
    whole = {
        name: folder(answer) if isinstance(answer, str) else answer
        for name, answer in answers.items()
    }
    return similar(given, whole.items(), whole.get)


def crowd(**answers: str | Submission) -> dict[str, str | Submission]:
    return {**{f"s{n}": other(n) for n in range(10)}, **answers}


def found(answers: Mapping[str, Submission | str]) -> list[tuple[str, ...]]:
    return [one.students for one in compared(answers).alike]


# --- what is found -----------------------------------------------------------------------------


def test_a_copy_with_other_names_comments_and_layout_is_found_and_quoted() -> None:
    (one,) = compared(crowd(ann=ODD, bob=RENAMED)).alike
    assert one.students == ("ann", "bob") and one.stage == "fold"
    assert one.share == 1.0 and one.size > 80
    mine, theirs = one.excerpts
    assert "first, *edges = edges" in mine and "a, *long_ones = long_ones" in theirs
    assert "import" not in mine and "LIMIT = 7" not in mine and not mine.startswith(" ")


def test_a_copy_with_changes_is_found_by_how_much_is_left() -> None:
    changed = RENAMED.replace("% 5", "% 6").replace("    return s.", "    print(n)\n    return s.")
    (one,) = compared(crowd(ann=ODD, bob=changed)).alike
    assert 0.85 < one.share < 1.0


def test_students_with_the_same_are_one_group_and_the_one_who_changed_it_a_pair_with_it() -> None:
    changed = ODD.replace("times -= 1", "times = times - 1\n        print(times)")
    assert found(crowd(ann=ODD, bob=RENAMED, cas=changed)) == [("ann", "bob"), ("ann", "cas")]


def test_half_an_answer_alike_is_not_listed() -> None:
    half = "\n".join(ODD.split("\n")[:9]) + "\n" + "\n".join(other(77).split("\n")[1:20])
    assert found(crowd(ann=ODD, bob=half)) == []


@pytest.mark.parametrize(
    "answer",
    [
        Submission("", {}, cells=("x = 1", f"%%grade fold\n{RENAMED}", "!ls\nfly = 2", "def (")),
        Submission("", {"all.py": f"{RENAMED}\ndef fly(): return 1\n".encode()}, script="all.py"),
        Submission("", {"fold.py": b"\xef\xbb\xbf" + RENAMED.replace("\n", "\r\n").encode()}),
    ],
    ids=["notebook", "script", "Windows"],
)
def test_notebooks_scripts_and_folders_are_compared_alike(answer: Submission) -> None:
    assert found(crowd(ann=ODD, bob=answer)) == [("ann", "bob")]


def test_of_a_notebook_a_stage_has_what_its_own_functions_refer_to() -> None:
    helper = ODD.replace("def fold", "def _really").replace("import math\n", "")
    used = Submission("", {}, cells=(helper, "def fold(a, b):\n    return _really(a, b)", "1"))
    unused = Submission("", {}, cells=(helper, "def fold(a, b):\n    return a"))
    assert found(crowd(ann=ODD, bob=used)) == [("ann", "bob")]
    assert found(crowd(ann=ODD, bob=unused)) == []
    fly = Given(OTHER, "def fly():\n    raise NotImplementedError\n", "def fly():\n    return 1\n")
    both = Submission("", {}, cells=(ODD.replace("fold", "fly"), "def fold(a, b):\n    fly()"))
    assert {one.stage for one in compared(crowd(ann=both, bob=both), (*GIVEN, fly)).alike} == {
        "fly"
    }


# --- what is not -------------------------------------------------------------------------------


def test_a_stage_where_all_answers_are_alike_lists_nothing() -> None:
    assert found({f"s{n}": RENAMED if n % 2 else ODD for n in range(12)}) == []


def test_the_stub_and_the_solution_do_not_count() -> None:
    assert found(crowd(ann=STUB, bob=STUB)) == []
    solved = (Given(STAGE, STUB, ODD),)
    assert compared(crowd(ann=ODD, bob=RENAMED), solved).alike == ()
    helper = ODD.replace("def fold", "def given")
    stub = (Given(STAGE, f"{helper}\n{STUB}", SOLUTION),)
    both = [f"{helper}\ndef fold(sheet, times):\n    return {n}\n" for n in (1, 2)]
    assert found(crowd(ann=both[0], bob=both[1])) == [("ann", "bob")]
    assert compared(crowd(ann=both[0], bob=both[1]), stub).alike == ()


def test_a_short_answer_tells_nothing() -> None:
    short = "def fold(sheet, times):\n    return sheet.bend(times, softly=True)[::-1]\n"
    assert found(crowd(ann=short, bob=short)) == []


@pytest.mark.parametrize(
    "source",
    [
        "def fold(:",
        "x = 1\n    y = 2",
        "(" * 5000,
        "-" * 50_000 + "1",
        "if 0:\n    import " + "a." * 40_000 + "b",
        "x = '\\d'\n",
        "\x00",
        "\x0c\nx = '\u2028'\n",
        "x" * 200_000,
        "",
        "if 1:\n\tx = 1\n        y = 2\n",
    ],
)
def test_what_nobody_can_read_is_alike_to_nothing_and_harms_nobody(source: str) -> None:
    notebook = Submission("", {}, cells=(source, "%%time\n"))
    assert found(crowd(ann=source, bob=source, cas=notebook, dan=ODD, eve=RENAMED)) == [
        ("dan", "eve")
    ]


@pytest.mark.parametrize(
    ("added", "is_unread"),
    [
        ("# " + "{" * 2001, True),
        ("x = '" + "a" * 4001 + "'", True),
        ("#\n" * 50_001, True),
        ("# -*- coding: utf-7 -*-", True),
        ("# -*- coding: nonsense -*-", False),  # Python does not run it
        ("# coding: UTF-8", False),
        ("", False),
    ],
)
def test_a_copy_that_hides_from_the_comparison_is_named(added: str, is_unread: bool) -> None:
    copied = Submission("", {"fold.py": f"{added}\n{RENAMED}".encode()})
    assert compared({"ann": ODD, "bob": copied}).unread == ("bob",) * is_unread


STEPS = (
    "edges = sorted(sheet.edges, key=lambda edge: (-edge.length, edge.place % 5))",
    "sheet.bend(edges[0], angle=math.pi * 0.75, softly=times < 2)",
    "return sheet.pressed(edges[::-1])",
)
BODY = "def fold(sheet, times):\n" + "".join(f"    {step}\n" for step in STEPS)
INDENTED = "".join(f"    {line}\n" for line in BODY.splitlines())
DEEP = f"(x{chr(10)}{'+x' * 1900}{chr(10)}{'+x' * 1900})\n"
try:
    ast.parse(DEEP)
    TOO_DEEP = False
except (MemoryError, RecursionError):  # some Pythons' parsers give up
    TOO_DEEP = True
WIDE = str.maketrans({"e": "\uff45", "s": "\U0001d42c"})  # Python reads them as e and s


def cells(*texts: str) -> Submission:
    return Submission("", {}, cells=texts)


@pytest.mark.parametrize(
    "hidden",
    [
        pytest.param(Submission("", {"fold.py": text.encode()}), id=name)
        for name, text in {
            "the line of its definition": f"def fold(sheet, times): {'; '.join(STEPS)}",
            "the line of an import": BODY.replace("    edges", "    import math; edges"),
            "other letters": re.sub(
                r"edges?|sheet|times|place|softly", lambda m: m[0].translate(WIDE), BODY
            ),
        }.items()
    ]
    + [
        pytest.param(cells(text), id=name)
        for name, text in {
            "line ends of old": BODY.replace("\n", "\r"),
            "prompts": "".join(f">>> {line}\n" for line in BODY.splitlines()),
            "an indentation": INDENTED,
            "a question for help": f"fold?\n{BODY}",
            "a command": f"here = !ls\n{BODY}",
            "a block": f"if True:\n{INDENTED}",
            "a block that catches": f"try:\n{INDENTED}finally:\n    pass\n",
            "two names at once": f"{BODY.replace('fold', 'f')}\nfold, g = f, 1\n",
            "an expression": f"{BODY.replace('fold', 'f')}\n(fold := f)\n",
        }.items()
    ]
    + [
        pytest.param(
            Submission(
                "",
                {
                    "fold.py": b"from mine import fold\n",
                    "mine.py": b"from more.parts import fold\n",
                    "more/parts.py": BODY.encode(),
                },
            ),
            id="another file",
        )
    ],
)
def test_a_copy_is_found_wherever_python_finds_it(hidden: Submission) -> None:
    assert found(crowd(ann=BODY, bob=hidden)) == [("ann", "bob")]
    assert compared({"ann": BODY, "bob": hidden}).unread == ()


@pytest.mark.parametrize(
    ("hidden", "is_unread"),
    [
        (cells(f"!ls \\\n  )(\n{BODY}"), True),
        (cells(BODY, "def fly(x:"), False),
        (cells(BODY, DEEP), TOO_DEEP),
        (Submission("", {"mine.py": f"{BODY}{DEEP}".encode()}, script="mine.py"), TOO_DEEP),
        (folder(f"{BODY}{DEEP}"), TOO_DEEP),
        (Submission("", {"fold.py": b"import mine", "mine.py": b"# coding: utf-7\n"}), True),
        (Submission("", {"fold.py": BODY.encode(), "mine.py": b"# coding: utf-7\n"}), False),
    ],
)
def test_who_has_code_that_is_not_compared_is_named(hidden: Submission, is_unread: bool) -> None:
    assert compared({"ann": BODY, "bob": hidden}).unread == ("bob",) * is_unread


MANY = 60
LARGE = {
    "many lines of a script": Submission("", {"a.py": b"sheet\n" * 99_000}, script="a.py"),
    "many cells": Submission("", {}, cells=(ODD, *["sheet\n" * 9000] * MANY)),
    "many files that the stage imports": Submission(
        "",
        {f"more{number}.py": b"sheet\n" * 9000 for number in range(MANY)}
        | {"fold.py": "".join(f"import more{number}\n" for number in range(MANY)).encode()},
    ),
    "a statement of many names": Submission(
        "",
        {},
        cells=(
            "if 7:\n    fold = n0 = 3\n" + "".join(f"    n{n + 1} = n{n}\n" for n in range(999)),
        ),
    ),
}


@pytest.mark.parametrize("large", LARGE)
def test_of_a_submission_no_more_is_parsed_than_the_limit(
    large: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    parse = compared_code.ast.parse

    def counted(source: str, *more: Any, **named: Any) -> Any:
        sizes.append(len(source))
        return parse(source, *more, **named)

    monkeypatch.setattr(compared_code.ast, "parse", counted)
    found = similar(GIVEN, [("eve", LARGE[large])], lambda _: LARGE[large])
    assert found.unread == (("eve",) if large.startswith("many") else ())
    assert sum(sizes) < 3 * 100_000


@pytest.mark.parametrize(("lines", "is_kept"), [(100, True), (20_000, False)])
def test_the_statements_of_a_long_answer_are_not_kept(lines: int, is_kept: bool) -> None:
    source = "a = 1\n" * lines
    once = compared_code.lines_of(source)
    assert (compared_code.lines_of(source) is once) is is_kept


def test_nobody_is_alike_to_nobody() -> None:
    assert compared({}) == Similar((), 3) and compared({"ann": ODD}).alike == ()


# --- what is right is alike, and how much ------------------------------------------------------

STAGES = [Given(stage, read_stub(stage), read_solution(stage)) for stage in COURSE.stages]


def right_answers() -> dict[str, Submission]:
    """Students who have each written one of the right answers that were written independently."""
    by_stage = {stage.slug: sorted((RIGHT / stage.slug).glob("*.py")) for stage in COURSE.stages}
    return {
        f"{n:02}": Submission("", {
            f"{slug}.py": files[n].read_bytes() for slug, files in by_stage.items() if files[n:]
        })
        for n in range(max(map(len, by_stage.values())))
    }  # fmt: skip


@pytest.mark.slow
def test_independent_right_answers_stay_far_below_what_is_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers, listed_from = right_answers(), similarity.ALIKE
    monkeypatch.setattr(similarity, "ALIKE", 0.05)
    monkeypatch.setattr(similarity, "_LISTED", 10_000)
    alike = similar(STAGES, answers.items(), answers.get).alike
    most = {stage.slug: 0.0 for stage in COURSE.stages}
    for one in alike:
        most[one.stage] = max(most[one.stage], one.share)
    assert 0.3 < max(most.values()) < 0.7 <= listed_from


def conventional(draw: random.Random) -> str:
    """An answer to the first stage in one of the ways in which nearly everybody writes it."""
    sizes = draw.choice(["B, T, D = x.shape", "B, T, D = x.size()", "(B, T, D) = x.shape"])
    test = draw.choice(["D % num_heads != 0", "D % num_heads", "D % num_heads > 0"])
    said = draw.choice(['"D must divide"', 'f"{D} by {num_heads}"', f'"{draw.random()}"'])
    d_k = draw.choice(["D // num_heads", "d_k"])
    lines = [sizes, f"if {test}:\n        raise ValueError({said})"]
    lines += ["d_k = D // num_heads"] if d_k == "d_k" else []
    cut = f"x.{draw.choice(['view', 'reshape'])}(B, T, num_heads, {d_k})"
    turn = draw.choice([".transpose(1, 2)", ".permute(0, 2, 1, 3)", ".swapaxes(1, 2)"])
    lines += draw.choice([[f"return {cut}{turn}"], [f"y = {cut}", f"return y{turn}"]])
    return "def split_heads(x, num_heads):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize("students", [20, 60, 300])
def test_of_a_class_that_writes_in_the_usual_ways_only_the_copy_is_listed(students: int) -> None:
    draw = random.Random(students)
    codes = {f"s{n:03}": conventional(draw) for n in range(students)}
    plain = [re.sub(r"0\.\d+", "0", code) for code in codes.values()]
    assert len(set(plain)) < len(plain)  # many are the very same, independently
    copied = (RIGHT / "split_heads" / "fill_new_empty.py").read_text("utf-8")
    copies = {"s007": copied, "s013": copied.replace("out", "mine")}
    answers = {name: folder(code, "split_heads.py") for name, code in {**codes, **copies}.items()}
    alike = similar(STAGES, answers.items(), answers.get).alike
    assert [one.students for one in alike] == [("s007", "s013")]


# --- much of it --------------------------------------------------------------------------------


def test_a_class_takes_seconds() -> None:
    answers = {f"s{n}": folder(other(n)) for n in range(300)}
    start = time.monotonic()
    assert similar(GIVEN, answers.items(), answers.get).alike == ()
    assert time.monotonic() - start < 30


def test_no_more_is_listed_than_somebody_can_look_at() -> None:
    answers: dict[str, str] = {}
    for n in range(80):
        answers[f"a{n}"] = answers[f"b{n}"] = other(n)
    result = compared(answers)
    assert len(result.alike) == 50 and result.left_out == 30
    assert all(isinstance(one, Alike) and len(one.students) == 2 for one in result.alike)


def test_the_stages_of_another_course_are_compared_just_so() -> None:
    given = [Given(stage, read_stub(stage), read_solution(stage)) for stage in TINY.stages]
    answers = {n: Submission("", {each.stage.file_name: each.stub.encode() for each in given})
               for n in "ab"}  # fmt: skip
    assert similar(given, answers.items(), answers.get).alike == ()
