"""Values: what travels comes back as it was, and nothing hostile gets through."""

from __future__ import annotations

import json
import math
import sys
from collections import OrderedDict, UserDict, deque, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from grader.run.worker import packing
from grader.run.worker.packing import Handle, Opaque, Packer, PlainObject, Unpacker
from grader.run.worker.wire import Frame, WireError

Pair = namedtuple("Pair", ["one", "other"])


@dataclass(frozen=True)
class Token:
    kind: str
    span: tuple[int, ...]


class Node:
    def __init__(self, below: list[Node]) -> None:
        self.below = below


class Odd(Exception):
    def __init__(self) -> None:
        self.place = 3


class Word(str):
    kind: str


class Count(int):
    unit: str


class Row(deque[int]):
    name: str


def named(value: Any, **attributes: Any) -> Any:
    """The value with these attributes."""
    vars(value).update(attributes)
    return value


class Called:
    def __init__(self) -> None:
        self.count = 3

    def __call__(self) -> None: ...


class Shaped:
    def __init__(self) -> None:
        self.shape = (2, 3)


class Color(Enum):
    RED = 1


def there(value: Any, **how: Any) -> Any:
    """`value` after a journey: packed, as bytes, and unpacked."""
    packer = Packer()
    frame = packer.frame({"value": packer.pack(value)})
    header = json.loads(json.dumps(frame.header))
    return Unpacker(Frame(header, frame.data), **how).unpack(header["value"])


# --- values ----------------------------------------------------------------------------------

PLAIN = {
    "none": None,
    "true": True,
    "zero": 0,
    "negative": -7,
    "large int": 1 << 1000,
    "float": 0.1,
    "minus zero": -0.0,
    "infinity": -math.inf,
    "empty text": "",
    "text": 'quotes " and \n newlines, ü, \U0001f600',
    "half a surrogate": "\ud800",
    "empty list": [],
    "empty tuple": (),
    "nested": [1, (2.0, [None, {"a": (True, "x")}]), {}],
    "keys": {"a": 1, 2: "b", None: 3, 2.5: 4, b"c": 5, 2j: 6},
    "keys that are tuples": {(1, 2): 3, (1, ("a", None)): 4, (): 5},
    "many keys that are no text": {(n % 100, n): n for n in range(10_000)},
    "keys of a few equal hashes": {
        (a, b, c): 0 for a in (-1, -2) for b in (-1, -2) for c in (-1, -2)
    },
    "set": {1, "a", 2.5, None, (1, 2), frozenset({3})},
    "frozenset": frozenset({frozenset(), frozenset({frozenset({1})})}),
    "empty set": set(),
    "bytes": bytes(range(256)),
    "complex": 1.5 - 2j,
    "an infinite complex number": complex(math.inf, -0.0),
    "dtype": torch.bfloat16,
    "device": torch.device("cpu"),
}


@pytest.mark.parametrize("value", PLAIN.values(), ids=PLAIN)
def test_a_plain_value_comes_back_equal_and_of_its_type(value: Any) -> None:
    back = there(value)
    assert back == value and type(back) is type(value)


def test_nan_stays_nan_and_minus_zero_keeps_its_sign() -> None:
    assert math.isnan(there(math.nan))
    assert math.copysign(1, there(-0.0)) == -1


@pytest.mark.parametrize(
    "value, back",
    [
        (Pair(1, 2), (1, 2)),
        (torch.Size([2, 3]), (2, 3)),
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.int8(-3), -3),
        (np.bool_(True), True),
        (np.str_("text"), "text"),
        (np.bytes_(b"x"), b"x"),
        (np.complex64(1 + 2j), 1 + 2j),
        (np.complex128(1j), 1j),
        (Token("word", (1, 2)), PlainObject("Token", {"kind": "word", "span": (1, 2)})),
        (Node([Node([])]), PlainObject("Node", {"below": [PlainObject("Node", {"below": []})]})),
        (PlainObject("A", {"b": 1}), PlainObject("A", {"b": 1})),
        ({Token("a", ()): 1}, {Token("a", ()): 1}),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (UserDict({"a": 1}), {"a": 1}),
        ((number for number in range(3)), [0, 1, 2]),
        (zip("ab", (1, 2), strict=True), [("a", 1), ("b", 2)]),
        ({(1, torch.ones(1)): 3}, {Opaque("tuple"): 3}),
    ],
)
def test_a_relative_of_a_plain_value_comes_back_as_the_plain_one(value: Any, back: Any) -> None:
    assert there(value) == back


