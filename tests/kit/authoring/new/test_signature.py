"""Signatures as an author types them, and the files that `grade new` makes of them."""

from pathlib import Path

import pytest

from grader.authoring.new.checks import check_file
from grader.authoring.new.files import Wanted, new_stage
from grader.authoring.new.signature import Value, read_class, read_function
from grader.authoring.new.style import style_of
from grader.authoring.verify.verify import verify
from grader.read.course_file import read_course
from grader.types.course import Course
from grader.types.errors import KitError
from tests.kit.support.checkout import run_python
from tests.kit.support.files import edit
from tests.kit.support.tiny import Typed

TOML = """\
schema = 1
name = "birds"
title = "Birds"
preload = [{preload}]

[[stages]]
slug = "fold"
title = "Fold"
points = 1
entry_points = {{ fold = "number" }}
"""
PRELOAD = {"torch": '"torch"', "numpy": '"numpy"', "plain": ""}
_RULES = ("--select=E,F,I,W", "--line-length=100")
SHIFT = 'shift(x: "B T", n: int) -> "B T"'


def course(root: Path, preload: str) -> Course:
    (root / "course.toml").write_text(TOML.format(preload=preload), encoding="utf-8")
    return read_course(root / "course.toml")


@pytest.mark.parametrize(
    "text, parameters",
    [
        ("f(num_heads)", [Value("num_heads", "int")]),
        ("f(d_model, seq_len, x)", [Value("d_model", "int"), Value("seq_len", "int"), Value("x")]),
        ('f(x: "B H d_k")', [Value("x", axes=("B", "H", "d_k"))]),
        ('f(x: "")', [Value("x", axes=())]),
        ("f(x: Tensor, y: torch.Tensor = None)", [Value("x"), Value("y", default="None")]),
        ("f(eps=0.5)", [Value("eps", "float", None, "0.5")]),
        ("f(bias=True)", [Value("bias", "bool", None, "True")]),
        ("f(x: array, y: number)", [Value("x"), Value("y", "float")]),  # as course.toml says it
        ("f(ids: list[int], n_words)", [Value("ids", "list[int]"), Value("n_words", "int")]),
    ],
)
def test_a_signature_says_what_each_parameter_is(text: str, parameters: list[Value]) -> None:
    assert list(read_function(text).call.parameters) == parameters


def test_several_results_and_a_class_are_read() -> None:
    call = read_function('attend(q: "B T") -> ("B T", "B")').call
    assert call.is_tuple and [each.axes for each in call.results] == [("B", "T"), ("B",)]
    block = read_class('Block(d_model, eps=1e-5)(x: "B T") -> "B T"')
    assert block.name == "Block" and block.made is not None
    assert [each.name for each in block.made.parameters] == ["d_model", "eps"]
    assert [each.name for each in block.call.parameters] == ["x"]


@pytest.mark.parametrize(
    "option, text, told",
    [
        ("--function", "shift(x", "'shift(x' is not a signature: write it like 'f(x"),
        ("--function", "shift", "'shift' is not a signature"),
        ("--function", "shift(*x)", "'shift(*x)' has parameters with * or /: write plain ones"),
        ("--function", 'shift(x: "2i")', "has an axis '2i', which is not a name"),
        ("--function", 'shift(x: "B in")', "has an axis 'in', which is not a name"),
        ("--function", "fold(x)", "stage 'fold' defines 'fold': choose another name"),
        ("--class", "Block(d_model)", "--class 'Block(d_model)': say also how its objects are"),
        ("--class", "Block", "--class 'Block': say also how its objects are called"),
    ],
)
def test_a_signature_that_cannot_be_read_is_told_in_a_line_and_nothing_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refused: Typed,
    option: str,
    text: str,
    told: str,
) -> None:
    course(tmp_path, '"torch"')
    monkeypatch.chdir(tmp_path)
    [line] = refused("new", "nest", "--title", "Nest", option, text).splitlines()
    assert told in line
    assert [path.name for path in tmp_path.iterdir()] == ["course.toml"]


def test_plain_python_has_no_axes(tmp_path: Path) -> None:
    told = r"neither torch nor numpy: write it like 'f\(x: list\[int\], n: int\) -> float'"
    with pytest.raises(KitError, match=told):
        new_stage(course(tmp_path, ""), Wanted("nest", "Nest", functions=[SHIFT]))


