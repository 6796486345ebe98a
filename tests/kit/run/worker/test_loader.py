"""The loader: submissions from bytes, imported as Python would import files."""

import importlib
import inspect
import linecache
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import pytest

from grader.run.worker.loader import Loader, Patch, without_magics

Load = Callable[..., Loader]


@pytest.fixture
def load() -> Iterator[Load]:
    """Installs a loader of these files; whatever it left behind is an error."""
    modules, finders = dict(sys.modules), list(sys.meta_path)
    loaders: list[Loader] = []

    def install(files: Mapping[str, str | bytes], patches: Mapping[str, Patch] = {}) -> Loader:
        as_bytes = {
            name: text if isinstance(text, bytes) else textwrap.dedent(text).encode()
            for name, text in files.items()
        }
        loader = Loader(as_bytes, patches)
        loader.install()
        loaders.append(loader)
        return loader

    yield install
    for loader in reversed(loaders):
        loader.remove()
    assert sys.meta_path == finders
    left = {name for name in sys.modules if name not in modules}
    assert {name for name in left if name.startswith("own_")} == set()
    assert all(sys.modules[name] is module for name, module in modules.items())


# --- folders ---------------------------------------------------------------------------------


def test_modules_import_one_another(load: Load) -> None:
    load(
        {
            "own_first.py": "def f(): return 1",
            "own_second.py": "from own_first import f\nimport own_first\ndef g(): return f() + 1",
        }
    )
    module = importlib.import_module("own_second")
    assert module.g() == 2
    assert module.own_first is sys.modules["own_first"]
    assert module.__name__ == "own_second" and module.__file__ == "own_second.py"


def test_packages_in_subfolders_are_found_with_and_without_an_init(load: Load) -> None:
    load(
        {
            "own_package/__init__.py": "from .inner import x",
            "own_package/inner.py": "x = 5",
            "own_folder/deep/module.py": "from ..deep import other\ny = other.z",
            "own_folder/deep/other.py": "z = 7",
            "own_main.py": "from own_package import x\nfrom own_folder.deep.module import y",
        }
    )
    module = importlib.import_module("own_main")
    assert (module.x, module.y) == (5, 7)


def test_a_circle_of_imports_ends_as_in_python(load: Load) -> None:
    load(
        {
            "own_a.py": "import own_b\ndef f(): return own_b.g()",
            "own_b.py": "import own_a\ndef g(): return 1",
        }
    )
    assert importlib.import_module("own_a").f() == 1
    load({"own_c.py": "from own_d import x\ny = 1", "own_d.py": "from own_c import y\nx = 1"})
    with pytest.raises(ImportError, match="own_c"):
        importlib.import_module("own_c")


def test_the_submission_comes_before_what_is_installed(load: Load) -> None:
    assert "this" not in sys.modules, "a module of Python's own that nobody imports"
    load({"this.py": "x = 'mine'"})
    assert importlib.import_module("this").x == "mine"


def test_what_is_not_in_the_submission_is_not_found(load: Load) -> None:
    load({"own_a.py": "import own_missing", "own_data.txt": "x = 1"})
    with pytest.raises(ModuleNotFoundError, match="own_missing"):
        importlib.import_module("own_a")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("own_data")


def test_dataclasses_and_named_tuples_find_their_module(load: Load) -> None:
    load(
        {
            "own_a.py": """
                from __future__ import annotations
                from dataclasses import dataclass, field
                from typing import ClassVar, NamedTuple, get_type_hints

                @dataclass
                class Config:
                    kind: ClassVar[str] = "config"
                    sizes: list[int] = field(default_factory=list)

                class Both(NamedTuple):
                    one: int

                hints = get_type_hints(Both)
                """
        }
    )
    module = importlib.import_module("own_a")
    assert module.Config([1]) == module.Config([1])
    assert [field for field in module.Config.__dataclass_fields__ if field == "sizes"]
    assert module.hints == {"one": int}


