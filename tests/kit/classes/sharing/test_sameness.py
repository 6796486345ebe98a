"""The same code has the same digest, and only code in which nothing else can have a say has one."""

from typing import Any

import numpy  # noqa: F401 - a name of a library that is loaded is looked up
import pytest

from grader.classes.sharing.sameness import look

WINGS = "def wings(x, count):\n    half = x / count\n    return half + half\n"
TAIL = "def tail(x):\n    return -x\n"


def same(
    *sources: tuple[str, str], is_notebook: bool = True, forbidden: tuple[str, ...] = ()
) -> dict[str, tuple[str, list[str], str | None]]:
    """What is known of two stages, one of which asks for wings and the other for a tail."""
    about: dict[str, Any] = {
        "sources": sources,
        "kind": "cells" if is_notebook else "files",
        "libraries": ["paper"],
        "stages": {
            name: {"names": [name], "file": f"{name}.py", "forbidden": forbidden}
            for name in ("wings", "tail")
        },
    }
    return look(about)


def cells(*texts: str) -> list[tuple[str, str]]:
    return [(f"cell {number}", text) for number, text in enumerate(texts, start=1)]


def digest(*texts: str) -> str | None:
    """The digest of the wings in a notebook."""
    found = same(*cells(*texts)).get("wings")
    return found[0] if found else None


