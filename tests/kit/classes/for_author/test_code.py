"""A wrong answer's code as a misconception's: what it needs, and no word of the student's."""

import time

import pytest

from grader.classes.for_author.code import wrong_code

SOURCE = '''
import math, torch as t
from other import helper, unused
SIZE = math.tau
"ann was here"


class Fold:  # by ann
    """Ann's."""

    def forward(self, x):
        return Fold.size(x) + helper(x) * SIZE

    @staticmethod
    def size(x):
        """Only words."""


def fold(x):
    return Fold()(x)
'''


def test_only_what_the_entry_point_needs_without_words() -> None:
    assert wrong_code([SOURCE], "Fold", "fold_1", "ann").split("\n") == [
        "import math, torch as t",
        "from other import helper, unused",
        "SIZE = math.tau",
        "",
        "class fold_1:",
        "",
        "    def forward(self, x):",
        "        return fold_1.size(x) + helper(x) * SIZE",
        "",
        "    @staticmethod",
        "    def size(x):",
        "        pass",
    ]


def test_of_a_notebook_it_is_the_last_definition_with_the_imports_of_other_cells() -> None:
    cells = [
        "%matplotlib inline\nimport math",
        "def fold(x):\n    return 1",
        "def fold(x:",
        "def fold(x):\n    return math.floor(x)",
        "import math\nfold(2)",
    ]
    assert wrong_code(cells, "fold", "f", "ann") == (
        "import math\n\ndef f(x):\n    return math.floor(x)"
    )


def test_a_name_in_the_code_is_replaced() -> None:
    source = "def fold(ann):\n    return ann['ann'] + annotated"
    assert wrong_code([source], "fold", "f", "ann") == (
        "def f(student):\n    return student['student'] + annotated"
    )


@pytest.mark.parametrize("student", ["def", "return", "f", "1", "math", "t", "floor"])
def test_a_name_that_is_a_word_of_the_code_changes_nothing(student: str) -> None:
    source = "import math, torch as t\n\ndef fold(x):\n    return math.floor(x[1])"
    code = wrong_code([source], "fold", "f", student)
    assert code.startswith("import math, torch as t\n\ndef f(x):\n    return ")
    assert code.endswith(".floor(x[1])")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("a = [(1, 2), 3]\n" * 9000 + "%x\n" * 100, id="a hundred magics"),
        pytest.param("=".join(f"(\na{n})" for n in range(2000)) + " = 0\n", id="many names"),
    ],
)
def test_what_is_made_to_take_minutes_takes_none(source: str) -> None:
    uses = "".join(f"    a{n}\n" for n in range(2000))
    start = time.process_time()
    wrong_code([f"{source}def fold(x):\n{uses}"], "fold", "f", "eve")
    assert time.process_time() - start < 2


def test_what_cannot_be_quoted_is_nothing() -> None:
    for source in (
        "",
        "def fold(:",
        "fold = 3",
        "x = 1\0",
        f"def fold(x):\n    return {'(' * 300}",
        f"def fold(x):\n    return '{'a' * 9000}'",
    ):
        assert wrong_code([source], "fold", "f", "ann") == ""