def test_an_iterator_comes_back_with_the_name_of_its_kind() -> None:
    assert there(number for number in range(3)).type_name == "generator"


def test_a_dictionary_keeps_its_order() -> None:
    assert list(there({"z": 1, "a": 2, "m": 3})) == ["z", "a", "m"]


@pytest.mark.parametrize(
    "other",
    [
        named(torch.ones(2), axes=("T",)),
        named(np.ones(2).view(type("Tensor", (np.ndarray,), {})), axes=("T",)),
        named(type("Tensor", (str,), {})("a"), axes=("T",)),
        named(type("Tensor", (list,), {})([1]), axes=("T",)),
    ],
    ids=["tensor", "array", "text", "list"],
)
def test_an_object_equals_nothing_that_holds_more_than_its_attributes(other: Any) -> None:
    made_up = there(named(type("Tensor", (), {})(), axes=("T",)))
    assert made_up == PlainObject("Tensor", {"axes": ("T",)})
    assert (made_up == other, made_up != other) == (False, True)


def test_an_object_differs_from_just_what_it_does_not_equal() -> None:
    word = Token("word", (1, 2))
    assert (there(word) == word, there(word) != word) == (True, False)
    other = PlainObject("Other", vars(word))
    assert (there(word) == other, there(word) != other) == (False, True)


def opaque(type_name: str, why: str = "") -> Opaque:
    return Opaque(type_name, why)


OPAQUE: dict[str, tuple[Any, Opaque]] = {
    "an object": (object(), opaque("object")),
    "a function": (there, opaque("function")),
    "an exception with an attribute": (Odd(), opaque(f"{__name__}.Odd")),
    "an object that may be called": (Called(), opaque(f"{__name__}.Called")),
    "an object that looks like an array": (Shaped(), opaque(f"{__name__}.Shaped")),
    "a text with an attribute": (named(Word("a"), kind="x"), opaque(f"{__name__}.Word")),
    "a number with an attribute": (named(Count(3), unit="m"), opaque(f"{__name__}.Count")),
    "a queue with an attribute": (named(Row([1]), name="r"), opaque(f"{__name__}.Row")),
    "one of several constants": (Color.RED, opaque(f"{__name__}.Color")),
    "too long a list": ([0] * 10_001, opaque("list", "more than 10,000 entries")),
    "too many keys": (dict.fromkeys(range(10_001)), opaque("dict", "more than 10,000 entries")),
    "too many bytes": (bytes(20_001), opaque("bytes", "too long")),
    "a class": (Packer, opaque("type")),
    "a number wider than Python's": (np.longdouble(1), opaque("numpy.longdouble")),
    "too large an int": (1 << 1024, opaque("int", "too large")),
    "too long a text": ("x" * 20_001, opaque("str", "too long")),
    "an opaque thing": (Opaque("Thing", "why"), opaque("Thing", "why")),
    "a sparse tensor": (
        torch.eye(2).to_sparse(),
        opaque("torch.Tensor", "layout torch.sparse_coo, device cpu"),
    ),
    "a tensor without data": (
        torch.empty(2, device="meta"),
        opaque("torch.Tensor", "layout torch.strided, device meta"),
    ),
    "a tensor of a rare dtype": (
        torch.zeros(2, dtype=torch.float8_e4m3fn),
        opaque("torch.Tensor", "dtype torch.float8_e4m3fn"),
    ),
    "an array of objects": (np.array([None]), opaque("numpy.ndarray", "dtype object")),
    "an array of texts": (np.array(["a"]), opaque("numpy.ndarray", "dtype <U1")),
    "an array of the other byte order": (np.zeros(2, ">f4"), opaque("numpy.ndarray", "dtype >f4")),
}


