"""What a check holds in place of the learner's code, with local functions in a worker's place."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from grader.checking import CheckFailed, draw, expect_unchanged, is_watched
from grader.run.failures import (
    _MIXED_IN,
    AnswerError,
    LoadError,
    SubmissionError,
    WrongReturn,
    submission_error,
)
from grader.run.local_answers import LocalAnswers
from grader.run.remote import RemoteModule, RemoteSubmission
from grader.run.returned import checked
from grader.run.under_check import StageUnderCheck
from grader.run.value_words import described
from grader.run.worker.packing import TRAVELS, Handle, Iterated, Opaque, PlainObject
from grader.run.worker.wire import Frame
from grader.types.course import EntryPoint, Stage

TENSOR, ARRAY, NUMBER, ANY = (
    EntryPoint("f", (kind,)) for kind in ("tensor", "array", "number", "any")
)
PAIR = EntryPoint("f", ("tensor", "number"), is_tuple=True)
CLASS = EntryPoint("Layer", ("tensor",), is_class=True)


def stage_of(*entries: EntryPoint) -> Stage:
    return Stage("stage", "A stage", 10, False, (), entries, Path())


def under_check(entry: EntryPoint, find: Callable[[str], Any]) -> StageUnderCheck:
    stage = StageUnderCheck(stage_of(entry), LocalAnswers(find))
    stage.begin(seed=5)
    return stage


def submission(function: Callable[..., Any], entry: EntryPoint = TENSOR) -> RemoteSubmission:
    stage = under_check(entry, lambda name: function)
    stage.is_watched = is_watched
    return RemoteSubmission(stage)


def zeroes(*arguments: Any) -> Any:
    """Writes zeros into all that it is given, and gives the right answer to zeros."""
    for argument in arguments:
        argument[...] = 0
    return arguments[0] * 1


@pytest.mark.parametrize("make", [torch.ones, np.ones])
def test_what_a_check_gave_stays_as_it_was_for_what_it_compares_with(make: Any) -> None:
    given, other = make((2, 3)), make((2, 3))
    submission(zeroes, ANY).f(given, other)
    assert given.sum() == other.sum() == 6


@pytest.mark.parametrize("make", [torch.ones, np.ones])
def test_a_change_is_seen_where_the_check_looks_for_it_and_nowhere_else(make: Any) -> None:
    given, other = make((2, 3)), make((2, 3))
    with pytest.raises(CheckFailed, match="changes base in place"), expect_unchanged(base=given):
        submission(zeroes, ANY).f(given[:, 1:], other)
    assert (given.sum(), other.sum()) == (2, 6)
    submission(zeroes, ANY).f(given)
    assert given.sum() == 2


# --- what is given back ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry, value",
    [
        (TENSOR, torch.ones(2)),
        (ARRAY, np.ones(2)),
        (NUMBER, 3),
        (NUMBER, 2.5),
        (ANY, None),
        (ANY, {(1, "a"): [{b"x"}, PlainObject("Token", {"kind": None})]}),
        (PAIR, (torch.ones(2), 1)),
        (EntryPoint("f", ("tensor", "any"), is_tuple=True), (torch.ones(2), None)),
    ],
)
def test_what_is_of_its_type_is_handed_on(entry: EntryPoint, value: Any) -> None:
    assert checked(value, entry, "f(...)") is value


ONE_AND_ANY = EntryPoint("f", ("number", "any"), is_tuple=True)
EXPECTED = {
    TENSOR: "a torch.Tensor",
    ARRAY: "a numpy array",
    NUMBER: "a number",
    PAIR: "a tuple of 2: (tensor, number)",
    ANY: TRAVELS,
    ONE_AND_ANY: TRAVELS,
}
STAYS = "which cannot pass to the checks"
WRONG: dict[str, tuple[EntryPoint, Any, str]] = {
    "None": (TENSOR, None, "None: is a `return` missing?"),
    "a list": (TENSOR, [1, 2], "a list of 2"),
    "a number": (TENSOR, 2.5, "float 2.5"),
    "a text": (TENSOR, "x" * 99, f"str '{'x' * 56}..."),
    "an array": (TENSOR, np.zeros((2, 3)), "a numpy array of shape [2, 3]"),
    "a tuple": (TENSOR, (torch.ones(1),), "a tuple of 1"),
    "something opaque": (TENSOR, Opaque("torch.Tensor", "too large"), "a torch.Tensor (too large)"),
    "a module": (TENSOR, Handle(0, "Linear"), "a module of class Linear: call it with its input"),
    "an async def": (TENSOR, Opaque("coroutine"), "a coroutine: write `def` without `async`"),
    "a yield for a tuple": (
        PAIR,
        Iterated("generator", [1, 2]),
        "a generator of 2: write `return` in place of `yield`",
    ),
    "another iterator": (PAIR, Iterated("zip", []), "a zip of 0"),
    "an object": (TENSOR, PlainObject("Fold", {"size": 1}), "an object of class Fold"),
    "a tensor for an array": (ARRAY, torch.ones(2), "a torch.Tensor of shape [2]"),
    "True for a number": (NUMBER, True, "bool True"),
    "a tensor for a tuple": (PAIR, torch.ones(2), "a torch.Tensor of shape [2]"),
    "a list for a tuple": (PAIR, [torch.ones(2), 1], "a list of 2"),
    "too long a tuple": (PAIR, (1, 2, 3), "a tuple of 3"),
    "None for a tuple": (PAIR, None, "None: is a `return` missing?"),
    "nothing that can travel": (ANY, Opaque("object"), f"an object, {STAYS}"),
    "something in a tuple that cannot travel": (
        ONE_AND_ANY,
        (1, [PlainObject("Token", {"made": {Opaque("range"): 2}})]),
        f"a tuple of 2 that holds a range, {STAYS}",
    ),
}


@pytest.mark.parametrize("entry, value, returned", WRONG.values(), ids=WRONG)
def test_what_is_not_of_its_type_is_told_with_what_was_due(
    entry: EntryPoint, value: Any, returned: str
) -> None:
    with pytest.raises(WrongReturn) as caught:
        checked(value, entry, "f(...)")
    assert str(caught.value) == f"f(...) returned {returned}\n  expected  {EXPECTED[entry]}"


def test_a_wrong_second_value_is_told_with_what_was_due_in_its_place() -> None:
    with pytest.raises(WrongReturn) as caught:
        checked((torch.ones(2), None), PAIR, "f(...)")
    assert str(caught.value) == "f(...) returned None as value 2 of 2\n  expected  a number"

    with pytest.raises(WrongReturn, match=r"\n  in words  a tuple within a tuple: "):
        checked(((torch.ones(2), 1), None), PAIR, "f(...)")


def test_any_answer_of_plain_values_comes_back_as_it_was() -> None:
    right = {(1, "a"): [{b"x", 2j}, (None, frozenset({1.5}))]}
    echo = submission(lambda value: value, ANY)
    assert echo.f(right) == right


def test_an_answer_that_cannot_travel_is_refused_in_words() -> None:
    with pytest.raises(WrongReturn, match=r"^f\(...\) returned a dictionary of 1 that holds a fun"):
        submission(lambda: {"a": print_nothing}, ANY).f()


def print_nothing() -> None:
    """A function, which stays in its process."""


def test_names_from_the_worker_are_made_safe_to_show() -> None:
    for value in (Opaque("\x1b[31mx", "\x1b"), Handle(0, "\x1b"), "\x1b\u202e"):
        assert "\x1b" not in described(value) and "\u202e" not in described(value)
    for named in (Opaque("x\n"), Handle(0, "x\n"), PlainObject("x\n", {})):
        assert "\n" not in described(named)


class Pair(NamedTuple):
    one: Tensor
    other: int


def test_a_named_tuple_is_a_tuple() -> None:
    one, other = submission(lambda x: Pair(x, 2), PAIR).f(torch.ones(2))
    assert torch.equal(one, torch.ones(2)) and other == 2


def test_an_answer_of_a_wrong_type_is_told_through_the_whole_way() -> None:
    for value, words in ((None, "None"), ({1}, "set"), (torch.eye(2).to_sparse(), "sparse")):
        with pytest.raises(WrongReturn, match=words):
            submission(lambda value=value: value).f()


def test_an_answer_that_makes_no_sense_is_the_learners_fault_not_the_graders() -> None:
    class Hostile(LocalAnswers):
        def answer(self, request: Frame) -> Frame:
            return Frame({"value": {"pickle": ""}})

    stage = StageUnderCheck(stage_of(TENSOR), Hostile(lambda name: None))
    with pytest.raises(WrongReturn, match="makes no sense"):
        RemoteSubmission(stage).f()


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", _MIXED_IN, ids=lambda kind: kind.__name__)
def test_an_exception_is_the_builtin_one_too_and_reads_the_same(kind: type[Exception]) -> None:
    error = {"type": "Own", "bases": ["Own", kind.__name__, "Exception"], "message": "it's \x1b"}
    raised = submission_error(error)
    assert isinstance(raised, kind) and isinstance(raised, SubmissionError)
    assert str(raised) == "Own: it's \\x1b"
    assert not raised.not_written


@pytest.mark.parametrize(
    "error", [{}, {"bases": 5}, {"bases": [5, {}], "frames": 7, "message": []}, {"frames": [5, {}]}]
)
def test_an_error_of_any_form_can_be_told(error: dict[str, Any]) -> None:
    assert str(submission_error(error)).startswith("Exception")


def test_an_exception_of_the_learners_code_can_be_caught_by_its_type() -> None:
    def f() -> None:
        raise KeyError("it's missing")

    with pytest.raises(KeyError) as caught:
        submission(f).f()
    assert str(caught.value) == '''KeyError: "it's missing"'''


def test_the_frames_of_an_error_are_shown_and_sys_exit_is_explained() -> None:
    frame = {"file": "a.py", "line": 3, "function": "f", "text": "return q @ k"}
    error = submission_error({"type": "RuntimeError", "message": "sizes", "frames": [frame]})
    assert str(error) == "RuntimeError: sizes\n  a.py, line 3, in f\n    return q @ k"
    assert "sys.exit()" in str(submission_error({"type": "SystemExit", "message": "3"}))


def test_the_error_of_a_stub_marks_the_case_until_the_next_begins() -> None:
    stage = under_check(TENSOR, lambda name: None)
    error = stage.fail({"type": "NotImplementedError", "bases": [], "stub": True})
    assert isinstance(error, SubmissionError) and error.not_written and stage.case.not_written
    stage.begin(seed=1)
    assert not stage.case.not_written
    stage.fail({"type": "NotImplementedError", "bases": [], "stub": "yes"})
    assert not stage.case.not_written


# --- calls -----------------------------------------------------------------------------------


def test_a_name_that_is_no_entry_point_is_the_checks_own_mistake() -> None:
    remote = submission(lambda: 1)
    with pytest.raises(AttributeError, match="g is not an entry point of stage stage") as caught:
        _ = remote.g
    assert not isinstance(caught.value, AnswerError)


def test_an_entry_point_that_is_not_there_is_told_before_any_call() -> None:
    class Empty(LocalAnswers):
        def need(self, name: str) -> None:
            raise LoadError(f"{name} is missing")

    stage = StageUnderCheck(stage_of(TENSOR), Empty(lambda name: pytest.fail("called")))
    with pytest.raises(LoadError, match="f is missing"):
        RemoteSubmission(stage).f()
    assert stage.end() == ()


def named(**axes: int) -> Tensor:
    return draw(torch.Generator(), torch.device("cpu"), **axes)


CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "nothing": ((), {}, "f()"),
    "plain values": ((2, 0.5), {"bias": True, "mask": None}, "f(2, 0.5, bias=True, mask=None)"),
    "text": (("a",), {}, "f('a')"),
    "a tensor": ((torch.ones(2, 6),), {}, "f([2 x 6])"),
    "one axis": ((torch.ones(9),), {}, "f([9 numbers])"),
    "one number": ((torch.tensor(1.0),), {}, "f(1)"),
    "few numbers": ((torch.tensor([[1.5, -0.0]]),), {}, "f([[1.5, 0]])"),
    "few long numbers": ((torch.tensor([[1.2345678, 0.0]]),), {}, "f([1 x 2])"),
    "named axes": ((named(B=2, T=7),), {"k": named(D=9)}, "f([B=2, T=7], k=[D=9])"),
    "truths": ((torch.ones(2).bool(),), {}, "f([True, True])"),
    "many truths": ((torch.ones(2, 6).bool(),), {}, "f([2 x 6] bool)"),
    "another dtype": ((torch.ones(2).long(),), {}, "f([1, 1] int64)"),
    "an array": ((np.ones(2),), {}, "f([1, 1])"),
    "an array of another dtype": ((np.ones(2, "float32"),), {}, "f([1, 1] float32)"),
    "a list": (([1, 2], []), {}, "f([1, 2], [])"),
    "a long list": (
        (list(range(99)),),
        {},
        "f([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, ... 86 more])",
    ),
    "pairs": (({("b", 1): 2, (2,): ()},), {}, "f({('b', 1): 2, (2,): ()})"),
    "sets": (({"b", "a"},), {"of": frozenset({1})}, "f({'a', 'b'}, of=frozenset({1}))"),
    "tensors in a list": (([torch.ones(2, 6), None],), {}, "f([[2 x 6], None])"),
    "a long text": (("ab" * 50,), {}, f"f('{'ab' * 29}a...)"),
    "a long dictionary": (
        ({n: n for n in range(50)},),
        {},
        "f({0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, ... 43 more})",
    ),
}


@pytest.mark.parametrize("args, kwargs, text", CALLS.values(), ids=CALLS)
def test_the_last_call_reads_like_a_call(args: Any, kwargs: Any, text: str) -> None:
    stage = under_check(TENSOR, lambda name: lambda *args, **kwargs: torch.ones(1))
    RemoteSubmission(stage).f(*args, **kwargs)
    assert stage.case.last_call == text
    stage.begin(seed=1)
    assert stage.case.last_call == ""


def test_every_call_has_its_own_seed_and_a_case_can_be_repeated() -> None:
    stage = under_check(TENSOR, lambda name: lambda: torch.rand(3))
    remote = RemoteSubmission(stage)
    first, second = remote.f(), remote.f()
    assert not torch.equal(first, second)
    stage.begin(seed=6)
    again = remote.f()
    stage.begin(seed=6)
    assert torch.equal(remote.f(), again)
    assert not torch.equal(again, second)
    check_draws = torch.rand(3, generator=torch.Generator().manual_seed(6))
    assert not torch.equal(again, check_draws), "it must not tell what the check draws"


def test_what_passed_is_on_record_for_one_case() -> None:
    stage = under_check(TENSOR, lambda name: lambda x: x * 2)
    x = torch.ones(2, requires_grad=True)
    RemoteSubmission(stage).f(x).sum().backward()
    assert [exchange.request.header["op"] for exchange in stage.end()] == ["call", "backward"]
    stage.begin(seed=1)
    assert stage.end() == ()


# --- modules ---------------------------------------------------------------------------------


class Layer(nn.Module):
    """A small real module, with all that a remote one has to show."""

    def __init__(self, size: int = 3, dropout: float = 0.5) -> None:
        super().__init__()
        self.linear = nn.Linear(size, size)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("kept", torch.arange(2.0))
        self.register_buffer("passing", torch.ones(1), persistent=False)

    def forward(self, x: Tensor, scale: float = 1.0) -> Any:
        return self.dropout(self.linear(x)) * scale


class Made(NamedTuple):
    """A remote module, the real one behind it and their stage."""

    remote: RemoteModule
    real: Layer
    stage: StageUnderCheck


@pytest.fixture
def made() -> Made:
    kept: list[Layer] = []

    def make(*args: Any, **kwargs: Any) -> Layer:
        kept.append(Layer(*args, **kwargs))
        return kept[-1]

    stage = under_check(CLASS, lambda name: make)
    remote = RemoteSubmission(stage).Layer(3, dropout=0.5)
    assert isinstance(remote, RemoteModule)
    return Made(remote, kept[0], stage)


def test_a_class_whose_objects_are_no_modules_is_told() -> None:
    for value in (3, object()):
        with pytest.raises(WrongReturn, match=r"an nn\.Module: does it say `class Layer\(nn"):
            submission(lambda value=value: value, CLASS).Layer()
    with pytest.raises(WrongReturn, match=r"an nn\.Module: is a `return` missing\?"):
        submission(lambda: None, CLASS).Layer()
    function = replace(CLASS, name="fuse")
    with pytest.raises(WrongReturn, match=r"expected  an nn\.Module$"):
        submission(dict, function).fuse()


def test_calling_a_module_calls_its_forward(made: Made) -> None:
    made.remote.eval()
    x = torch.randn(2, 3)
    assert torch.equal(made.remote(x), made.real(x))
    assert torch.equal(made.remote(x, scale=2.0), made.real(x, scale=2.0))
    assert made.stage.case.last_call == "Layer(3, dropout=0.5)([2 x 3], scale=2.0)"


def test_a_repeated_call_of_a_module_is_not_seeded_again(made: Made) -> None:
    def forward(x: Tensor) -> Tensor:
        with torch.random.fork_rng(devices=[]):  # so the next call draws the same, as at home
            return x * torch.rand(())

    made.real.forward = forward
    x = torch.ones(1, 3)
    first, second, other = made.remote(x), made.remote(x), made.remote(x.clone())
    assert torch.equal(first, second) and not torch.equal(first, other)


def test_what_a_module_gives_back_is_looked_at_too(made: Made) -> None:
    made.real.forward = lambda x: None
    with pytest.raises(WrongReturn, match=r"Calling Layer\(\.\.\.\) returned None"):
        made.remote(torch.ones(1, 3))


def test_parameters_are_leaves_with_the_modules_names_and_values(made: Made) -> None:
    here, there = dict(made.remote.named_parameters()), dict(made.real.named_parameters())
    assert list(here) == list(there) == ["linear.weight", "linear.bias"]
    for name, parameter in here.items():
        assert parameter.is_leaf and parameter.requires_grad
        assert torch.equal(parameter, there[name])
    assert all(a is b for a, b in zip(made.remote.parameters(), here.values(), strict=True))


def test_gradients_reach_inputs_and_parameters(made: Made) -> None:
    made.remote.eval(), made.real.eval()
    x = torch.randn(2, 3, requires_grad=True)
    made.remote(x).square().sum().backward()
    expected = torch.autograd.grad(made.real(x).square().sum(), [x, *made.real.parameters()])
    for tensor, gradient in zip([x, *made.remote.parameters()], expected, strict=True):
        assert tensor.grad is not None and torch.allclose(tensor.grad, gradient)
    with torch.no_grad():
        assert not made.remote(x).requires_grad


def test_training_mode_is_switched_there_and_shown_here(made: Made) -> None:
    x = torch.ones(50, 3)
    assert made.remote.training
    assert bool((made.remote(x) == 0).any()), "dropout is active"
    assert made.remote.eval() is made.remote
    made.remote(x)  # which tells the other side first
    assert not made.remote.training and not made.real.training
    assert not bool((made.remote(x) == 0).any())
    assert made.remote.train() is made.remote
    made.remote(x)
    assert made.remote.training and made.real.training
    made.remote.train(False)
    made.remote(x)
    assert not made.remote.training and not made.real.training


def test_a_state_dict_makes_the_round_trip(made: Made) -> None:
    state = made.remote.state_dict()
    assert list(state) == list(made.real.state_dict())
    state["linear.weight"].fill_(7)
    assert not bool((made.real.linear.weight == 7).any()), "what came is a copy"
    made.remote.load_state_dict(state)
    assert bool((made.real.linear.weight == 7).all())
    assert bool((dict(made.remote.named_parameters())["linear.weight"] == 7).all())
    assert {n: t.tolist() for n, t in made.remote.state_dict().items()} == {
        n: t.tolist() for n, t in state.items()
    }


def test_loading_takes_parameters_of_another_module_as_they_are(made: Made) -> None:
    other = Layer()
    made.remote.load_state_dict({**dict(other.named_parameters()), "kept": other.kept})
    assert torch.equal(made.real.linear.weight, other.linear.weight)


def test_a_strict_load_refuses_what_does_not_fit(made: Made) -> None:
    with pytest.raises(RuntimeError, match="Missing key"):
        made.remote.load_state_dict({})
    with pytest.raises(RuntimeError, match="Unexpected key"):
        made.remote.load_state_dict({**made.remote.state_dict(), "more": torch.ones(1)})
    names = made.remote.load_state_dict({"kept": torch.zeros(2)}, strict=False)
    assert names == ["linear.weight", "linear.bias"]
    assert made.real.kept.tolist() == [0, 0]


def test_a_module_without_parameters_misses_all_of_a_state() -> None:
    empty = RemoteSubmission(under_check(CLASS, lambda name: nn.Identity)).Layer()
    assert empty.load_state_dict({"linear.weight": torch.ones(1)}, strict=False) == [
        "linear.weight"
    ]


def test_buffers_are_shown_whether_they_persist_or_not(made: Made) -> None:
    buffers = dict(made.remote.named_buffers())
    assert {name: buffer.tolist() for name, buffer in buffers.items()} == {
        "kept": [0, 1],
        "passing": [1],
    }


def test_a_cast_is_done_there_and_seen_here(made: Made) -> None:
    weight = dict(made.remote.named_parameters())["linear.weight"]
    made.remote.eval()
    made.remote(torch.ones(1, 3)).sum().backward()
    assert made.remote.to(torch.float64) is made.remote
    assert dict(made.remote.named_parameters())["linear.weight"] is weight, "the same leaf"
    assert weight.dtype == torch.float64 and weight.grad is None
    out = made.remote(torch.ones(1, 3, dtype=torch.float64))
    out.sum().backward()
    assert out.dtype == torch.float64
    assert weight.grad is not None and weight.grad.dtype == torch.float64
    made.remote.to(torch.device("cpu"))
    assert made.real.linear.weight.device.type == "cpu"


@pytest.mark.parametrize("name", ["cuda", "foo", "linear", "forward", "modules", "__dict__x"])
def test_nothing_else_of_a_module_is_there(made: Made, name: str) -> None:
    with pytest.raises(AttributeError):
        getattr(made.remote, name)


def test_a_module_may_be_an_argument() -> None:
    remote = RemoteSubmission(under_check_of(Layer=Layer, f=lambda layer: layer.linear.weight))
    module = remote.Layer(2)
    weight = remote.f(module)
    assert torch.equal(weight, dict(module.named_parameters())["linear.weight"])
    assert not isinstance(weight, nn.Parameter)


# --- what a check gives and what it looks into ------------------------------------------------

SOURCE = """
import torch

