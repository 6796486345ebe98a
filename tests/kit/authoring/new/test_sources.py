"""The texts of a new stage's files."""

import ast

import pytest

from grader.authoring.new.checks import check_file
from grader.authoring.new.signature import read_function
from grader.authoring.new.sources import solution_text
from grader.authoring.new.style import style_of


@pytest.mark.parametrize("preload", [(), ("numpy",), ("torch",)])
def test_a_new_solution_imports_what_its_annotations_name(preload: tuple[str, ...]) -> None:
    signature = "runs(tokens: Sequence[str], n: int) -> Iterator[tuple[str, ...]]"
    text = solution_text("Runs", [read_function(signature)], style_of(preload))
    assert "\nfrom collections.abc import Iterator, Sequence\n" in text
    names: dict[str, object] = {}
    exec(text, names)
    assert "runs" in names


def test_any_is_no_annotation() -> None:
    text = solution_text("F", [read_function("f(x: any) -> any")], style_of(()))
    assert "def f(x):" in text


def test_every_assert_of_a_new_check_has_a_message() -> None:
    entry = read_function('norm(x: "B T") -> ""')
    text = check_file("norm", [entry], style_of(("numpy",)))
    asserts = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assert)]
    assert asserts and all(node.msg is not None for node in asserts)


def test_the_inputs_of_a_new_check_are_lists_of_what_the_signature_says() -> None:
    entry = read_function("closest(word: str, words: list[str], sizes: list[list[int]]) -> str")
    text = check_file("closest", [entry], style_of(()))
    assert '("abca", ["abca", "ba"], [[3, 5], [5]])' in text and '("", [], [])' in text
