"""Turns values into a frame's JSON data and array bytes, and back.

Nothing is ever unpickled. The reader checks what arrives: kinds of values, their number and depth,
and array shapes against the bytes that came.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import SimpleNamespace
from typing import Any

from grader.run.worker.wire import ARRAYS_CAP, JSON, Frame, WireError

LAZY = "not initialized yet"  # why a parameter does not travel before its module's first call
_DEPTH_CAP = 16  # nested containers in one value
_ITEMS_CAP = 10_000  # entries of one container
_KEY_DEPTH_CAP = 3  # nested containers in an entry of a set, or in a key
_SAME_HASH_CAP = 8  # entries of a set, or keys, with one hash: each is compared with the others
_NAME_CAP = 100  # characters in the name of a class or an attribute
_READS = 4  # of one frame, at most
_TEXT_CAP = 20_000  # characters of one string, or bytes, that the learner's code returns

# What values may consist of, in the words of errors.
TRAVELS = (
    "numbers, text, bytes, None, tensors, arrays, and lists, tuples,\n"
    "            sets, dictionaries and dataclass objects of these"
)


@dataclass(frozen=True)
class Opaque:
    """A value that cannot travel: the name of its type, and why if the type is not the reason."""

    type_name: str
    why: str = ""


@dataclass(frozen=True)
class Handle:
    """An object that stays in its process; `id` is its number there."""

    id: int
    type_name: str


class Iterated(list[Any]):
    """What an iterator of the other process gave, and the name of its class."""

    def __init__(self, type_name: str, items: Iterable[Any]) -> None:
        super().__init__(items)
        self.type_name = type_name


class PlainObject(SimpleNamespace):
    """An object of plain values: its attributes, and the name of its class in the other process.

    It equals any object whose class has this name and whose attributes have these values.
    """

    __slots__ = ("_type_name",)

    def __init__(self, type_name: str, attributes: Mapping[str, Any]) -> None:
        super().__init__(**attributes)
        self._type_name = type_name

    def __eq__(self, other: object) -> bool:
        name, attributes = _attributes(other)
        return name == self._type_name and attributes == vars(self)

    def __ne__(self, other: object) -> bool:
        return not self == other  # the inherited one would ignore the class's name

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(vars(self).values()))  # that of a frozen dataclass

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{self._type_name}({told})"


@dataclass
class Packer:
    """Turns values into JSON data and array bytes; one packer makes one frame.

    An array that is packed twice travels once, so that `query is key` holds on the other side.
    `arrays` lists the arrays in the order of first use, `refused` what cannot travel.
    """

    handle: Callable[[Any], Handle | None] = lambda value: None
    arrays: list[Any] = field(default_factory=list)
    refused: list[Opaque] = field(default_factory=list)
    _chunks: list[bytes] = field(default_factory=list)
    _entries: list[dict[str, Any]] = field(default_factory=list)
    _index: dict[int, int] = field(default_factory=dict)
    _size: int = 0

    def pack(self, value: Any, depth: int = 0) -> Any:
        """`value` as JSON data; what cannot travel is packed as Opaque."""
        if value is None or value is True or value is False:
            return value
        kind = type(value)
        if kind is int:
            return value if value.bit_length() < 1024 else self._opaque("int", "too large")
        if isinstance(value, float):
            return float(value)  # numpy.float64 is one too
        if kind is str:
            return value if len(value) <= _TEXT_CAP else self._opaque("str", "too long")
        if kind is bytes:
            too_long = len(value) > _TEXT_CAP
            return self._opaque("bytes", "too long") if too_long else {"bytes": value.hex()}
        if kind is complex:
            return {"complex": [value.real, value.imag]}
        if depth > _DEPTH_CAP:
            return self._opaque(kind.__name__, "nested too deeply")
        torch = sys.modules.get("torch")
        if torch is not None:
            if isinstance(value, torch.Tensor):
                return self._pack_tensor(value, torch)
            if isinstance(value, torch.dtype):
                return {"dtype": str(value).removeprefix("torch.")}
            if isinstance(value, torch.device):
                return {"device": str(value)}
            if kind is torch.Size:
                return {"tuple": [int(size) for size in value]}
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            if isinstance(value, numpy.ndarray):
                return self._pack_ndarray(value)
            if isinstance(value, numpy.generic) and value.dtype.kind in "biufcSU":
                plain = value.item()
                wide = type(plain) is kind
                return self._opaque(_type_name(value)) if wide else self.pack(plain)
        handle = self.handle(value)
        if handle is not None:
            return {"handle": handle.id, "type": handle.type_name}
        for tag, kinds in _CONTAINERS.items():
            if isinstance(value, kinds):
                return self._container(tag, value, depth)
        if isinstance(value, Opaque):
            return self._opaque(value.type_name, value.why)
        name, attributes = _attributes(value)
        if attributes is None:
            return self._opaque(_type_name(value))
        return {"record": self._pairs(attributes.items(), depth), "type": name}

    def frame(self, header: dict[str, Any]) -> Frame:
        """The frame of `header`, whose values this packer has packed."""
        return Frame({**header, "arrays": self._entries}, b"".join(self._chunks))

    def _container(self, tag: str, value: Any, depth: int) -> Any:
        items = list(islice(value.items() if tag == "dict" else value, _ITEMS_CAP + 1))
        name = _type_name(value) if tag == "iterator" else tag
        if len(items) > _ITEMS_CAP:  # perhaps without end
            return self._opaque(name, f"more than {_ITEMS_CAP:,} entries")
        if tag == "dict":
            return {tag: self._pairs(items, depth)}
        packed = [self.pack(item, depth + 1) for item in items]
        if tag in ("set", "frozenset"):
            packed.sort(key=JSON.encode)  # the order in memory differs between processes
        return {tag: packed, "type": name} if tag == "iterator" else {tag: packed}

    def _pairs(self, pairs: Iterable[tuple[Any, Any]], depth: int) -> list[list[Any]]:
        return [[self.pack(key, depth + 1), self.pack(value, depth + 1)] for key, value in pairs]

    def _opaque(self, type_name: str, why: str = "") -> dict[str, Any]:
        self.refused.append(Opaque(type_name, why))
        return {"opaque": type_name, "why": why}

    def _pack_tensor(self, tensor: Any, torch: Any) -> Any:
        if torch.nn.parameter.is_lazy(tensor):
            return self._opaque("torch.Tensor", LAZY)
        if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_meta:
            why = f"layout {tensor.layout}, device {tensor.device.type}"
            return self._opaque("torch.Tensor", why)
        dtype = str(tensor.dtype).removeprefix("torch.")
        if dtype not in _SIZES:
            return self._opaque("torch.Tensor", f"dtype {tensor.dtype}")
        return self._array("tensor", tensor, dtype)

    def _pack_ndarray(self, array: Any) -> Any:
        dtype = str(array.dtype)
        if array.dtype.kind not in "biufc" or dtype not in _SIZES:
            return self._opaque("numpy.ndarray", f"dtype {array.dtype}")
        return self._array("ndarray", array, dtype)

    def _array(self, tag: str, array: Any, dtype: str) -> Any:
        is_tensor = tag == "tensor"
        name = "torch.Tensor" if is_tensor else "numpy.ndarray"
        shape = [int(size) for size in array.shape]
        size = math.prod(shape) * _SIZES[dtype]
        if size + self._size > ARRAYS_CAP:
            return self._opaque(name, f"shape {shape} is too large")
        if id(array) not in self._index:
            if is_tensor:
                data = tensor_bytes(array)
            else:
                data = sys.modules["numpy"].ascontiguousarray(array).tobytes()
            if len(data) != size:
                return self._opaque(name, f"it does not hold the numbers of its shape {shape}")
            self._index[id(array)] = len(self.arrays)
            self.arrays.append(array)
            layout = _layout(array) if is_tensor else {}
            self._entries.append({"dtype": dtype, "shape": shape, **layout})
            self._chunks.append(data)
        self._size += size  # at each mention: the other side may read every mention
        return {tag: self._index[id(array)]}


@dataclass
class Unpacker:
    """Turns one frame's JSON data back into values, in the time that its receiver had left.

    `strided` rebuilds each tensor's strides (for frames from the trusted side), and `leaves` marks
    the tensors that required gradients there; `handle` returns the object with a handle's id.
    """

    frame: Frame
    handle: Callable[[int, str], Any] = Handle
    strided: bool = False
    leaves: bool = False
    arrays: list[Any] = field(init=False)
    buffers: list[bytes] = field(init=False)

    def __post_init__(self) -> None:
        entries = self.frame.header.get("arrays", [])
        if not isinstance(entries, list):
            raise WireError("a frame's arrays are not a list")
        self._end = time.monotonic() + self.frame.left
        self._named = 0  # bytes of arrays, counted at each mention
        self.buffers = list(_buffers(entries, self.frame.data))
        self.arrays = [None] * len(entries)

    def unpack(self, data: Any, depth: int = 0) -> Any:
        """The value of `data`.

        Raises WireError for anything that `Packer.pack` never makes, and if the time is over.
        """
        if data is None or isinstance(data, (bool, int, float)):
            return data
        if isinstance(data, str):
            return data[:_TEXT_CAP]
        if not isinstance(data, dict) or depth > _DEPTH_CAP + 1:
            raise WireError("a value is not of the protocol")
        if time.monotonic() > self._end:
            self.frame.left = 0.0  # so that others who read it, or keep its result, can tell
            raise WireError("reading it took all the time that was left to the call")
        for tag, content in data.items():
            if tag in ("tensor", "ndarray"):
                return self._array(tag, content)
            if tag in _CONTAINERS and isinstance(content, list):
                found = self._container(tag, content, depth)
                return Iterated(_short(data.get("type")), found) if tag == "iterator" else found
            if tag == "record" and isinstance(content, list):
                return self._record(data.get("type"), content, depth)
            if tag == "bytes":
                return _bytes(content)
            if tag == "complex" and isinstance(content, list):
                return _complex(content)
            if tag == "dtype":
                return _torch_dtype(content)
            if tag == "device":
                return _torch_device(content)
            if tag == "handle" and type(content) is int:
                return self.handle(content, _short(data.get("type", "")))
            if tag == "opaque":
                return Opaque(_short(content), _short(data.get("why", "")))
            break
        raise WireError("a value is not of the protocol")

    def _container(self, tag: str, content: list[Any], depth: int) -> Any:
        if tag == "dict":
            pairs = [self._pair(pair, depth) for pair in content]
            _expect_quick_to_hash([key for key, _ in pairs])
            return dict(pairs)
        items = [self.unpack(item, depth + 1) for item in content]
        if tag in ("list", "iterator"):
            return items
        if tag == "tuple":
            return tuple(items)
        items = [_key(item) for item in items]
        _expect_quick_to_hash(items)
        return set(items) if tag == "set" else frozenset(items)

    def _record(self, type_name: Any, content: list[Any], depth: int) -> PlainObject:
        attributes = dict(self._pair(pair, depth) for pair in content)
        if not all(map(_is_name, [type_name, *attributes])):
            raise WireError("an object's class or attribute has no name")
        return PlainObject(type_name, attributes)

    def _pair(self, pair: Any, depth: int) -> tuple[Any, Any]:
        if not isinstance(pair, list) or len(pair) != 2:
            raise WireError("a pair is not two values")
        return _key(self.unpack(pair[0], depth + 1)), self.unpack(pair[1], depth + 1)

    def _array(self, tag: str, index: Any) -> Any:
        if type(index) is not int or not 0 <= index < len(self.arrays):
            raise WireError("a value names an array that did not come")
        self._named += len(self.buffers[index])
        if self._named > _READS * ARRAYS_CAP:
            raise WireError("its arrays are named too often")
        if self.arrays[index] is None:
            entry = self.frame.header["arrays"][index]
            make = _tensor if tag == "tensor" else _ndarray
            self.arrays[index] = make(entry, self.buffers[index], self.strided, self.leaves)
        return self.arrays[index]


def tensor_bytes(tensor: Any) -> bytes:
    """A strided tensor's values in row-major order."""
    plain = tensor.detach()
    if plain.device.type != "cpu" or plain.is_conj() or plain.is_neg():
        plain = plain.cpu().resolve_conj().resolve_neg()
    if str(plain.dtype) == "torch.bfloat16":  # numpy has no such dtype
        plain = plain.view(sys.modules["torch"].int16)
    data: bytes = plain.numpy().tobytes()
    return data