@pytest.mark.parametrize("value, back", OPAQUE.values(), ids=OPAQUE)
def test_what_cannot_travel_arrives_by_its_name(value: Any, back: Opaque) -> None:
    assert there(value) == back
    assert there([value, 1]) == [back, 1]


def nest(depth: int) -> Any:
    value: Any = "bottom"
    for _ in range(depth):
        value = [value]
    return value


def test_what_is_nested_too_deeply_is_cut_off_at_the_bottom() -> None:
    assert there(nest(17)) == nest(17)
    text = str(there(nest(18)))
    assert "bottom" not in text and "nested too deeply" in text
    loop: list[Any] = []
    loop.append(loop)
    assert "nested too deeply" in str(there(loop))


def test_no_container_is_read_without_end() -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 0

    assert there(endless()) == Opaque("generator", "more than 10,000 entries")


def test_arrays_larger_than_a_frame_stay_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "ARRAYS_CAP", 64)
    small, large = torch.zeros(8), torch.zeros(17)
    assert there(large) == Opaque("torch.Tensor", "shape [17] is too large")
    assert there(large.numpy()) == Opaque("numpy.ndarray", "shape [17] is too large")
    first, second, third = there([small, small.clone(), small.clone()])
    assert isinstance(first, Tensor) and isinstance(second, Tensor)
    assert isinstance(third, Opaque), "together they are too large"


def test_an_array_counts_each_time_that_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "ARRAYS_CAP", 16)
    four = torch.ones(1)
    *first, last = there([four] * 5)
    assert last == Opaque("torch.Tensor", "shape [1] is too large") and torch.equal(first[3], four)
    header = {"arrays": [{"dtype": "float32", "shape": [1]}]}
    with pytest.raises(WireError, match="named too often"):
        Unpacker(Frame(header, bytes(4))).unpack({"list": [{"tensor": 0}] * 17})


class Liar(Tensor):
    shape = property(lambda self: torch.Size([2, 3]))
    numel = lambda self: 0  # noqa: E731


class LyingArray(np.ndarray[Any, Any]):
    shape = property(lambda self: (2, 3))


def test_an_array_that_lies_about_its_size_is_named() -> None:
    why = "it does not hold the numbers of its shape [2, 3]"
    assert there(torch.ones(9).as_subclass(Liar)) == Opaque("torch.Tensor", why)
    assert there(np.ones(9).view(LyingArray)) == Opaque("numpy.ndarray", why)


# --- tensors and arrays ----------------------------------------------------------------------

DTYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64),
    torch.complex128,
)