SAME = {
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
    "another name of a variable, which an error may tell": WINGS.replace("half", "part"),
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_the_same_code_has_the_same_digest(text: str) -> None:
    assert digest(text) == digest(WINGS) is not None


@pytest.mark.parametrize("text", OTHER.values(), ids=OTHER)
def test_other_code_has_another_digest(text: str) -> None:
    assert digest(text) not in (None, digest(WINGS))


def test_variables_keep_their_names() -> None:
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
    "code for who runs it as a script": "if __name__ == '__main__':\n    wings(3, 4)\n",
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
    "an item set by a function": "import operator, paper\n"
    "operator.setitem(paper.tools, 'fold', None)\n",
    "an attribute in a text for a function": "import operator\n"
    "def tail(x):\n    return operator.attrgetter('__globals__')(x)\n",
    "setattr by another name": "change = setattr\n",
    "setattr handed on": "import paper\nlist(map(setattr, [paper], ['fold'], [None]))\n",
    "global": "def tail(x):\n    global wings\n    wings = x\n",
    "a loop that may never end": "while True:\n    pass\n",
    "an endless loop in a block": "if True:\n    while True:\n        pass\n",
    "the module above": "import paper\nos = paper.os\n",
    "an attribute in a pattern": "def tail(x):\n    match x:\n"
    "        case object(__globals__=names): names['wings'] = x\n",
    "attributes in patterns, by their order": "class Tail:\n    __match_args__ = '__globals__',\n",
    "an attribute in a text": "def tail(x):\n    return '{0.__globals__[wings]}'.format(x)\n",
    "an attribute in a text that is put together": "def tail(x, y):\n    return y.format(x)\n",
    "Python's own functions": "__builtins__ = {}\n",
    "Python's own functions, imported": "import paper as __builtins__\n",
    "what an import stands for": "import paper\npaper = None\n",
    "two meanings of an import": "import paper as p\nimport paper.tools as p\n",
    "a method with another object": "import paper\nclass Tail:\n    def put(self):\n"
    "        self.fold = None\nTail.put(paper)\n",
    "such a method, in its class": "import paper\nclass Tail:\n    def put(self):\n"
    "        self.fold = None\n    put(paper)\n",
    "such a method by setattr": "import paper\nclass Tail:\n    def put(self):\n"
    "        setattr(self, 'fold', 3)\nlist(map(Tail.put, [paper]))\n",
    "such a method of a base class": "import paper\nclass Bird:\n    def __init__(self):\n"
    "        self.fold = None\nclass Tail(Bird):\n    @classmethod\n"
    "    def go(cls):\n        super().__init__(paper)\n",
    "such a method of a static kind": "import paper\nclass Tail:\n    @staticmethod\n"
    "    def put(self):\n        self.fold = None\n",
    "a library that self keeps": "import paper\nclass Tail:\n    def __init__(self, of):\n"
    "        self.of = of\n        self.of.fold = None\nTail(paper)\n",
    "the same in a list": "import paper\nclass Tail:\n    def __init__(self, of):\n"
    "        self.of = [of]\n        for self.of[0].fold in (1,): pass\nTail(paper)\n",
    "a metaclass": "class Tail(metaclass=paper):\n    pass\n",
    "a class that a dataclass is made of": "import paper\nfrom dataclasses import dataclass\n"
    "dataclass(paper.Bird)\n",
    "attributes by their names": "import functools, paper\n"
    "functools.update_wrapper(paper, paper, assigned=('fold',))\n",
    "code in a text": "import numpy as np\nnp.testing.runstring('x = 1', {})\n",
    "code that is timed": "import numpy as np\nnp.benchmark.Timer('x = 1').timeit(1)\n",
    "code that is exported": "from numpy import export\n",
    "code of bytes": "import typing\ntyping.types.CodeType(0)\n",
    "what is left open": "import paper\ndef tail(x):\n    with paper.mode():\n        yield x\n",
    "an asynchronous comprehension": "def tail(x):\n    return [y async for y in x]\n",
    "another meaning of a decorator": "def property(x):\n    return x\n",
    "the names of all code, by a generator": "def tail(x):\n    yield x\n"
    "tail(3).gi_frame.f_globals.update(wings=tail)\n",
    "the same in a pattern": "def tail(x):\n    match x:\n"
    "        case object(gi_frame=frame): frame.f_globals.clear()\n",
    "a state that a copy gives": "import copy, paper\nclass Tail:\n"
    "    def __reduce_ex__(self, protocol):\n"
    "        return (lambda: paper), (), {'fold': None}\ncopy.copy(Tail())\n",
    "the same for any attribute": "import copy, paper\nclass Tail:\n"
    "    def __getattribute__(self, name):\n"
    "        return lambda *_: ((lambda: paper), (), {'fold': None})\ncopy.copy(Tail())\n",
    "the same in a block": "import copy, paper\nclass Tail:\n    if True:\n"
    "        def __reduce_ex__(me, protocol):\n"
    "            return (lambda: paper), (), {'fold': None}\ncopy.copy(Tail())\n",
    "any memory": "import numpy as np\nclass Tail:\n    @property\n"
    "    def __array_interface__(self):\n"
    "        return {'data': (99, False), 'shape': (9,), 'typestr': '|u1', 'version': 3}\n"
    "np.asarray(Tail())\n",
    "the same by setattr": "class Tail:\n    def __init__(self, copied):\n"
    "        setattr(self, '__reduce_ex__', copied)\n",
    "setattr by a name that is put together": "class Tail:\n    def __init__(self, x, y):\n"
    "        setattr(self, f'{x}ex__', y)\n",
    "a class's own names": "class Tail:\n    def __init__(self, x):\n"
    "        getattr(self, '__dict__').update(x)\n",
    "a class of any methods": "import typing\nclass Tail(typing.Type):\n    pass\n",
    "a block, entered by hand": "import paper\nnext(paper.mode().gen)\n",
    "the same by its function": "import paper\nnext(paper.mode().func())\n",
    "bytes that are code": "import numpy.lib.format as f\nf.read_array(3, allow_pickle=True)\n",
    "a module by way of another": "import numpy as np\nnp.lib.npyio.DataSource()\n",
    "the same, imported": "from numpy.lib import format\n",
    "the same under another name": "import numpy as np\nlib = np.lib.format\n",
    "what a library keeps": "import copy\nkept = copy.dispatch_table\n",
    "the same, imported by its name": "from copy import dispatch_table\n",
    "a name that a library has not yet": "import numpy as np\nnp.nothing\n",
    "its own lines": "from typing import get_overloads\n",
    "its own lines, in what is recorded": "import paper\npaper.detect_anomaly()\n",
    "its own lines, as they run": "import paper\npaper.profiler.profile()\n",
    "its own lines, in an error": "import paper\npaper.cond(True, 3)\n",
    "a file that another cell may write": "def tail(x):\n    return np.loadtxt(x)\n",
}
AMBIGUOUS = {
    "defined again": WINGS.replace("count", "number"),
    "wrapped": "wings = min(wings, wings)\n",
    "deleted": "del wings\n",
    "given in a comprehension": "[[(wings := y) for y in x] for x in [[3]]]\n",
    "imported from somewhere": "from paper import wings\n",
    "its method changed": "wings.count(3)\n",
    "handed to somebody": "print(wings)\n",
    "called by another name": "fly = wings\n",
    "given in a default": "def fly(x=(wings := 3)): pass\n",
    "caught in a pattern": "match 3:\n    case wings: pass\n",
    "the rest of a pattern": "match {}:\n    case {**wings}: pass\n",
    "an error's name": "try:\n    pass\nexcept ValueError as wings:\n    pass\n",
    "a loop's variable": "for wings in (): pass\n",
    "a block's variable": "with print() as wings: pass\n",
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


KEEPING = {
    "a default": "def wings(x, seen=[]):\n    seen.append(x)\n    return seen\n",
    "a default of a keyword": "def wings(x, *, seen={}):\n    return seen\n",
    "a global list": "seen = []\ndef wings(x):\n    seen.append(x)\n    return seen\n",
    "a global object": "class Seen:\n    pass\nseen = Seen()\ndef wings(x):\n    return seen\n",
    "a cache": "from functools import cache\n@cache\ndef wings(x):\n    return x\n",
    "a class's list": "class wings:\n    seen = []\n",
    "a variable of a function": "def make():\n    seen = []\n    return lambda x: seen\n"
    "wings = make()\n",
    "a lambda's default": "wings = lambda x, seen=[]: seen\n",
    "an iterator": "seen = iter((1, 2))\ndef wings(x):\n    return next(seen)\n",
}


@pytest.mark.parametrize("text", KEEPING.values(), ids=KEEPING)
def test_what_keeps_a_state_has_no_digest_where_others_may_call_it(text: str) -> None:
    assert "wings" not in same(*cells(text, TAIL))
    assert "wings" in same(("wings.py", text), is_notebook=False)


def test_what_cannot_be_read_has_no_digest() -> None:
    """A failure of whatever reads code is no proof that the code does nothing."""
    unreadable = (
        "def tail(x:\n    return",
        f"n = 0x{'f' * 5000}\n",
        "x = '\0'\n",
        "x = '\ud800'\n",
        "\ufeff\ufeffx = 1\n",
        "x = " + "-" * 50_000 + "1",
        "x = " + ".a" * 20_000,
        "def tail(x, x): pass\n",
        "def tail(x): pass\nfrom __future__ import annotations\n",
    )
    for text in unreadable:
        assert same(*cells(WINGS, text)) == {}, text[:50]
        assert same(("wings.py", WINGS), ("tail.py", text), is_notebook=False) == {}, text[:50]


def test_a_name_in_an_annotation_is_needed() -> None:
    """A dataclass takes `x: "Other"` for no field if that name stands for typing.ClassVar."""
    code = "from dataclasses import dataclass\n@dataclass\nclass wings:\n    x: {}\n"
    for annotation in ("Other", "'Other[int]'"):
        found = same(*cells(code.format(annotation), "from typing import ClassVar as Other\n"))
        assert found["wings"][1] == ["cell 1", "cell 2"]


def test_a_cell_after_lazy_annotations_is_other_code_than_one_before() -> None:
    lazy = "from __future__ import annotations\n"
    assert None is not digest(WINGS) == digest(WINGS, lazy)
    after, behind = same(*cells(lazy + TAIL, WINGS, lazy))["wings"], digest(lazy, TAIL, WINGS)
    assert after == (behind, ["cell 2"], "cell 1") and behind not in (None, digest(WINGS))
    found = same(("tail.py", lazy + TAIL), ("wings.py", WINGS), is_notebook=False)
    assert found["wings"] == same(("wings.py", WINGS), is_notebook=False)["wings"]


@pytest.mark.parametrize("file", ["secrets.py", "pytest.py"])  # the second is only loaded here
def test_a_file_with_the_name_of_a_library_has_no_digest(file: str) -> None:
    assert same(("wings.py", WINGS), (file, TAIL), is_notebook=False) == {}


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
