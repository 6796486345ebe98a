"""What the operators make of a solution, and what they leave alone."""

import ast

import pytest

from grader.authoring.mutants.making import mutants_of_source
from grader.authoring.mutants.types import Mutant

SOURCE = '''
"""1 == 2"""
import {library}


def f(x, y: int = 3, z: bool = True):
    """x + 1"""
    outside = x + 1
    ### BEGIN SOLUTION
    {line}
    ### END SOLUTION
'''


def mutants(line: str, library: str = "torch") -> tuple[Mutant, ...]:
    return mutants_of_source(SOURCE.format(line=line, library=library), "f.py")


def made(line: str, library: str = "torch") -> set[str]:
    """What the line may become."""
    return {"\n".join(mutant.after) for mutant in mutants(line, library)}


@pytest.mark.parametrize(
    "line, becomes",
    [
        ("return x.sum(dim=-1)", "return x.sum(dim=-2)"),
        ("return x.sum(dim=1)", "return x.sum(dim=2)"),
        ("return x.transpose(1, 2)", "return x"),
        ("return x.transpose(1, 2)", "return x.transpose(1, 0)"),
        ("return x.permute(0, 2, 1)", "return x.permute(2, 0, 1)"),
        ("return x.mT", "return x"),
        ("return x / y", "return x"),
        ("return x / y", "return x * y"),
        ("return x * y", "return x"),
        ("return x.tril()", "return x.triu()"),
        ("return x.argmax(1)", "return x.argmin(1)"),
        ("return x.tril()", "return x.tril(diagonal=-1)"),
        ("return torch.tril(x)", "return torch.tril(x, diagonal=1)"),
        ("return x", "return x.detach()"),
        ("return g(x)", "return g(x.detach())"),
        ("return x, y", "return y, x"),
        ("return x, y", "return x.detach(), y"),
        ("return x.view(y, z)", "return x.view(z, y)"),
        ("return x.size(-1)", "return x.size(-2)"),
        ("return x.shape[-1]", "return x.shape[-2]"),
        ("return x == y", "return x <= y"),
        ("return x < y", "return x <= y"),
        ("return x < y", "return x > y"),
        ("return x.to(y)", "return x"),
        ("return torch.zeros(y, dtype=z)", "return torch.zeros(y, )"),
        ("return g(x)", "return x"),
        ("return x[:y]", "return x"),
        ("return x[:y]", "return x[:y + 1]"),
        ("return range(y)", "return range(y - 1)"),
        ("return x + 2", "return x + 1"),
        ("return x + 2", "return x + 3"),
        ("return -torch.inf", "return -1e9"),
        ("return x.add(1)", "return x.add_(1)"),
        ("if x: return y", "if True: return y"),
        ("if x: return y", "if False: return y"),
        ("raise ValueError(x)", "raise RuntimeError(x)"),
        ("g(x)", "pass"),
        ("for y in (x, z): g(y)", "for y in (z,): g(y)"),
        ("return g(True)", "return g(False)"),
        ("return g(x, n=y)", "return g(x, n=y + 1)"),
        ("return x.any()", "return x.all()"),
    ],
)
def test_a_line_may_become_another(line: str, becomes: str) -> None:
    assert becomes in made(line)


def test_a_default_is_changed_and_ignored() -> None:
    found = made("return y")
    for default in ("y: int = 4, z: bool = True", "y: int = 2, z: bool = True"):
        assert f"def f(x, {default}):" in found
    assert "def f(x, y: int = 3, z: bool = False):" in found
    assert {"y = 3", "z = True"} <= found


def test_only_an_integer_is_off_by_one_in_a_call() -> None:
    assert {"return g(x, y - 1)", "return g(x, y + 1)"} <= made("return g(x, y)")
    assert not {"return g(x + 1, y)", "return g(z + 1)"} & (
        made("return g(x, y)") | made("return g(z)")
    )


def test_nothing_else_is_changed() -> None:
    for mutant in mutants("return x  # x + 1"):
        tree = ast.parse(mutant.source)
        function = tree.body[-1]
        assert ast.get_docstring(tree) == "1 == 2"
        assert isinstance(function, ast.FunctionDef)
        assert ast.get_docstring(function) == "x + 1"
        assert "outside = x + 1" in mutant.source
        assert "y: int" in mutant.source


def test_what_an_error_says_is_free() -> None:
    assert made('raise ValueError(f"{x + 1} is wrong")') >= {
        'raise RuntimeError(f"{x + 1} is wrong")'
    }
    assert not any("x - 1" in line for line in made('raise ValueError(f"{x + 1} is wrong")'))


def test_a_course_without_torch_has_none_of_its_methods() -> None:
    assert not any("detach" in line for line in made("return g(x)", "numpy"))


@pytest.mark.parametrize(
    "taken, may_detach",
    [("n: int, m: float = 1.0", False), ("n: int, x: torch.Tensor", True), ("n", True), ("", True)],
)
def test_no_gradient_comes_from_plain_numbers(taken: str, may_detach: bool) -> None:
    source = f"""import torch
def f({taken}):
    ### BEGIN SOLUTION
    return torch.arange(n)
    ### END SOLUTION
"""
    found = mutants_of_source(source, "solutions/f.py")
    assert any(mutant.operator == "detach" for mutant in found) == may_detach


def test_no_two_mutants_are_one_and_none_is_the_solution() -> None:
    found = mutants("return g(x + 1, y * 2, dim=-1)")
    trees = [ast.dump(ast.parse(mutant.source)) for mutant in found]
    assert len(set(trees)) == len(trees)
    own = SOURCE.format(line="return g(x + 1, y * 2, dim=-1)", library="torch")
    assert ast.dump(ast.parse(own)) not in trees


def test_an_id_stays_the_same_whatever_is_edited_elsewhere() -> None:
    line = "return g(x + 1)  # a remark"
    longer = f"w = 5\n    {line.replace('a remark', 'another')}"
    before, after = ({mutant.id for mutant in mutants(each)} for each in (line, longer))
    assert before <= after


def test_the_same_line_twice_gives_two_ids() -> None:
    found = [mutant.id for mutant in mutants("g(x)\n    g(x)")]
    assert len(set(found)) == len(found)
    assert any(id.endswith("-2") for id in found)


def test_a_mutant_tells_its_function() -> None:
    source = "class A:\n    def f(self):\n        ### BEGIN SOLUTION\n        return 1\n"
    found = mutants_of_source(source + "        ### END SOLUTION\n", "a.py")
    assert {mutant.where for mutant in found} == {"A.f"}