@pytest.mark.parametrize("library", PRELOAD)
def test_what_is_to_be_written_is_a_to_do_and_no_proof(tmp_path: Path, library: str) -> None:
    axes = "" if library == "plain" else ': "B T"'
    stage, files = new_stage(
        course(tmp_path, PRELOAD[library]),
        Wanted(
            "nest",
            "Nest",
            functions=[f"shift(x{axes}, n: int)", "count(num_eggs)"],
            classes=[f"Egg(d_model, eps=1e-5)(x{axes})"],
        ),
    )
    assert [entry.name for entry in stage.entry_points] == ["shift", "count", "Egg"]
    for file in files:
        assert max(map(len, file.read_text("utf-8").splitlines())) <= 100, file
    linted = run_python("-m", "ruff", "check", "--isolated", *_RULES, *files)
    assert linted.returncode == 0, linted.stdout
    whole = read_course(tmp_path / "course.toml")
    [proof] = verify(whole, [stage], seeds=(1,)).stages
    assert proof.problems == () and not proof.is_sound
    [note] = proof.notes
    assert note == "nest does not run yet: write solutions/nest.py and tests/checks/test_nest.py"
    places = {todo.file for todo in proof.todos}
    written = {file.relative_to(tmp_path).as_posix() for file in files}
    assert places == written - {"exercises/nest.py"}


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_the_checks_are_whole_when_the_right_answer_and_the_inputs_are(
    tmp_path: Path, library: str
) -> None:
    whole = course(tmp_path, PRELOAD[library])
    stage, _ = new_stage(whole, Wanted("nest", "Nest", functions=[SHIFT], bonus=True))
    edit(stage.solution_file, "raise NotImplementedError", "return x + n")
    edit(stage.check_file, "raise NotImplementedError", "return n + x")
    edit(stage.accepted_folder / "another.py", "raise NotImplementedError", "return n + x")
    stage.misconceptions_file.write_text(
        "from grader.misconceptions import misconception\n"
        '@misconception("minus", replaces="shift", says="You subtract.")\n'
        "def minus(x, n): return x - n\n",
        encoding="utf-8",
    )
    [proof] = verify(read_course(tmp_path / "course.toml"), [stage], seeds=(1,)).stages
    names = {check.id.removeprefix("nest.") for check in proof.checks}
    every = {"shape", "values", "smallest", "gradients", "dtype", "unchanged"}
    assert names == (every if library == "torch" else every - {"gradients", "dtype"})
    assert proof.accepted == ("another",)
    assert [*proof.problems] == ["tests/accepted/nest/: has 1 of 3 right answers: write 2 more"]
    assert [mistake.named for mistake in proof.misconceptions] == ["minus"]


def test_the_right_answer_takes_what_a_call_may_leave_out(tmp_path: Path) -> None:
    whole = course(tmp_path, PRELOAD["numpy"])
    stage, _ = new_stage(whole, Wanted("nest", "Nest", functions=['f(x: "B T", k=2)']))
    text = stage.check_file.read_text("utf-8")
    assert "def right_f(x: Any, k: Any = 2) -> Any:" in text
    assert "TODO: choose arguments of f whose sizes differ; try k too." in text


@pytest.mark.parametrize(
    "library, signature, answer, axes",
    [
        ("numpy", 'turn(x: "T T") -> "T T"', "x + x.T", "T=2, T_2=2"),
        (
            "torch",
            'turn(x: "B", T: int) -> "B T T"',
            "x[:, None, None].expand(-1, T, T)",
            "B=2, T=4, T_2=4",
        ),
    ],
)
def test_a_square_has_the_same_axis_twice(
    tmp_path: Path, library: str, signature: str, answer: str, axes: str
) -> None:
    whole = course(tmp_path, PRELOAD[library])
    stage, _ = new_stage(whole, Wanted("nest", "Nest", functions=[signature]))
    edit(stage.solution_file, "raise NotImplementedError", f"return {answer}")
    edit(stage.check_file, "raise NotImplementedError", f"return {answer}")
    assert f"expect_shape(result, {axes})\n" in stage.check_file.read_text("utf-8")
    (stage.accepted_folder / "another.py").unlink()
    [proof] = verify(read_course(tmp_path / "course.toml"), [stage], seeds=(1,)).stages
    assert [*proof.problems] == [
        "hints/misconceptions/nest.py: has no misconception: mark one with @misconception(...)",
        "tests/accepted/nest/: has 0 of 6 right answers: write 6 more",
    ]


@pytest.mark.slow
def test_a_module_is_checked_with_parameters_that_the_check_draws(tmp_path: Path) -> None:
    whole = course(tmp_path, '"torch"')
    signature = 'Egg(d_model)(x: "B T D") -> "B T D"'
    stage, _ = new_stage(whole, Wanted("nest", "Nest", classes=[signature], bonus=True))
    layer = "self.w = nn.Linear(d_model, d_model)"
    edit(stage.solution_file, "raise NotImplementedError", layer)
    edit(stage.solution_file, "raise NotImplementedError", "return self.w(x)")
    right = 'return x @ state["w.weight"].T + state["w.bias"]'
    edit(stage.check_file, "raise NotImplementedError", right)
    edit(stage.check_file, "= {}", '= {"w.weight": (4, 4), "w.bias": (4,)}')
    (stage.accepted_folder / "another.py").unlink()
    stage.misconceptions_file.write_text(
        "from torch import nn\nfrom grader.misconceptions import misconception\n"
        '@misconception("no_bias", replaces="Egg", says="You leave the bias out.")\n'
        "class NoBias(nn.Module):\n"
        "    def __init__(self, d_model):\n"
        "        super().__init__()\n"
        f"        {layer}\n"
        "    def forward(self, x): return x @ self.w.weight.T\n"
        '@misconception("fixed", replaces="Egg", says="You cut the weight off its gradient.")\n'
        "class Fixed(NoBias):\n"
        "    def forward(self, x): return x @ self.w.weight.data.T + self.w.bias\n",
        encoding="utf-8",
    )
    [proof] = verify(read_course(tmp_path / "course.toml"), [stage], seeds=(1,)).stages
    assert len(proof.checks) == 7
    assert [*proof.problems] == ["tests/accepted/nest/: has 0 of 3 right answers: write 3 more"]
    assert [mistake.named for mistake in proof.misconceptions] == ["no_bias", "fixed"]


@pytest.mark.parametrize("preload", [("numpy",), ()])
def test_a_right_float_may_be_rounded_in_another_way(preload: tuple[str, ...]) -> None:
    for kind, comparison in (("float", "expect_close"), ("int", "expect_equal")):
        entry = read_function(f"share(sizes: list[int], n: int) -> {kind}", bool(preload))
        written = check_file("share", [entry], style_of(preload))
        others = {"expect_close", "expect_equal"} - {comparison}
        assert f"{comparison}(submission.share" in written
        assert not [name for name in others if name in written]