def _layout(tensor: Any) -> dict[str, Any]:
    """What an entry says of a tensor besides its dtype and shape."""
    layout: dict[str, Any] = {}
    if not tensor.is_contiguous():
        layout["stride"] = list(tensor.stride())
    if tensor.requires_grad:
        layout["grad"] = True
    if tensor.device.type != "cpu":
        layout["device"] = str(tensor.device)
    return layout


# What each kind of container is packed as.
_CONTAINERS: Mapping[str, Any] = {
    "tuple": tuple,
    "list": list,
    "iterator": Iterator,
    "dict": Mapping,
    "set": set,
    "frozenset": frozenset,
}


# Objects of these classes, and of classes derived from them, hold more than their attributes.
_WITH_MORE = (
    *(type, BaseException, int, float, complex, str, bytes, bytearray),
    *(tuple, list, deque, Iterator, Mapping, set, frozenset),
)
_OF_ARRAYS = ("dtype", "shape", "tolist")  # an object with one of these would be taken for an array


def _attributes(value: Any) -> tuple[str, dict[str, Any] | None]:
    """The name of an object's class, and its attributes; None if it may hold anything else.

    An object of a dataclass, or one with everything in its `__dict__`, holds nothing else.
    """
    kind = type(value)
    if isinstance(value, PlainObject):
        return value._type_name, vars(value)
    names = getattr(kind, "__dataclass_fields__", None) or getattr(value, "__dict__", None)
    if not names or isinstance(value, _WITH_MORE) or _is_array(value) or callable(value):
        return kind.__name__, None
    if not all(map(_is_name, [kind.__name__, *names])):
        return kind.__name__, None
    return kind.__name__, {name: getattr(value, name) for name in names}