def double(x):
    return 2 * x

class Wide(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size + 1)

    def forward(self, x):
        return self.linear(x)
"""


def under_check_of(**functions: Callable[..., Any]) -> StageUnderCheck:
    """A stage of functions that give tensors, and of classes, which have capitals."""
    entries = [EntryPoint(name, ("tensor",), is_class=name.istitle()) for name in functions]
    stage = StageUnderCheck(stage_of(*entries), LocalAnswers(functions.__getitem__))
    stage.begin(seed=0)
    return stage


def test_a_function_is_given_to_the_learners() -> None:
    stage = under_check_of(apply=lambda function, x: function(x) + 1)
    remote = RemoteSubmission(stage)
    double = remote.given(SOURCE, "double")
    assert not stage.case.has_answered and stage.case.last_call == "", (
        "nothing is the learner's yet"
    )
    assert remote.apply(double, torch.ones(2)).tolist() == [3, 3]
    assert stage.case.last_call == "apply(double, [1, 1])"


def test_a_module_is_given_and_is_like_the_learners_own() -> None:
    stage = under_check_of(weight=lambda layer: layer.linear.weight)
    remote = RemoteSubmission(stage)
    wide = remote.given(SOURCE, "Wide", 3)
    own = dict(wide.named_parameters())
    assert {name: list(p.shape) for name, p in own.items()} == {
        "linear.weight": [4, 3],
        "linear.bias": [4],
    }
    wide.load_state_dict({name: torch.ones_like(p) for name, p in own.items()})
    wide(torch.ones(2, 3)).sum().backward()
    assert own["linear.bias"].grad.tolist() == [2, 2, 2, 2]
    assert stage.case.last_call == "" and stage.case.last_target == ""
    assert remote.weight(wide).tolist() == torch.ones(4, 3).tolist()
    assert stage.case.last_call == "weight(Wide(3))"


def test_every_source_has_a_namespace_of_its_own() -> None:
    remote = RemoteSubmission(under_check_of(apply=lambda function, x: function(x)))
    one = remote.given("n = 1\ndef f(x):\n    return x + n", "f")
    other = remote.given("n = 2\ndef f(x):\n    return x + n", "f")
    assert [remote.apply(f, torch.zeros(1)).item() for f in (one, other)] == [1, 2]


def test_a_function_that_makes_a_module_gives_one() -> None:
    stage = StageUnderCheck(
        stage_of(EntryPoint("wider", ("tensor",), is_class=True)),
        LocalAnswers({"wider": lambda layer: nn.Linear(layer.linear.in_features, 7)}.__getitem__),
    )
    stage.begin(seed=0)
    remote = RemoteSubmission(stage)
    wider = remote.wider(remote.given(SOURCE, "Wide", 3))
    assert wider(torch.ones(2, 3)).shape == (2, 7)
    assert stage.case.last_target == "wider.forward"


@pytest.mark.parametrize("source, name", [("1 +", "f"), ("f = 1", "g"), ("def f(): pass", "f(")])
def test_a_source_that_does_not_work_is_the_checks_own_mistake(source: str, name: str) -> None:
    with pytest.raises(RuntimeError, match="what the check has given does not work") as caught:
        RemoteSubmission(under_check_of()).given(source, name)
    assert not isinstance(caught.value, AnswerError)


def test_the_memory_of_the_calls_in_a_block_is_measured() -> None:
    def outer(x: Tensor) -> Tensor:
        return (x[:, None] * x).sum(1)  # 1000 x 1000 numbers on the way

    remote = RemoteSubmission(under_check_of(outer=outer, twice=lambda x: 2 * x))
    x = torch.ones(1000)
    with remote.measured() as usage:
        remote.twice(x)
        remote.outer(x)
        remote.twice(x)
    assert usage.peak == 4 * (1_000_000 + 1000)
    with remote.measured() as usage:
        remote.twice(x)
    assert usage.peak == 4000
    assert remote.outer(x).shape == (1000,) and usage.peak == 4000


def test_what_is_not_measured_is_asked_as_ever() -> None:
    stage = under_check_of(twice=lambda x: 2 * x)
    remote = RemoteSubmission(stage)
    with remote.measured():
        remote.twice(torch.ones(1))
    remote.twice(torch.ones(1))
    measured, asked, plain = (exchange.request.header for exchange in stage.end())
    assert measured["measured"] == asked["measured"] == 1 and "measured" not in plain


def test_what_a_block_still_holds_at_its_end_is_told() -> None:
    kept = []
    remote = RemoteSubmission(under_check_of(keep=lambda x: kept.append(x * 2) or x * 2))
    with remote.measured() as usage:
        remote.keep(torch.ones(1000))
        remote.keep(torch.ones(1000))
    assert (usage.peak, usage.held) == (12_000, 8000)


def test_the_shapes_that_a_module_holds_are_told() -> None:
    class Keeper(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            self.kept = {"x": [x.expand(5, 2)]}
            return x

    keeper = RemoteSubmission(under_check_of(Keeper=Keeper)).Keeper()
    remote = RemoteSubmission(keeper._stage)
    assert remote.held_by(keeper) == []
    keeper(torch.ones(2))
    assert remote.held_by(keeper) == [(5, 2)]


def test_a_lazy_parameter_is_there_after_the_first_call() -> None:
    class Lazy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.LazyLinear(3)
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(x) * self.scale

    lazy = RemoteSubmission(under_check_of(Lazy=Lazy)).Lazy()
    assert list(dict(lazy.named_parameters())) == list(lazy.state_dict()) == ["scale"]
    x = torch.ones(2, 5)
    lazy(x)
    own = dict(lazy.named_parameters())
    assert {name: list(p.shape) for name, p in own.items()} == {
        "scale": [],
        "linear.weight": [3, 5],
        "linear.bias": [3],
    }
    lazy(x).sum().backward()
    assert own["linear.bias"].grad.tolist() == [2, 2, 2]
    assert dict(lazy.named_parameters())["linear.bias"] is own["linear.bias"]


def test_a_lazy_parameter_takes_its_shape_from_a_state_too() -> None:
    lazy = RemoteSubmission(under_check_of(Lazylinear=lambda: nn.LazyLinear(2))).Lazylinear()
    lazy.load_state_dict({"weight": torch.ones(2, 3), "bias": torch.zeros(2)})
    assert lazy(torch.ones(1, 3)).tolist() == [[3, 3]]


HOSTILE = {
    "no names": [torch.ones(2)],
    "triples": [("a", torch.ones(2), 1)],
    "numbers": [("a", 1)],
    "a name that is none": [(1, torch.ones(2))],
    "text": "abc",
    "a number": 3,
    "None": None,
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_parameters_of_another_form_are_refused(value: Any) -> None:
    class Hostile(nn.Module):
        def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
            return value

    with pytest.raises(WrongReturn, match="named_parameters"):
        submission(Hostile, CLASS).Layer().named_parameters()
