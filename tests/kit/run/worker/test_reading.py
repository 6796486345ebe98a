"""Forbidden calls in the source: what the stage may reach counts, a mere name never does."""

import sys
import time
from types import ModuleType
from typing import Any

import pytest

from grader.run.worker.reading import forbidden_calls

NAMES = ("paper.glue", "paper.Knife")


@pytest.fixture(autouse=True)
def _paper(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library of two names, one of which has a second one."""
    paper, tools = ModuleType("paper"), ModuleType("paper.tools")
    paper.glue, paper.Knife = (lambda: None), type("Knife", (), {})
    paper.tools, tools.Knife = tools, paper.Knife
    monkeypatch.setitem(sys.modules, "paper", paper)
    monkeypatch.setitem(sys.modules, "paper.tools", tools)


def found(*sources: tuple[str, str], is_notebook: bool = False) -> Any:
    return forbidden_calls(
        sources, own={"wings", "Bird"}, others={"fold"}, forbidden=NAMES, is_notebook=is_notebook
    )


def names(source: str, **files: str) -> list[str]:
    """The forbidden names found in a bird.py, beside other files."""
    others = [(f"{name}.py", text) for name, text in files.items()]
    return [call["name"] for call in found(("bird.py", source), *others)]


CALLED = {
    "by its full name": "import paper\ndef wings(): paper.glue()",
    "a class": "import paper\ndef wings():\n    return paper.Knife(3)",
    "as another": "import paper as p\ndef wings(): p.glue()",
    "from its package": "from paper import glue\ndef wings(): glue()",
    "from its package, as another": "from paper import glue as stick\ndef wings(): stick()",
    "by another path": "import paper.tools as t\ndef wings(): t.Knife()",
    "of everything": "from paper import *\ndef wings(): glue()",
    "imported on the spot": "def wings():\n    from paper import glue\n    glue()",
    "by an alias": "import paper\nstick = paper.glue\ndef wings(): stick()",
    "by an alias of its own": "import paper\ndef wings():\n    k = paper.Knife\n    return k()",
    "by an alias of a module": "import paper\np = paper\ndef wings(): p.glue()",
    "derived from": "import paper\nclass Bird(paper.Knife): pass",
    "derived from by another class": (
        "import paper\nclass Sharp(paper.Knife): pass\ndef wings(): return Sharp()"
    ),
    "derived from inside a function": (
        "import paper\ndef wings():\n    class Sharp(paper.Knife): pass\n    return Sharp()"
    ),
    "a method of the class": "import paper\ndef wings(): paper.Knife.cut(None)",
    "in a branch": "import paper\ndef wings(x):\n    if x > 1e9:\n        paper.glue()",
    "in a lambda": "import paper\nwings = lambda: paper.glue()",
    "in a constructor": "import paper\nclass Bird:\n    def __init__(self): paper.glue()",
    "in forward": "import paper\nclass Bird:\n    def forward(self): paper.glue()",
    "in a class": "import paper\nclass Bird:\n    knife = paper.Knife()",
    "in a helper": "import paper\ndef help(): paper.glue()\ndef wings(): help()",
    "in a helper's helper": (
        "import paper\ndef a(): paper.glue()\ndef b(): a()\ndef wings(): return [b for _ in []]"
    ),
    "in a method that is called": (
        "import paper\nclass Bird:\n    def cut(self): paper.glue()\n"
        "    def forward(self): self.cut()"
    ),
    "in a method of an object made before": (
        "import paper\nclass Tool:\n    def cut(self): paper.glue()\n"
        "tool = Tool()\ndef wings(): tool.cut()"
    ),
    "in a method whose class is an attribute": (
        "import paper\nclass Tool:\n    def cut(self): paper.glue()\n"
        "def wings(box): box.Tool().cut()"
    ),
    "in a method that is known before its class": (
        "import paper\nclass Tool:\n    def cut(self): paper.glue()\n"
        "class Base(Tool): pass\nclass Bird(Base):\n    def forward(self): self.cut()"
    ),
    "in a method that has the name of another stage's function": (
        "import paper\nclass Bird:\n    def fold(self): paper.glue()\n"
        "    def forward(self): self.fold()"
    ),
    "in what a name is made of": "import paper\nknife = paper.Knife()\ndef wings(): knife.cut()",
    "in a block": "import paper\ntry:\n    def wings(): paper.glue()\nexcept ValueError: pass",
    "as a default": "import paper\ndef wings(knife=paper.Knife()): pass",
    "as a decorator": "import paper\n@paper.glue()\ndef wings(): pass",
    "with Windows' ends of lines": "import paper\r\ndef wings():\r\n    paper.glue()\r\n",
}


@pytest.mark.parametrize(
    "source, called",
    [
        ("def wings(x): return sorted(x)", ["builtins.sorted"]),
        ("mine = sorted\ndef wings(x): return mine(x)", ["builtins.sorted"]),
        ("def wings(x, sorted): return sorted(x)", []),
        ("from paper import sorted\ndef wings(x): return sorted(x)", []),
    ],
)
def test_a_call_of_pythons_own_function_is_found(source: str, called: list[str]) -> None:
    of = forbidden_calls(
        [("bird.py", source)],
        own={"wings"},
        others=set(),
        forbidden=["builtins.sorted"],
        is_notebook=False,
    )
    assert [call["name"] for call in of] == called


@pytest.mark.parametrize("source", CALLED.values(), ids=CALLED)
def test_a_call_is_found(source: str) -> None:
    assert len(names(source)) == 1


NOT_CALLED = {
    "a comment": "import paper\ndef wings(): pass  # paper.glue()",
    "a docstring": "import paper\ndef wings():\n    '''Like paper.glue(), by hand.'''",
    "a string": "import paper\ndef wings(): raise ValueError('use no paper.Knife()')",
    "an annotation": "import paper\ndef wings(knife: paper.Knife) -> paper.Knife: pass",
    "a question": "import paper\ndef wings(x): return isinstance(x, paper.Knife)",
    "an import": "from paper import glue\ndef wings(): pass",
    "a name of its own": "def glue(): pass\ndef wings(): glue()",
    "a name of its own beside everything": (
        "from paper import *\nclass Knife: pass\ndef wings(): Knife()"
    ),
    "a method of its own": (
        "class Bird:\n    def glue(self): pass\n    def forward(self): self.glue()"
    ),
    "another's of the same name": "import wood\ndef wings(): wood.glue()",
    "nobody's": "def wings(glue): glue()",
    "a try at the end": (
        "import paper\ndef wings(): pass\nif __name__ == '__main__':\n    paper.glue()"
    ),
    "a try by the way": "import paper\ndef wings(): pass\nprint(paper.glue())",
    "a try whose name is a variable's": (
        "import paper\ndef wings():\n    knife = 1\n    return knife\nknife = paper.Knife()"
    ),
    "a try whose name is an attribute's": (
        "import paper\nclass Bird:\n    def forward(self): return self.knife()\n"
        "knife = paper.Knife()"
    ),
    "a try whose name a library has too": (
        "import paper\ndef wings(): paper.tools.fold()\nfold = paper.Knife()"
    ),
    "a method of another stage's class": (
        "import paper\nclass fold:\n    def cut(self): paper.glue()\n"
        "class Bird:\n    def cut(self): pass\n    def forward(self): self.cut()"
    ),
    "a method of a class that nothing makes": (
        "import paper\nclass Torchs:\n    def cut(self): paper.glue()\n"
        "class Bird:\n    def cut(self): pass\n    def forward(self): self.cut()"
    ),
    "a definition that another one replaces": (
        "import paper\ndef wings(): paper.glue()\ndef wings(): pass"
    ),
    "a test of its own": "import paper\ndef wings(): pass\ndef test_it(): paper.glue()",
    "a method that nothing calls": (
        "import paper\nclass Bird:\n    def compare(self): paper.glue()\n"
        "    def forward(self): pass"
    ),
    "no Python": "import paper\ndef wings() paper.glue()",
    "null bytes": "import paper\0\ndef wings(): paper.glue()",
    "deep": "import paper\ndef wings(): paper.glue(" + "(" * 5000,
}


@pytest.mark.parametrize("source", NOT_CALLED.values(), ids=NOT_CALLED)
def test_a_mere_name_is_no_call(source: str) -> None:
    assert names(source) == []


def test_helpers_in_other_files_count_and_earlier_stages_do_not() -> None:
    glues = "import paper\ndef {}(): paper.glue()"
    assert names("from tools import go\ndef wings(): go()", tools=glues.format("go")) == [
        "paper.glue"
    ]
    assert names("from tools import go as g\ndef wings(): g()", tools=glues.format("go")) == [
        "paper.glue"
    ]
    assert names("import tools.more as t\ndef wings(): t.go()", tools=glues.format("go")) == [
        "paper.glue"
    ]
    assert names("from fold import fold\ndef wings(): fold()", fold=glues.format("fold")) == []
    assert names("def wings(): pass", tools=glues.format("go")) == []


def test_the_cells_of_a_notebook_are_one_place() -> None:
    cells = (
        "import paper as p",
        "%matplotlib inline\nmine, theirs = 1, p.glue()",
        "!ls\ndef help():\n    p.Knife()",
        "def wings():\n    p.glue()",
        "def wings():\n    help()",
    )
    numbered = [(f"cell {number}", cell) for number, cell in enumerate(cells, start=1)]
    frame = {"file": "cell 3", "line": 3, "function": "help", "text": "p.Knife()"}
    assert found(*numbered, is_notebook=True) == [{"name": "paper.Knife", "frames": [frame]}]


def test_a_file_larger_than_any_is_left_to_the_worker() -> None:
    source = "import paper\ndef wings(): paper.glue()\n"
    assert found(("bird.py", source + "#" * (1 << 18))) is None


LONG = {
    "a chain of functions": "import paper\ndef wings(): f0()\n"
    + "".join(f"def f{n}(): f{n + 1}()\n" for n in range(8000)),
    "a chain of names": "import paper\ndef wings(): a" + ".b" * 900 + "()\n" * 40,
    "many stars": "from paper import *\n" * 5000 + "def wings(): glue()\n" + "x()\n" * 5000,
    "many aliases": "import paper\na = paper.glue\n" + "a = b = c = a\n" * 9000,
    "many methods": "import paper\nclass Bird:\n"
    + "".join(f"    def m{n}(self): self.m{n + 1}()\n" for n in range(6000)),
}


@pytest.mark.parametrize("source", LONG.values(), ids=LONG)
def test_it_takes_no_longer_than_the_file_is_long(source: str) -> None:
    start = time.process_time()
    names(source + "paper.glue()\n")
    assert time.process_time() - start < 10
