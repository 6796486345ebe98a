"""Forbidden calls in the source: what the stage may reach counts, a mere name never does."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.judge.calls import forbidden_calls
from grader.run.facts import ForbiddenCall
from grader.types.course import Course, EntryPoint, Limits, Stage
from grader.types.submission import Submission

NAMES = ("paper.glue", "paper.Knife")
FIRST = Stage("fold", "", 1, False, (), (EntryPoint("fold", ("any",)),), Path())
BIRD = Stage(
    *("bird", "", 1, False, ("fold",)),
    (EntryPoint("wings", ("any",)), EntryPoint("Bird", ("any",), is_class=True)),
    *(Path(), (), NAMES),
)
COURSE = Course("birds", "", Path(), (), Limits(), (FIRST, BIRD))
ALSO = {"paper.tools.Knife": "paper.Knife"}


def meaning(dotted: str) -> str | None:
    return dotted if dotted in NAMES else ALSO.get(dotted)


def found(submission: Submission) -> tuple[ForbiddenCall, ...]:
    return forbidden_calls(submission, COURSE, BIRD, meaning)


def names(source: str, **files: str) -> list[str]:
    """The forbidden names found in a bird.py, beside other files."""
    sources = {"bird.py": source, **{f"{name}.py": text for name, text in files.items()}}
    return [c.name for c in found(Submission("s", {n: t.encode() for n, t in sources.items()}))]


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
    "in what a name is made of": "import paper\nknife = paper.Knife()\ndef wings(): knife.cut()",
    "in a block": "import paper\ntry:\n    def wings(): paper.glue()\nexcept ValueError: pass",
    "as a default": "import paper\ndef wings(knife=paper.Knife()): pass",
    "as a decorator": "import paper\n@paper.glue()\ndef wings(): pass",
    "with Windows' ends of lines": "import paper\r\ndef wings():\r\n    paper.glue()\r\n",
    "with a byte order mark": "\ufeffimport paper\ndef wings(): paper.glue()",
}


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
    assert names("from fold import fold\ndef wings(): fold()", fold=glues.format("fold")) == []
    assert names("def wings(): pass", tools=glues.format("go")) == []


def test_the_cells_of_a_notebook_are_one_place() -> None:
    cells = (
        "import paper as p",
        "%matplotlib inline\nmine, theirs = 1, p.glue()",
        "!ls\ndef help():\n    p.Knife()",
        "def wings():\n    help()",
    )
    (call,) = found(Submission("s", {}, cells=cells))
    assert call == ForbiddenCall("paper.Knife", "\n  cell 3, line 3, in help\n    p.Knife()")


def test_a_file_larger_than_any_is_left_to_the_worker() -> None:
    source = "import paper\ndef wings(): paper.glue()\n"
    assert names(source + "#" * (1 << 18)) == []


def test_what_it_says_is_safe_to_show() -> None:
    source = "import paper\ndef wings(): paper.glue('\x1b[31m\u202e')"
    (call,) = found(Submission("s", {"bird.py": source.encode()}))
    assert call.place.startswith("\n  bird.py, line 2, in wings\n    def wings(): paper.glue('")
    assert "\x1b" not in call.place and "\u202e" not in call.place