def _is_array(value: Any) -> bool:
    """Whether it is a tensor or an array; a check may have given it attributes."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    return any(
        (
            torch is not None and isinstance(value, torch.Tensor),
            numpy is not None and isinstance(value, numpy.ndarray),
        )
    )


def _is_name(text: Any) -> bool:
    """Whether it may name a class or an attribute; Python's own begin with two underscores."""
    if not isinstance(text, str) or len(text) > _NAME_CAP or text in _OF_ARRAYS:
        return False
    return text.isidentifier() and not text.startswith("__")


def _key(value: Any) -> Any:
    """The value as a key or an entry of a set: Opaque, unless plain values can be one."""
    return value if _is_key(value, _KEY_DEPTH_CAP) else Opaque(type(value).__name__)


def _is_key(value: Any, depth: int) -> bool:
    if isinstance(value, PlainObject):
        value = tuple(vars(value).values())
    if isinstance(value, (tuple, frozenset)):
        return depth > 0 and all(_is_key(each, depth - 1) for each in value)
    return isinstance(value, (str, int, float, complex, bytes, type(None), Opaque))


def _expect_quick_to_hash(keys: Sequence[Any]) -> None:
    """Raise WireError for keys that a dictionary or a set would take long to tell apart."""
    # Nobody can choose the hashes of text and bytes: Python salts them in each process.
    others = [key for key in keys if not isinstance(key, (str, bytes, Opaque))]
    if len(others) > _ITEMS_CAP:
        raise WireError("a set or a dictionary has too many entries")
    hashes = sorted(map(hash, others))
    if any(map(int.__eq__, hashes, hashes[_SAME_HASH_CAP:])):
        raise WireError("a set or a dictionary has too many entries of the same hash")


