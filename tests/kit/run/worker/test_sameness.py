"""The same code has the same digest, and only code in which nothing else can have a say has one."""

from __future__ import annotations

from typing import Any

import pytest

from grader.run.worker.sameness import same_of

WINGS = "def wings(x, count):\n    half = x / count\n    return half + half\n"
TAIL = "def tail(x):\n    return -x\n"


def same(
    *sources: tuple[str, str], is_notebook: bool = True, forbidden: tuple[str, ...] = ()
) -> dict[str, tuple[str, list[str]]]:
    """What is known of two stages, one of which asks for wings and the other for a tail."""
    about: dict[str, Any] = {
        "sources": sources,
        "kind": "cells" if is_notebook else "files",
        "modules": ["paper"],
        "stages": {
            name: {"names": [name], "file": f"{name}.py", "forbidden": forbidden}
            for name in ("wings", "tail")
        },
    }
    return same_of(about)


def cells(*texts: str) -> list[tuple[str, str]]:
    return [(f"cell {number}", text) for number, text in enumerate(texts, start=1)]


def digest(*texts: str) -> str | None:
    """The digest of the wings in a notebook."""
    found = same(*cells(*texts)).get("wings")
    return found[0] if found else None


SAME = {
    "another name of a variable": WINGS.replace("half", "part"),
    "comments and spaces": "# mine\n\n" + WINGS.replace("x / count", "(x  /  count)  # half"),
    "a cell magic": "%%grade wings\n" + WINGS,
}
OTHER = {
    "another number": WINGS.replace("x / count", "x / count / 1"),
    "another name of an argument": WINGS.replace("count", "number"),
    "a variable turned into an argument": WINGS.replace("half + half", "x + half"),
    "one more import": "import paper\n" + WINGS,
    "a name that is global": WINGS.replace("half + half", "half + half_"),
    "a default": WINGS.replace("count)", "count=2)"),
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_the_same_code_has_the_same_digest(text: str) -> None:
    assert digest(text) == digest(WINGS) is not None


@pytest.mark.parametrize("text", OTHER.values(), ids=OTHER)
def test_other_code_has_another_digest(text: str) -> None:
    assert digest(text) not in (None, digest(WINGS))


def test_a_variable_keeps_its_name_where_more_than_a_variable_has_it() -> None:
    inner = "def wings(x):\n    def {0}(y): return y\n    return {0}(x)\n"
    caught = "def wings(x):\n    try: return x()\n    except ValueError as {0}: return {0}\n"
    nested = "def wings(x):\n    class {0}: z = x\n    return {0}.z\n"
    for code in (inner, caught, nested):
        assert None is not digest(code.format("a")) != digest(code.format("b"))
    listed = "{0} = 3\ndef wings(x):\n    [{1} for {1} in x]\n    return {1}\n"
    within = "{0} = 3\ndef wings(x):\n    def y():\n        {1} = x\n    return {1}\n"
    walrus = "{0} = 3\ndef wings(x):\n    y = lambda: ({1} := x)\n    return {1}\n"
    for code in (listed, within, walrus):  # the last name is the global one's
        assert None is not digest(code.format("a", "a")) != digest(code.format("a", "b"))
    swapped = "def wings(x):\n    a = x\n    b = a\n    return {}\n"
    assert digest(swapped.format("a")) != digest(swapped.format("b"))


BESIDE = {
    "another stage": TAIL,
    "one that is not begun": "def tail(x):\n    raise NotImplementedError\n",
    "what tries it out": "import paper\nbird = wings(paper.sheet(4), 2)\nprint(bird.size)\n",
    "a loop": "for count in range(1, 4):\n    assert wings(2, count) * count == 4\n",
    "the visible checks": "grade_here('wings')",
    "what is no Python": "def tail(x:\n    return",
    "nothing": "",
    "a name that is nowhere": "def tail(x):\n    return wing(x)\n",
    "its own private attributes": "class Tail:\n    def __init__(self, x):\n"
    "        super().__init__()\n        self._x = x\n        setattr(self, 'y', x)\n",
    "items of its own": "sizes = {}\nsizes['a'] = 4\n",
}
REACHING = {
    "a module that nobody knows": "import os\n",
    "a part of a library that others share": "import paper.backends\n",
    "from such a part": "from paper import set_colour\n",
    "everything of a module": "from paper import *\n",
    "a relative import": "from . import paper\n",
    "a library's attribute": "import paper\npaper.fold = None\n",
    "a library's attribute, deeper": "import paper\npaper.tools.fold = None\n",
    "a library's item": "import paper\npaper.tools['fold'] = None\n",
    "a library's setting": "import paper\ndef tail(x):\n    paper.set_colour(x)\n",
    "a library's own affairs": "import paper\nfolds = paper._folds\n",
    "a special attribute": "def tail(x):\n    return x.__globals__\n",
    "a class's method": "class Bird:\n    pass\nBird.fly = None\n",
    "Python's own names": "def tail(x):\n    return globals()\n",
    "eval": "def tail(x):\n    return eval('x')\n",
    "an import by name": "def tail(x):\n    return __import__(x)\n",
    "a file": "def tail(x):\n    return open(x)\n",
    "setattr on somebody": "import paper\nsetattr(paper, 'fold', None)\n",
    "setattr by another name": "change = setattr\n",
    "setattr handed on": "import paper\nlist(map(setattr, [paper], ['fold'], [None]))\n",
    "global": "def tail(x):\n    global wings\n    wings = x\n",
    "a loop that may never end": "while True:\n    pass\n",
    "an endless loop in a block": "if True:\n    while True:\n        pass\n",
    "the module above": "import paper\nos = paper.os\n",
}
AMBIGUOUS = {
    "defined again": WINGS.replace("count", "number"),
    "wrapped": "wings = min(wings, wings)\n",
    "deleted": "del wings\n",
    "given in a comprehension": "[[(wings := y) for y in x] for x in [[3]]]\n",
    "imported from somewhere": "from paper import wings\n",
    "its method changed": "wings.count(3)\n",
}


@pytest.mark.parametrize("text", BESIDE.values(), ids=BESIDE)
def test_what_stays_by_itself_changes_no_digest(text: str) -> None:
    assert digest(WINGS, text) == digest(text, WINGS) == digest(WINGS)


@pytest.mark.parametrize("text", REACHING.values(), ids=REACHING)
def test_nothing_has_a_digest_beside_what_reaches_further(text: str) -> None:
    assert same(*cells(WINGS, text)) == {}
    assert same(("wings.py", WINGS), ("mine.py", text), is_notebook=False) == {}


@pytest.mark.parametrize("text", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_a_name_with_two_meanings_has_no_digest(text: str) -> None:
    found = same(*cells(WINGS, text, TAIL))
    assert "wings" not in found and "tail" in found


def test_a_stage_has_the_cells_that_it_needs_and_they_count() -> None:
    helper, wings = "def half(x):\n    return x / 2\n", "def wings(x):\n    return half(x)\n"
    assert same(*cells(helper, TAIL, wings))["wings"][1] == ["cell 1", "cell 3"]
    assert digest(helper, wings) != digest(helper.replace("2", "3"), wings) is not None
    assert digest(helper, wings) == digest("import paper\n", helper, wings)
    used = "def wings(x):\n    return paper.fold(x)\n"
    assert digest("import paper\n", used) != digest("import paper.tools as paper\n", used)
    assert digest("import paper\n", "import paper.tools as paper\n", used) is None


def test_a_file_counts_with_those_that_it_imports() -> None:
    wings = ("wings.py", "from aid import half\ndef wings(x):\n    return half(x)\n")
    aid, other = "def half(x):\n    return x / 2\n", ("other.py", "half = 3\n")
    found = same(wings, ("aid.py", aid), other, is_notebook=False)["wings"]
    assert found[1] == ["wings.py", "aid.py"]
    changed = same(wings, ("aid.py", aid.replace("2", "3")), other, is_notebook=False)["wings"]
    assert changed[0] != found[0]
    assert "wings" not in same(("tail.py", TAIL), is_notebook=False)


def test_who_speaks_of_what_is_forbidden_has_no_digest_but_in_a_text() -> None:
    forbidden = ("paper.tools.glue",)
    call = "import paper\ndef tail(x):\n    return paper.tools.glue(x)\n"
    assert same(*cells(WINGS, call), forbidden=forbidden) == {}
    text = TAIL.replace("    return", "    'Do not glue it.'\n    return")
    assert set(same(*cells(WINGS, text), forbidden=forbidden)) == {"wings", "tail"}


def test_what_takes_too_long_to_look_through_has_no_digest() -> None:
    assert same(*cells(WINGS, "x = 1\n" * 100_000)) == {}
    assert same(*cells(WINGS, *["x = 1"] * 300)) == {}
    assert same(*cells(WINGS, "x = " + "-" * 50_000 + "1")) == {}
