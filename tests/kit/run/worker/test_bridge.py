"""Calls across the wire feel like calls: values, gradients, changes in place and errors.

The other side is a Bench in this process, behind a transport that turns every frame into bytes.
"""

import gc
import json
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from grader.run.worker.bench import Bench
from grader.run.worker.bridge import Caller, ChangedArgument
from grader.run.worker.packing import Handle
from grader.run.worker.wire import Frame, WireError


class Failed(Exception):
    """What the tests' caller raises from an error reply."""


def failed(error: dict[str, Any]) -> Exception:
    return Failed(f"{error.get('type')}: {error.get('message')}")


def as_bytes(frame: Frame) -> Frame:
    return Frame(json.loads(json.dumps(frame.header)), bytes(frame.data))


class Wire:
    """A bench and a caller with nothing but bytes between them; keeps what was sent."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.bench = Bench(lambda name: function)
        self.requests: list[Frame] = []
        self.caller = Caller(self._transport, failed)

    def _transport(self, frame: Frame) -> Frame:
        self.requests.append(frame)
        return as_bytes(self.bench.answer(as_bytes(frame)))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.caller.call({"function": "f"}, args, kwargs)


def there(function: Callable[..., Any]) -> Wire:
    return Wire(function)


def leaf(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def test_a_result_with_gradients_is_freed_when_nobody_holds_it() -> None:
    """torch's half of a cycle is hidden from Python's garbage collector, so there may be none."""
    wire, x = there(lambda x: (2 * x, x[0])), leaf(3, 2)
    twice, first = wire(x)
    (twice.sum() + first.sum()).backward()
    left = [weakref.ref(twice), weakref.ref(first), weakref.ref(twice.grad_fn)]
    del twice, first
    gc.collect()
    assert [each() for each in left] == [None, None, None]


# --- values ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args, kwargs",
    [
        ((), {}),
        ((1, "a"), {"b": [2.5, None]}),
        (({"k": (True, 1)},), {}),
        ((torch.float64, torch.device("cpu")), {}),
    ],
)
def test_arguments_arrive_as_they_were_given(args: Any, kwargs: Any) -> None:
    assert there(lambda *args, **kwargs: (args, kwargs))(*args, **kwargs) == (args, kwargs)


def test_a_result_of_tensors_keeps_its_form() -> None:
    wire = there(lambda x: {"twice": 2 * x, "parts": [x[0], (x[1], None)]})
    out = wire(torch.tensor([1.0, 2.0]))
    assert out["twice"].tolist() == [2, 4]
    assert out["parts"][0].item() == 1 and out["parts"][1][0].item() == 2
    assert out["parts"][1][1] is None


def test_query_is_key_there_when_it_is_here() -> None:
    wire = there(lambda q, k, v: [q is k, k is v, q is v])
    x, equal = torch.ones(2), torch.ones(2)
    assert wire(x, x, x) == [True, True, True]
    assert wire(x, x, equal) == [True, False, False]


def test_a_tensor_given_back_twice_is_one_tensor_here() -> None:
    one, other = there(lambda x: (2 * x,) * 2)(leaf(2))
    assert one is other


def test_arguments_keep_their_strides_there() -> None:
    wire = there(lambda x: (x.stride(), x.is_contiguous()))
    x = torch.zeros(2, 3, 4)
    assert wire(x.transpose(1, 2)) == ((12, 1, 4), False)
    assert wire(x[:, :1].expand(2, 3, 4)) == ((12, 0, 1), False)


def test_numpy_arrays_travel_both_ways() -> None:
    out = there(lambda a: a * 2)(np.arange(3))
    assert isinstance(out, np.ndarray) and out.tolist() == [0, 2, 4]


# --- gradients -------------------------------------------------------------------------------


def attend(q: Tensor, k: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT, -1)


def gradients(function: Callable[..., Any], *inputs: Tensor) -> tuple[Any, ...]:
    """The gradients of a fixed weighted sum of every output."""
    out = function(*inputs)
    outputs = [out] if isinstance(out, Tensor) else list(out)
    kept = [o for o in outputs if o.requires_grad]
    weights = [torch.arange(1.0, o.numel() + 1, dtype=o.dtype).reshape(o.shape) for o in kept]
    return torch.autograd.grad(kept, inputs, weights, allow_unused=True)


def two_outputs(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    weights = attend(q, k)
    return weights @ k, weights


def one_of_them_constant(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return q * 2, k.detach() + 1, (q > 0)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "one output": attend,
    "two outputs": two_outputs,
    "some constant outputs": one_of_them_constant,
    "a detached key": lambda q, k: attend(q, k.detach()),
    "an unused key": lambda q, k: q.exp(),
    "the input itself": lambda q, k: q,
    "both inputs themselves": lambda q, k: (k, q),
    "a view of the input": lambda q, k: q.mT,
    "an output twice": lambda q, k: (q * k, q * k.clone()),
    "through numpy-like detours": lambda q, k: torch.stack([row * 2 for row in q * k]),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_gradients_are_those_of_a_call_without_a_wire(function: Callable[..., Any]) -> None:
    inputs = leaf(3, 2), leaf(3, 2).detach().flip(0).requires_grad_()
    expected = gradients(function, *inputs)
    actual = gradients(there(function), *inputs)
    for mine, theirs in zip(actual, expected, strict=True):
        if theirs is None:
            assert mine is None
        else:
            assert torch.equal(mine, theirs)


def test_a_detached_result_cannot_be_differentiated() -> None:
    out = there(lambda x: (x * 2).detach())(leaf(2))
    assert not out.requires_grad and out.grad_fn is None


def test_gradients_flow_on_to_what_the_inputs_were_made_of() -> None:
    x = leaf(2, 3)
    there(attend)(x * 2, x.exp()).square().sum().backward()
    y = x.detach().requires_grad_()
    (expected,) = torch.autograd.grad(attend(y * 2, y.exp()).square().sum(), y)
    assert x.grad is not None and torch.allclose(x.grad, expected)


def test_a_tensor_given_twice_gets_the_gradients_of_both() -> None:
    x = leaf(2, 3)
    (actual,) = gradients(lambda x: there(attend)(x, x), x)
    (expected,) = gradients(lambda x: attend(x, x), x)
    assert torch.allclose(actual, expected)


def test_only_the_outputs_that_were_used_are_asked_for() -> None:
    wire = there(two_outputs)
    q, k = leaf(2, 3), leaf(4, 3)
    _, weights = wire(q, k)
    weights[0].sum().backward()
    gradients_sent = wire.requests[-1].header["gradients"]
    assert len(gradients_sent["list"]) == 1


def test_nothing_is_asked_where_no_gradient_is_wanted() -> None:
    wire = there(lambda x: x * 2)
    assert not wire(torch.ones(2)).requires_grad
    x = leaf(2)
    with torch.no_grad():
        out = wire(x)
    assert not out.requires_grad
    assert [request.header["op"] for request in wire.requests] == ["call", "call"]


@pytest.mark.parametrize("on", [True, False])
def test_gradients_are_on_there_when_they_are_here(on: bool) -> None:
    wire = there(lambda x: torch.is_grad_enabled())
    with torch.set_grad_enabled(on):
        assert wire(leaf(2)) is on
        assert wire(torch.ones(2)) is on


def test_a_result_without_tensors_is_fine_where_an_input_wants_gradients() -> None:
    x = leaf(2)
    assert there(lambda x: None)(x) is None
    assert there(lambda x: [1, "a"])(x) == [1, "a"]


def test_a_second_backward_gives_the_same_again() -> None:
    x = leaf(3, 2)
    out = there(lambda x: x.exp().sum(0))(x)
    (first,) = torch.autograd.grad(out.sum(), x, retain_graph=True)
    (second,) = torch.autograd.grad(out.sum(), x)
    assert torch.equal(first, x.exp()) and torch.equal(second, first)


def test_each_of_several_calls_keeps_its_own_gradients() -> None:
    wire = there(lambda x, n: x * n)
    x = leaf(2)
    first, second = wire(x, 3), wire(x, 5)
    assert torch.autograd.grad(second.sum(), x)[0].tolist() == [5, 5]
    assert torch.autograd.grad(first.sum(), x)[0].tolist() == [3, 3]


def test_a_gradient_of_a_gradient_is_refused_not_made_up() -> None:
    x = leaf(2)
    out = there(lambda x: x**3)(x)
    (gradient,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.autograd.grad(gradient.sum(), x)


def test_half_precision_and_int_outputs_do_not_disturb_gradients() -> None:
    wire = there(lambda x: (x.argmax(-1), x.bfloat16(), x * 2))
    x = torch.ones(2, 3, requires_grad=True)
    index, half, out = wire(x)
    assert not index.requires_grad and half.requires_grad
    (out.sum() + half.float().sum()).backward()
    assert x.grad is not None and bool((x.grad == 3).all())


def test_parameters_of_a_module_there_take_their_gradients_here() -> None:
    torch.manual_seed(0)
    module = nn.Linear(3, 2)
    wire = there(lambda: module)
    handle = wire()
    assert isinstance(handle, Handle)
    mine = {name: p.detach().clone().requires_grad_() for name, p in module.named_parameters()}
    x = torch.randn(4, 3, requires_grad=True)
    out = wire.caller.call({"object": handle.id}, (x,), {}, parameters=mine)
    out.square().sum().backward()
    expected = torch.autograd.grad(module(x).square().sum(), [*module.parameters(), x])
    for tensor, gradient in zip([*mine.values(), x], expected, strict=True):
        assert tensor.grad is not None and torch.allclose(tensor.grad, gradient)
    assert all(p.grad is None for p in module.parameters())


def test_a_parameter_that_the_result_does_not_depend_on_has_no_gradient() -> None:
    module = nn.Linear(3, 2)
    wire = there(lambda: module)
    handle = wire()
    mine = {name: p.detach().clone().requires_grad_() for name, p in module.named_parameters()}
    out = wire.caller.call(
        {"object": handle.id, "method": "extra_repr"}, (), {}, parameters={**mine}
    )
    assert isinstance(out, str)
    gone = {"gone": torch.ones(2, requires_grad=True)}
    out = wire.caller.call({"object": handle.id}, (torch.ones(1, 3),), {}, parameters=mine | gone)
    found = torch.autograd.grad(out.sum(), [*mine.values(), *gone.values()], allow_unused=True)
    assert found[0] is not None and found[1] is not None and found[2] is None


# --- changes in place ------------------------------------------------------------------------


def add_one(x: Any) -> int:
    x += 1
    return 0


IN_PLACE = {
    "plain": torch.zeros(2, 3),
    "transposed": torch.zeros(2, 3).T,
    "every other": torch.zeros(2, 6)[:, ::2],
    "one number": torch.zeros(()),
    "ints": torch.zeros(3, dtype=torch.int64),
    "numpy": np.zeros((2, 3)),
    "numpy transposed": np.zeros((2, 3)).T,
}


@pytest.mark.parametrize("x", IN_PLACE.values(), ids=IN_PLACE)
def test_an_argument_changed_there_is_changed_here(x: Any) -> None:
    there(add_one)(x)
    assert (x == 1).all()


def test_an_expanded_argument_changed_there_is_changed_here() -> None:
    def fill(x: Tensor) -> None:
        x[0].fill_(7)

    row = torch.zeros(1, 3)
    there(fill)(row.expand(4, 3))
    assert row.tolist() == [[7, 7, 7]]


def test_only_what_was_changed_comes_back() -> None:
    def change(x: Tensor, y: Tensor) -> None:
        y[1] = 5

    wire = there(change)
    x, y = torch.zeros(2), torch.zeros(2)
    reply = wire.bench.answer
    sizes: list[int] = []

    def counted(frame: Frame) -> Frame:
        answer = reply(frame)
        sizes.append(len(answer.header["arrays"]))
        return answer

    Caller(counted, failed).call({"function": "f"}, (x, y), {})
    assert sizes == [1] and x.tolist() == [0, 0] and y.tolist() == [0, 5]


def test_nan_arguments_are_not_taken_for_changed() -> None:
    answer = there(lambda x: None)
    x = torch.tensor([float("nan")])
    answer(x)
    changed = answer.bench.answer(as_bytes(answer.requests[0])).header["changed"]
    assert changed == {"list": []}


def test_a_leaf_changed_behind_autograds_back_is_refused_and_stays_as_it_is_here() -> None:
    def change(x: Tensor) -> Tensor:
        x.data.mul_(3)
        return x * 2

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(WireError, match="takes gradients"):
        there(change)(x)
    assert x.tolist() == [1, 1]


def test_an_argument_that_is_changed_and_given_back_is_both() -> None:
    x = torch.zeros(2)
    out = there(lambda x: x.add_(1))(x)
    assert x.tolist() == [1, 1] and out.tolist() == [1, 1]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.unsqueeze_(0),
        lambda x: x.t_(),
        lambda x: x.resize_(1),
        lambda x: setattr(x, "data", x.double()),
    ],
)
def test_an_argument_of_another_shape_or_dtype_is_refused(change: Any) -> None:
    def changes(x: Tensor) -> None:
        change(x)

    with pytest.raises(ChangedArgument, match=r"in place.*\n.*\[2, 3\] torch.float32, as it was"):
        there(changes)(torch.ones(2, 3))


# --- errors ----------------------------------------------------------------------------------


def test_an_error_there_is_the_callers_own_error_here() -> None:
    def fails(x: Tensor) -> None:
        raise ValueError("d does not divide")

    for x in (torch.ones(1), leaf(1)):
        with pytest.raises(Failed, match=r"^ValueError: d does not divide$"):
            there(fails)(x)


def test_an_error_in_the_backward_pass_is_the_callers_own_error_here() -> None:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            raise KeyError("no gradient")

    out = there(lambda x: Broken.apply(x))(leaf(2))
    with pytest.raises(Failed, match="KeyError: 'no gradient'"):
        out.sum().backward()


ARRAY = {"dtype": "float64", "shape": [2], "device": "cpu", "grad": True}
DATA = bytes(16)
HOSTILE: dict[str, Frame] = {
    "changes that are no list": Frame({"changed": 5}),
    "a change that is no pair": Frame({"changed": {"list": [1]}}),
    "a change of three": Frame({"changed": {"list": [{"tuple": [0, 1, 2]}]}}),
    "a change of an argument that is none": Frame({"changed": {"list": [{"tuple": [9, None]}]}}),
    "a change of argument true": Frame({"changed": {"list": [{"tuple": [True, None]}]}}),
    "a change to None": Frame({"changed": {"list": [{"tuple": [0, None]}]}}),
    "a change to text": Frame({"changed": {"list": [{"tuple": [0, "x"]}]}}),
    "a change to something that stayed": Frame(
        {"changed": {"list": [{"tuple": [0, {"opaque": "x"}]}]}}
    ),
    "a change to a numpy array": Frame(
        {"changed": {"list": [{"tuple": [0, {"ndarray": 0}]}]}, "arrays": [ARRAY]}, DATA
    ),
    "a change of dtype": Frame(
        {
            "changed": {"list": [{"tuple": [0, {"tensor": 0}]}]},
            "arrays": [ARRAY | {"dtype": "int64"}],
        },
        DATA,
    ),
    "arrays that do not fit": Frame({"value": {"tensor": 0}, "arrays": [ARRAY]}, b""),
    "a value of no kind": Frame({"value": {"code": "1 + 1"}}),
}


@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("grad", [False, True])
def test_a_hostile_reply_is_a_wire_error_and_changes_nothing(reply: Frame, grad: bool) -> None:
    x = torch.ones(2, dtype=torch.float64, requires_grad=grad)
    with pytest.raises(WireError):
        Caller(lambda frame: reply, failed).call({"function": "f"}, (x,), {})
    assert x.tolist() == [1, 1]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("error", ["text", 5, [], {}, {"bases": 3}])
def test_a_hostile_error_is_still_an_error(error: Any, grad: bool) -> None:
    x = torch.ones(2, requires_grad=grad)
    with pytest.raises(Failed):
        Caller(lambda frame: Frame({"error": error}), failed).call({"function": "f"}, (x,), {})


def test_an_empty_reply_is_the_value_none() -> None:
    for x in (torch.ones(2), leaf(2)):
        assert Caller(lambda frame: Frame({}), failed).call({"function": "f"}, (x,), {}) is None


HOSTILE_GRADIENTS: dict[str, Frame] = {
    "none at all": Frame({}),
    "no list": Frame({"value": {"tensor": 0}, "arrays": [ARRAY]}, DATA),
    "too few": Frame({"value": {"list": []}}),
    "too many": Frame({"value": {"list": [None, None]}}),
    "text": Frame({"value": {"list": ["x"]}}),
    "another shape": Frame(
        {"value": {"list": [{"tensor": 0}]}, "arrays": [ARRAY | {"shape": [2, 1]}]}, DATA
    ),
    "a numpy array": Frame({"value": {"list": [{"ndarray": 0}]}, "arrays": [ARRAY]}, DATA),
}


@pytest.mark.parametrize("reply", HOSTILE_GRADIENTS.values(), ids=HOSTILE_GRADIENTS)
def test_hostile_gradients_are_a_wire_error(reply: Frame) -> None:
    value = Frame({"value": {"tensor": 0}, "arrays": [ARRAY], "call": 0}, DATA)
    replies = iter([value, reply])
    x = leaf(2)
    out = Caller(lambda frame: next(replies), failed).call({"function": "f"}, (x,), {})
    with pytest.raises(WireError):
        out.sum().backward()
    assert x.grad is None


def test_a_gradient_claimed_for_ints_is_not_believed() -> None:
    reply = Frame({"value": {"tensor": 0}, "arrays": [ARRAY | {"dtype": "int64"}], "call": 0}, DATA)
    out = Caller(lambda frame: reply, failed).call({"function": "f"}, (leaf(2),), {})
    assert out.dtype == torch.int64 and not out.requires_grad


def test_an_object_of_the_other_side_goes_back_as_itself() -> None:
    module = nn.Identity()
    bench = Bench({"make": lambda: module, "same": lambda m: m is module}.__getitem__)
    caller = Caller(
        lambda frame: as_bytes(bench.answer(as_bytes(frame))),
        failed,
        handle_of=lambda value: value if isinstance(value, Handle) else None,
    )
    handle = caller.call({"function": "make"}, (), {})
    assert handle == Handle(0, "Identity")
    assert caller.call({"function": "make"}, (), {}) == handle, "one object, one handle"
    assert caller.call({"function": "same"}, (handle,), {}) is True


def test_an_argument_that_cannot_travel_is_refused_and_no_call_is_made() -> None:
    wire = there(lambda *args: pytest.fail("called"))
    with pytest.raises(TypeError, match="object cannot pass to another process as an argument"):
        wire([1, {"a": object()}])
    with pytest.raises(TypeError, match=r"^list \(more than 10,000 entries\) cannot"):
        wire(values=[0] * 10_001)