SOURCES = {
    "CRLF": b"x = '\xc3\xbc'\r\nif x:\r\n    y = 2\r\n",
    "a BOM": b"\xef\xbb\xbfx = '\xc3\xbc'\ny = 2\n",
    "a BOM and CRLF": b"\xef\xbb\xbfx = '\xc3\xbc'\r\ny = 2\r\n",
    "a coding cookie": b"# -*- coding: latin-1 -*-\nx = '\xfc'\ny = 2\n",
    "UTF-8 comments": "# ünïcödé ∑ 你好\nx = 'ü'\ny = 2".encode(),
    "no last newline": b"x = '\xc3\xbc'; y = 2",
    "a form feed": b"x = '\xc3\xbc'\n\x0cy = 2\n",
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_sources_are_read_as_python_reads_files(load: Load, source: bytes) -> None:
    loader = load({"own_a.py": source})
    module = importlib.import_module("own_a")
    assert (module.x, module.y) == ("ü", 2)
    lines = [loader.line("own_a.py", number) or "" for number in (1, 2)]
    assert any(line.startswith("x = 'ü'") and not line.endswith("\r") for line in lines)


@pytest.mark.parametrize(
    "source",
    [b"x = 1\ny = '\xfc'\n", b"# coding: no-such-thing\n", b"def f(:\n", b"x = 1\n  y = 2\n"],
)
def test_a_source_that_is_not_python_is_a_syntax_error(load: Load, source: bytes) -> None:
    loader = load({"own_a.py": source})
    with pytest.raises(SyntaxError):
        importlib.import_module("own_a")
    assert loader.line("own_a.py", 1) is not None, "its lines can be shown all the same"


def test_lines_are_counted_as_python_counts_them(load: Load) -> None:
    loader = load({"own_a.py": b"x = 1\r\n\x0c\r\ndef f():\r\n    return undefined\r\n"})
    module = importlib.import_module("own_a")
    with pytest.raises(NameError) as caught:
        module.f()
    last = caught.traceback[-1]
    line = loader.line("own_a.py", last.lineno + 1)
    assert line is not None and line.strip() == "return undefined"


def test_only_the_learners_own_lines_are_known(load: Load) -> None:
    loader = load({"own_a.py": "x = 1", "own_b.py": "y = 2"})
    importlib.import_module("own_a")
    assert loader.line("own_a.py", 1) == "x = 1"
    assert loader.line("own_a.py", 0) == loader.line("own_a.py", 99) == ""
    assert loader.line(__file__, 1) is None
    assert loader.line("own_b.py", 1) is None, "never imported, so in no traceback"


def test_inspect_finds_the_source(load: Load) -> None:
    load({"own_a.py": "def f():\n    return 'mine'\n"})
    assert "return 'mine'" in inspect.getsource(importlib.import_module("own_a").f)
    linecache.cache.pop("own_a.py")


# --- patches ---------------------------------------------------------------------------------


def answers(name: str, value: int) -> Patch:
    def patch(module: ModuleType) -> None:
        setattr(module, name, lambda: value)

    return patch


def test_a_patch_is_in_place_before_another_module_imports_the_name(load: Load) -> None:
    load(
        {
            "own_a.py": "def f(): return 1\ndef other(): return f()",
            "own_b.py": "from own_a import f, other\ng = f",
        },
        {"own_a": answers("f", 10)},
    )
    module = importlib.import_module("own_b")
    assert module.g() == 10 and module.other() == 10


@pytest.mark.parametrize(
    "source",
    ["1 / 0", "def f(:", "import own_missing", "raise SystemExit", "x = 1\nquit()", b"\xff\x00"],
)
def test_a_module_with_a_patch_may_fail(load: Load, source: str | bytes) -> None:
    load(
        {"own_a.py": source, "own_b.py": "from own_a import f\nvalue = f()"},
        {"own_a": answers("f", 10)},
    )
    assert importlib.import_module("own_b").value == 10


def test_a_module_without_a_patch_may_not(load: Load) -> None:
    load({"own_a.py": "1 / 0", "own_b.py": "import own_a"}, {"own_c": answers("f", 1)})
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("own_b")
    assert "own_a" not in sys.modules and "own_b" not in sys.modules


# --- one file, one notebook ------------------------------------------------------------------


def test_a_script_answers_to_the_name_of_every_stage(load: Load) -> None:
    loader = load({"own_all.py": "def f(): return 1\nfrom own_first import f as again"})
    module, errors = loader.run_script(None, "own_all.py", ["own_first", "own_second"])
    assert errors == [] and module.again() == 1
    assert importlib.import_module("own_second") is module
    assert module.__file__ == "own_all.py"


def test_a_script_that_fails_raises(load: Load) -> None:
    loader = load({"own_all.py": "1 / 0"})
    with pytest.raises(ZeroDivisionError):
        loader.run_script(None, "own_all.py", [])


def cells(load: Load, *sources: str, patches: Mapping[str, Patch] = {}) -> Any:
    return load({}, patches).run_script([textwrap.dedent(s) for s in sources], "", ["own_stage"])


def test_cells_share_a_namespace(load: Load) -> None:
    module, errors = cells(load, "x = 1", "def f(): return x", "x = 5")
    assert errors == [] and module.f() == 5


@pytest.mark.parametrize(
    "bad", ["1 / 0", "def f(:", "import sys; sys.exit()", "raise KeyboardInterrupt", "\ud800", "\0"]
)
def test_a_cell_that_fails_does_not_stop_the_next(load: Load, bad: str) -> None:
    module, errors = cells(load, "x = 1", bad, "y = x + 1")
    assert module.y == 2
    (error,) = errors
    assert error["source"] == bad and error["type"]


def test_which_later_cell_makes_what_a_cell_lacks_is_told(load: Load) -> None:
    sources = ("class A(n.B): pass", "n", "import math as n\nx = 1", "n = 2", "del x", "x", "y")
    _, errors = cells(load, *sources)
    told = [(error["source"], error.get("later")) for error in errors[:4]]
    assert told == [("class A(n.B): pass", 3), ("n", 3), ("x", None), ("y", None)]


def test_the_last_cell_to_set_a_name_again_is_known(load: Load) -> None:
    loader = load({})
    sources = (
        "import math, json\nx = []",
        "import math",
        "math = 3",
        "x.append(1)",
        "math = 3\n1 / 0",
    )
    loader.run_script(sources, "", [])
    assert loader.reset_by == {"math": 3}


def test_what_a_cell_did_before_it_failed_stays(load: Load) -> None:
    module, errors = cells(load, "x = 1\n1 / 0\nx = 2")
    assert module.x == 1
    assert errors[0]["frames"] == [
        {"file": "code cell 1", "line": 2, "function": "<module>", "text": "1 / 0"}
    ]


@pytest.mark.parametrize(
    "bad", ["import no_such_module", "input('your name')", "assert False", "raise SystemExit"]
)
def test_what_a_cell_defines_below_a_line_that_fails_is_there(load: Load, bad: str) -> None:
    rest = (
        "import math\nSIZE = 2\n@staticmethod\ndef f(x): return SIZE * math.floor(x)\nprint(1 / 0)"
    )
    module, errors = cells(load, f"{bad}\n{rest}\nclass A: pass")
    assert module.f(1.5) == 2 and module.A
    assert len(errors) == 1 and errors[0]["frames"][0]["text"] == bad


def test_but_not_where_something_has_defined_it_before(load: Load) -> None:
    module, _ = cells(load, "def f(): return 1", "x = 1\n1 / 0\ndef f(): return 2\nx = 2")
    assert (module.f(), module.x) == (1, 1)


STUB = """def f(x):\n    '''Twice x.'''\n    raise NotImplementedError()"""


@pytest.mark.parametrize(
    ("cell", "is_made"),
    [
        ("1 / 0\ndef f(x): return 2", True),
        ("1 / 0\nclass f(int): pass", True),
        ("def f(\n    x: Missing,\n): return 2\n1 / 0", True),
        ("def f(x) return 2", False),
        ("@missing\ndef f(x): return 2", False),
    ],
)
@pytest.mark.parametrize("stub", [STUB, f"class f:\n{textwrap.indent(STUB, '    ')}"])
def test_a_stub_keeps_no_definition_of_a_later_cell_from_being(
    load: Load, stub: str, cell: str, is_made: bool
) -> None:
    module, errors = cells(load, stub, cell)
    assert errors and hasattr(module, "f") is is_made
    assert not is_made or module.f(2) == 2


@pytest.mark.parametrize("cell", [f"{STUB}\nf(1)", "f(1)", "if f: 1 / 0\ng = f"])
def test_a_stub_that_nothing_replaces_stays(load: Load, cell: str) -> None:
    module, errors = cells(load, STUB, cell)
    assert errors and module.f


def test_what_needs_what_is_not_there_does_not_keep_the_rest_from_being(load: Load) -> None:
    module, errors = cells(load, "SIZE = no_such_name\ny = SIZE + 1\ndef f(): return 1")
    assert module.f() == 1 and not hasattr(module, "y")
    assert [error["source"].split("\n")[-1] for error in errors] == [
        "def f(): return 1",
        "y = SIZE + 1",
    ]


@pytest.mark.parametrize(
    "source",
    [
        "def f(x: Missing, y) -> Missing['b t']: return 1\nz = 1 / 0",
        "def f(\n    x: int,\n    y: Missing,\n): return 1",
        "class f(int):\n    def __new__(cls, x: Missing, y): return int(x)",
    ],
)
def test_annotations_that_fail_keep_no_definition_from_being(load: Load, source: str) -> None:
    module, errors = cells(load, "from no_such_module import Missing", source)
    assert module.f(1, 2) == 1 and not hasattr(module, "z")
    failing = ["NameError"] * (sys.version_info < (3, 14))  # later ones wait until they are read
    told = ["ModuleNotFoundError", *failing]
    assert [error["type"] for error in errors[: len(told)]] == told


def test_a_decorator_that_fails_does(load: Load) -> None:
    module, _ = cells(load, "@missing\ndef f(): return 1")
    assert not hasattr(module, "f")


def test_a_cell_may_await_at_its_top(load: Load) -> None:
    module, errors = cells(load, "import asyncio\nawait asyncio.sleep(0)\ndef f(): return 1")
    assert errors == [] and module.f() == 1


def test_only_the_definitions_of_cells_are_run_if_that_is_asked_for(load: Load) -> None:
    sources = [
        "x = 1\nwhile True: pass\ndef f(): return x",
        "x = 2\nraise SystemExit\nx = 3",
        "def g(:",
    ]
    module, errors = load({}).run_script(sources, "", [], only_definitions=True)
    assert module.f() == 3 and [error["type"] for error in errors] == ["SyntaxError"]


def test_cells_may_define_dataclasses_import_stages_and_display(load: Load) -> None:
    module, errors = cells(
        load,
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 1",
        "from own_stage import A as B\ndisplay(B())\nget_ipython().x if get_ipython() else 0",
    )
    assert errors == [] and module.B is module.A


def test_patches_change_a_notebook_after_its_last_cell(load: Load) -> None:
    module, _ = cells(
        load, "def f(): return 1", "def g(): return f()", patches={"own_stage": answers("f", 10)}
    )
    assert module.g() == 10


MAGICS = {
    "a line magic": ("%matplotlib inline\nx = 1", "\nx = 1"),
    "a shell line": ("!pip install torch\nx = 1", "\nx = 1"),
    "all lines indented": ("\n  x = 1\n  if x:\n      y = 2", "\nx = 1\nif x:\n    y = 2"),
    "Python's prompts": (
        ">>> def f():\n...     return 1\n...\n>>> x = 1",
        "def f():\n    return 1\n\nx = 1",
    ),
    "IPython's prompts": (
        "In [12]: def f(...):\n    ...:     return x[..., 0]  # ...\n    ...:\n",
        "def f(...):\n    return x[..., 0]  # ...\n\n",
    ),
    "an ellipsis after Python's prompt": (">>> def f(): ...\n", "def f(): ...\n"),
    "two of them": ("%a\n!b it's\nx = 1", "\n\nx = 1"),
    "an unbalanced shell line": ("!echo (\nx = 1", "\nx = 1"),
    "a shell line that goes on": ("!pip install \\\n    torch \\\n    numpy\nx = 1", "\n\n\nx = 1"),
    "an assigned shell line": ("x = !ls\ny = 1", "x = None\ny = 1"),
    "an assigned magic": ("x = %pwd\ny = 1", "x = None\ny = 1"),
    "two assigned names": ("x, y = !ls", "x, y = None"),
    "help before": ("?print\nx = 1", "\nx = 1"),
    "help after": ("torch.softmax?\nx = 1", "\nx = 1"),
    "the source after": ("f??", ""),
    "a magic in a block": ("if True:\n    %who\nx = 1", "if True:\n    pass\nx = 1"),
    "a timed statement": ("if True:\n    %time x = f(1)", "if True:\n    x = f(1)"),
    "a shell line in a function": ("def f():\n\t!ls\n", "def f():\n\tpass\n"),
    "an assigned one in a block": ("for i in 1,:\n    x = !ls", "for i in 1,:\n    x = None"),
    "a shell cell": ("%%bash\nfor x in a; do echo $x; done", ""),
    "a cell for a file": ("%%writefile f.py\nx = 1", ""),
    "a cell in HTML": ("\n\n%%html\n<p>", ""),
    "a timed cell": ("%%time\nx = 1", "\nx = 1"),
    "a captured cell with a magic": ("%%capture out\n%cd x\nx = 1", "\n\nx = 1"),
    "a graded cell": ("%%grade masking\nx = 1", "\nx = 1"),
    "a timed cell without a body": ("%%time", ""),
    "an empty cell": ("", ""),
}


@pytest.mark.parametrize("cell, plain", MAGICS.values(), ids=MAGICS)
def test_magics_give_way(cell: str, plain: str) -> None:
    assert without_magics(cell) == plain


UNTOUCHED = {
    "a remainder on a line of its own": "x = (7\n% 4)",
    "a remainder after a backslash": "x = 7 \\\n% 4",
    "a format": "text = ('%d'\n    % 3)",
    "a magic in a text": 'text = """\n%matplotlib inline\n!ls\n?\n"""',
    "a comment that asks": "x = 1  # is it?",
    "no Python": "def f(:\n    return 1",
    "no Python, and a comment that asks": "def f(x)  # why?\n    return x",
    "unfinished": "x = (1,",
    "too deep for the parser": "%time\ni" + 3000 * "{",
}


@pytest.mark.parametrize("cell", UNTOUCHED.values(), ids=UNTOUCHED)
def test_what_is_no_magic_stays(cell: str) -> None:
    assert without_magics(cell) == cell


def test_a_cell_of_thousands_of_magics_costs_no_more_than_it_may() -> None:
    start = time.process_time()
    without_magics("if 1:\n" + "    !x\n" * 5000)
    assert time.process_time() - start < 3


def test_a_notebook_of_magics_runs(load: Load) -> None:
    module, errors = cells(
        load,
        "%load_ext autoreload\n%autoreload 2\n!pip install -q torch",
        "%%bash\nls | wc",
        "x = (10\n% 4)",
        "%%time\ny = x + 1",
    )
    assert errors == [] and module.y == 3


# --- leaving ---------------------------------------------------------------------------------


def test_after_remove_nothing_is_left_and_a_second_submission_is_its_own() -> None:
    modules, finders = dict(sys.modules), list(sys.meta_path)
    for number in (1, 2):
        loader = Loader(
            {
                "own_a.py": f"x = {number}".encode(),
                "own_p/q.py": b"from own_a import x",
                "own_s.py": b"",
            },
            {},
        )
        loader.install()
        assert importlib.import_module("own_p.q").x == number
        loader.run_script(None, "own_s.py", ["own_stage", "own_other"])
        loader.run_script(["x = 1"], "", ["own_stage"])
        loader.remove()
        assert sys.modules == modules and sys.meta_path == finders
        assert "own_stage" not in sys.modules