def bits(tensor: Tensor) -> bytes:
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return plain.reshape(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0, 3), (2, 3), (1, 2, 3, 4)], ids=str)
def test_a_tensor_keeps_dtype_shape_and_every_bit(
    dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    tensor = torch.randn(shape).mul(3).to(dtype)
    back = there(tensor)
    assert back.dtype == dtype and back.shape == tensor.shape
    assert bits(back) == bits(tensor)


def test_values_that_are_no_numbers_keep_their_places() -> None:
    tensor = torch.tensor([math.nan, math.inf, -math.inf, -0.0, 1e-45])
    assert bits(there(tensor)) == bits(tensor)


def base() -> Tensor:
    return torch.arange(24.0).reshape(2, 3, 4)


VIEWS = {
    "plain": base(),
    "transposed": base().transpose(1, 2),
    "permuted": base().permute(2, 0, 1),
    "every other": base()[:, :, ::2],
    "a column": base()[:, :, 1],
    "expanded": torch.arange(3.0).expand(4, 3),
    "expanded inside": torch.arange(6.0).reshape(2, 1, 3).expand(2, 5, 3),
    "expanded and transposed": torch.arange(6.0).reshape(2, 1, 3).expand(2, 5, 3).mT,
    "one number expanded": torch.tensor(2.0).expand(3, 4),
    "windows": torch.arange(6.0).unfold(0, 3, 1),
    "channels last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "conjugated": torch.tensor([[1 + 2j, 3 - 1j]]).conj(),
    "imaginary part": torch.tensor([1 + 2j, 3 - 1j]).conj().imag,
}


@pytest.mark.parametrize("tensor", VIEWS.values(), ids=VIEWS)
def test_a_view_keeps_its_values_and_when_asked_its_strides(tensor: Tensor) -> None:
    assert torch.equal(there(tensor), tensor)
    back = there(tensor, strided=True)
    assert torch.equal(back, tensor)
    assert back.stride() == tensor.stride()
    assert back.is_contiguous() == tensor.is_contiguous()


def test_one_element_may_have_any_stride() -> None:
    for tensor in (torch.arange(6.0)[::2][1:2], torch.arange(6.0).reshape(3, 2)[1:2, 1:]):
        assert tensor.stride() != torch.empty(tensor.shape).stride()
        assert torch.equal(there(tensor), tensor)
        assert torch.equal(there(tensor, strided=True), tensor)


def test_an_expanded_axis_is_one_piece_of_memory_there_too() -> None:
    back = there(torch.zeros(1, 3).expand(4, 3), strided=True)
    back[0].fill_(7)
    assert bool((back == 7).all())


def test_strides_from_the_worker_are_not_followed() -> None:
    frame = Frame(
        {"arrays": [{"dtype": "float32", "shape": [2], "stride": [1 << 60], "device": "cpu"}]},
        b"\0" * 8,
    )
    assert Unpacker(frame).unpack({"tensor": 0}).stride() == (1,)


def test_a_leaf_is_a_leaf_again_only_when_asked() -> None:
    leaf = torch.ones(2, requires_grad=True)
    assert not there(leaf).requires_grad
    inner = there(leaf * 2, leaves=True)
    assert inner.requires_grad and inner.is_leaf
    assert not there(torch.ones(2), leaves=True).requires_grad
    assert type(there(torch.nn.Parameter(torch.ones(2)))) is Tensor


def test_the_same_tensor_is_the_same_there() -> None:
    x, equal = torch.ones(2), torch.ones(2)
    one, other, third, mapping = there((x, x, equal, {"x": x}))
    assert one is other and mapping["x"] is one
    assert third is not one
    array = np.ones(2)
    first, again = there([array, array])
    assert first is again


def test_what_arrives_can_be_written_to() -> None:
    x = torch.ones(2)
    there(x).add_(1)
    array = np.ones(2)
    there(array)[0] = 5
    assert x.tolist() == [1, 1] and array.tolist() == [1, 1]


@pytest.mark.parametrize(
    "array",
    [
        np.array(3.0),
        np.zeros((0, 3), np.int16),
        np.array([True, False]),
        np.arange(6, dtype=np.float16).reshape(2, 3).T,
        np.arange(5)[::-1],
        np.array([1 + 2j], np.complex64),
        np.array([7], np.uint64),
    ],
    ids=lambda array: f"{array.dtype}{list(array.shape)}",
)
def test_a_numpy_array_comes_back_as_one(array: np.ndarray[Any, Any]) -> None:
    back = there(array)
    assert isinstance(back, np.ndarray)
    assert back.dtype == array.dtype and back.shape == array.shape
    assert np.array_equal(back, array)


def test_an_object_that_stays_behind_is_a_handle_there() -> None:
    thing = object()
    packer = Packer(lambda value: Handle(3, "Thing") if value is thing else None)
    frame = packer.frame({})
    data = packer.pack([thing, 1])
    assert Unpacker(frame).unpack(data) == [Handle(3, "Thing"), 1]
    assert Unpacker(frame, handle=lambda id, kind: (id, kind)).unpack(data) == [(3, "Thing"), 1]


# --- hostile values --------------------------------------------------------------------------


def entry(**changes: Any) -> dict[str, Any]:
    return {"dtype": "float32", "shape": [2], "stride": [1], "device": "cpu"} | changes


HOSTILE_ARRAYS: dict[str, tuple[Any, bytes]] = {
    "not a list": ({}, b""),
    "an entry that is not an object": ([5], b""),
    "more bytes than arrays": ([entry()], b"\0" * 9),
    "fewer bytes than arrays": ([entry()], b"\0" * 7),
    "two arrays on the same bytes": ([entry(), entry()], b"\0" * 8),
    "bytes and no array": ([], b"\0"),
    "no shape": ([{"dtype": "float32"}], b""),
    "a shape that is a number": ([entry(shape=2)], b"\0" * 8),
    "a negative size": ([entry(shape=[-2])], b"\0" * 8),
    "two negative sizes": ([entry(shape=[-1, -2])], b"\0" * 8),
    "a huge size": ([entry(shape=[1 << 40])], b"\0" * 8),
    "a size beyond 64 bits": ([entry(shape=[1 << 70])], b"\0" * 8),
    "huge sizes beside none": ([entry(shape=[0, 1 << 39, 1 << 39])], b""),
    "a product beyond 64 bits": ([entry(shape=[1 << 39] * 9)], b"\0" * 8),
    "a size that is true": ([entry(shape=[True, 2])], b"\0" * 8),
    "a size that is 2.0": ([entry(shape=[2.0])], b"\0" * 8),
    "a size that is text": ([entry(shape=["2"])], b"\0" * 8),
    "too many axes": ([entry(shape=[1] * 17)], b"\0" * 4),
    "an unknown dtype": ([entry(dtype="float31")], b"\0" * 8),
    "a name of torch that is no dtype": ([entry(dtype="load")], b"\0" * 8),
    "a dtype of objects": ([entry(dtype="object")], b"\0" * 8),
    "a dtype that is a list": ([entry(dtype=["float32"])], b"\0" * 8),
}


@pytest.mark.parametrize("arrays, data", HOSTILE_ARRAYS.values(), ids=HOSTILE_ARRAYS)
def test_arrays_that_do_not_fit_their_frame_are_refused(arrays: Any, data: bytes) -> None:
    with pytest.raises(WireError):
        Unpacker(Frame({"arrays": arrays}, data))


DEVICES: tuple[Any, ...] = (
    *("cuda:99", "mps:7", "meta", "xla:0", "nonsense", "", "\ud800", "cpu:-3"),
    *(None, -1, 1 << 70, 1.5, [], {}),
)


@pytest.mark.parametrize("device", DEVICES, ids=ascii)
def test_a_device_that_is_not_here_is_refused(device: Any) -> None:
    unpacker = Unpacker(Frame({"arrays": [entry(device=device)]}, b"\0" * 8))
    with pytest.raises(WireError):
        unpacker.unpack({"tensor": 0})
    with pytest.raises(WireError):
        unpacker.unpack({"device": device})


HOSTILE_VALUES: dict[str, Any] = {
    "a bare list": [1],
    "an empty object": {},
    "an unknown tag": {"pickle": "gASVAAAAAAAAAA=="},
    "an unknown tag before a known one": {"x": 1, "list": []},
    "a list that is none": {"list": 3},
    "a tuple that is an object": {"tuple": {}},
    "a dictionary that is an object": {"dict": {"a": 1}},
    "a pair that is none": {"dict": [1]},
    "a pair of three": {"dict": [[1, 2, 3]]},
    "a key that is a bare list": {"dict": [[[], 1]]},
    "a set that is an object": {"set": {}},
    "bytes that are a list": {"bytes": [1]},
    "bytes of other letters": {"bytes": "zz"},
    "half a byte": {"bytes": "abc"},
    "half a complex number": {"complex": [1]},
    "a complex number of texts": {"complex": ["1", "2"]},
    "a complex number beyond any float": {"complex": [1 << 1030, 0]},
    "an object without a class": {"record": []},
    "an object whose class is no name": {"record": [], "type": "A()"},
    "an attribute of Python's own": {"record": [["__class__", 1]], "type": "A"},
    "an attribute that is no name": {"record": [["a b", 1]], "type": "A"},
    "an attribute that is a number": {"record": [[1, 1]], "type": "A"},
    "an attribute of arrays": {"record": [["dtype", 1]], "type": "A"},
    "an index past the end": {"tensor": 1},
    "an index before the start": {"tensor": -1},
    "an index that is true": {"tensor": True},
    "an index that is text": {"ndarray": "0"},
    "a numpy array of bfloat16": {"ndarray": 0},
    "a handle that is text": {"handle": "0"},
    "a handle that is true": {"handle": True},
    "a handle whose type is a list": {"handle": 0, "type": []},
    "an opaque thing without a name": {"opaque": ["x"]},
    "an opaque thing whose reason is none": {"opaque": "x", "why": {}},
}


@pytest.mark.parametrize("data", HOSTILE_VALUES.values(), ids=HOSTILE_VALUES)
def test_a_value_that_no_packer_makes_is_refused(data: Any) -> None:
    frame = Frame({"arrays": [entry(dtype="bfloat16")]}, b"\0" * 4)
    with pytest.raises(WireError):
        Unpacker(frame).unpack(data)
    with pytest.raises(WireError):
        Unpacker(frame).unpack({"list": [data]})


def test_a_value_nested_deeper_than_any_packer_does_is_refused() -> None:
    data: Any = None
    for _ in range(100):
        data = {"list": [data]}
    with pytest.raises(WireError):
        Unpacker(Frame({})).unpack(data)


def test_what_cannot_be_a_key_or_in_a_set_arrives_by_its_type() -> None:
    deep = {"tuple": [{"tuple": [{"tuple": [{"tuple": []}]}]}]}
    for key, back in (({"list": []}, "list"), ({"set": []}, "set"), (deep, "tuple")):
        unpacker = Unpacker(Frame({}))
        assert unpacker.unpack({"dict": [[key, 1]]}) == {Opaque(back): 1}
        assert unpacker.unpack({"set": [key]}) == {Opaque(back)}


def test_a_record_is_an_object_of_plain_values() -> None:
    token = there(Token("word", (1, 2)))
    assert (token.kind, token.span, repr(token)) == (
        "word",
        (1, 2),
        "Token(kind='word', span=(1, 2))",
    )
    assert token == Token("word", (1, 2)) == token
    assert token != Token("word", (1, 3)) and token != Pair("word", (1, 2)) and token != "word"
    assert {token} == {Token("word", (1, 2))}


def test_a_set_travels_in_one_order() -> None:
    """The order in memory differs between processes; equal answers must be equal bytes."""
    packer = Packer()
    assert packer.pack({"b", "a", "c"}) == {"set": ["a", "b", "c"]}


def test_unpacking_takes_no_longer_than_was_left_to_the_call() -> None:
    frame = Frame({"value": {"list": [{"list": []}] * 1000}})
    frame.left = 0.0
    with pytest.raises(WireError, match="all the time that was left"):
        Unpacker(frame).unpack(frame.header["value"])


def test_no_reply_has_torch_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes seconds, and a course of numpy functions waits for torch nowhere."""
    frame = Frame({"arrays": [entry()]}, b"\0" * 8)
    monkeypatch.delitem(sys.modules, "torch")
    for value in ({"tensor": 0}, {"dtype": "float32"}, {"device": "cpu"}):
        with pytest.raises(WireError):
            Unpacker(frame).unpack(value)
    assert "torch" not in sys.modules


def test_an_unknown_dtype_as_a_value_arrives_by_its_name() -> None:
    back = Unpacker(Frame({})).unpack({"dtype": "load"})
    assert back == Opaque("torch.dtype", "load")


def test_texts_from_the_worker_are_cut() -> None:
    unpacker = Unpacker(Frame({}))
    assert len(unpacker.unpack("x" * 100_000)) == 20_000
    thing = unpacker.unpack({"opaque": "x" * 1000, "why": "y" * 1000})
    assert (len(thing.type_name), len(thing.why)) == (200, 200)