def _bytes(digits: Any) -> bytes:
    try:
        return bytes.fromhex(digits)
    except (TypeError, ValueError):
        raise WireError("bytes are not of hexadecimal digits") from None


def _complex(parts: list[Any]) -> complex:
    if len(parts) != 2 or not all(type(part) in (int, float) for part in parts):
        raise WireError("a complex number is not of two numbers")
    try:
        return complex(*parts)
    except OverflowError:
        raise WireError("a complex number is too large") from None


def _type_name(value: Any) -> str:
    kind = type(value)
    module = getattr(kind, "__module__", "")
    name = getattr(kind, "__qualname__", "object")
    return name if module in ("builtins", "", None) else f"{module}.{name}"


def _short(text: Any) -> str:
    if not isinstance(text, str):
        raise WireError("a description is not text")
    return text[:200]


_SIZES = {
    **dict.fromkeys(("bool", "uint8", "int8"), 1),
    **dict.fromkeys(("uint16", "int16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("uint32", "int32", "float32"), 4),
    **dict.fromkeys(("uint64", "int64", "float64", "complex64"), 8),
    "complex128": 16,
}


def _buffers(entries: list[Any], data: bytes) -> Iterator[bytes]:
    """Each array's bytes. Raises WireError unless shapes, dtypes and lengths fit exactly."""
    start = 0
    for entry in entries:
        if not isinstance(entry, dict):
            raise WireError("an array's entry is not an object")
        shape: Any = entry.get("shape")
        dtype = entry.get("dtype")
        if not _is_shape(shape) or not isinstance(dtype, str) or dtype not in _SIZES:
            raise WireError("an array has no shape or an unknown dtype")
        end = start + math.prod(shape) * _SIZES[dtype]
        if end > len(data):
            raise WireError("an array came with fewer numbers than its shape says")
        yield data[start:end]
        start = end
    if start != len(data):
        raise WireError("it has more numbers than the shapes of its arrays say")


def _is_shape(shape: Any) -> bool:
    if not isinstance(shape, list) or len(shape) > 16:
        return False
    whole = 1
    for size in shape:
        if type(size) is not int or not 0 <= size < 1 << 40:
            return False
        whole *= size or 1
    return whole < 1 << 48  # strides must fit, even when empty


def _torch() -> Any:
    """The library, if it is in use: importing it takes seconds, and no reply may cause that."""
    torch = sys.modules.get("torch")
    if torch is None:
        raise WireError("a value of torch's came, but torch is not in use")
    return torch


def _tensor(entry: dict[str, Any], buffer: bytes, strided: bool, leaves: bool) -> Any:
    torch = _torch()
    dtype = getattr(torch, entry["dtype"])
    shape = entry["shape"]
    if buffer:
        tensor = torch.frombuffer(bytearray(buffer), dtype=dtype).reshape(shape)
    else:
        tensor = torch.empty(shape, dtype=dtype)
    if "device" in entry:
        tensor = tensor.to(_torch_device(entry["device"]))
    if strided and "stride" in entry:  # on its device: moving it there would repeat expanded axes
        tensor = _with_strides(tensor, entry["stride"], torch)
    if leaves and entry.get("grad"):
        tensor.requires_grad_()
    return tensor


def _with_strides(tensor: Any, stride: Sequence[int], torch: Any) -> Any:
    """The same values laid out in memory as the sender had them; stride 0 is an expanded axis."""
    if list(tensor.stride()) == list(stride) or not tensor.numel():
        return tensor
    base = tensor
    for axis, step in enumerate(stride):
        if step == 0:
            base = base.narrow(axis, 0, 1)
    steps = [max(1, step) for step in stride]
    laid_out = torch.empty_strided(base.shape, steps, dtype=base.dtype, device=base.device)
    return laid_out.copy_(base).expand(tensor.shape)


def _ndarray(entry: dict[str, Any], buffer: bytes, strided: bool, leaves: bool) -> Any:
    import numpy

    if entry["dtype"] == "bfloat16":
        raise WireError("numpy has no bfloat16")
    return numpy.frombuffer(bytearray(buffer), dtype=entry["dtype"]).reshape(entry["shape"])


def _torch_dtype(name: Any) -> Any:
    torch = _torch()
    # Not getattr: torch imports some of its parts when their names are used.
    dtype = vars(torch).get(name) if isinstance(name, str) else None
    return dtype if isinstance(dtype, torch.dtype) else Opaque("torch.dtype", str(name)[:40])


def _torch_device(name: Any) -> Any:
    torch = _torch()
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError, ValueError):
        raise WireError("a tensor's device is not a device") from None
    if device.type == "cpu":
        return torch.device("cpu")
    accelerator: Any = getattr(torch, device.type, None)
    if device.type not in ("cuda", "mps") or not accelerator.is_available():
        raise WireError("a tensor's device is not on this machine")
    if (device.index or 0) >= accelerator.device_count():
        raise WireError("a tensor's device is not on this machine")
    return device
