"""A failing case of a check as a few plain lines that run without the grader. Pure."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from keyword import iskeyword
from typing import Any

from grader.checking.comparing import COTANGENT_SEED
from grader.checking.inputs import FEW
from grader.read.stubs import parameters
from grader.run.facts import CaseFact, Exchange
from grader.run.worker.packing import Unpacker
from grader.types.errors import KitError
from grader.types.report import CheckResult, Way
from grader.types.text import safe

_CALLS = 3  # so few are all written down, because an earlier answer may be the wrong one
_LITERAL = 400  # numbers of a tensor to write out, at most
_WIDTH = 88
_TOO_LARGE = "its inputs are too large to be written down: see `grade --all`"
_SILENT = ("named_parameters", "named_buffers", "state_dict")  # methods that only read
_OF_ONE_ANSWER = [way.value for way in (Way.SHAPE, Way.VALUES, Way.DTYPE, Way.DEVICE)]


def script(check: CheckResult, fact: CaseFact, *, module: str, stub: str, seed: int) -> str:
    """The lines that show how a case fails, to be run in the folder of the learner's `module`.

    `module` is "" if the learner's functions are already defined, as in a notebook. `stub` is the
    stage's, for the names of its parameters, and `seed` the run's. Raises KitError for a case that
    does more than call the learner's functions.
    """
    id = fact.case.id
    # A case draws by its own seed or, if it is random, by the run's too.
    seeds = [zlib.crc32(text.encode()) for text in (id, f"{seed}:{id}")]
    writer = _Writer(parameters(stub, bound=True), seeds)
    wanted = _wanted(check, fact)
    for exchange in fact.exchanges:
        writer.hear_modes(exchange)
        if any(exchange is each for each in wanted):
            writer.write(exchange)
    writer.show(check)
    about = [f"# {check.id}: {check.title}"]
    about += ["# Save these lines in a new file beside yours and run it."] if module else []
    names = sorted(writer.entries)
    lines = writer.text()
    for library in ("numpy", "torch") if module else ():
        about += [f"import {library}"] * any(f"{library}." in line for line in lines)
    about += _imports(module, names) if module else []
    about += ["", *lines]
    # The learner's code may have written the message: no sign in it may end a comment's line.
    message = safe(check.message).partition("\n  look at ")[0]
    comment = [f"# {line}".rstrip() for line in message.split("\n")]
    return "\n".join([*about, "", *comment]) + "\n"


def _imports(module: str, names: Sequence[str]) -> list[str]:
    """The lines that import names from a module, even if its file has the name of no module."""
    if module.isidentifier() and not iskeyword(module):
        return [f"from {module} import {', '.join(names)}"]
    lines = [f"{name} = import_module({module!a}).{name}" for name in names]
    return ["from importlib import import_module", *lines]


def _wanted(check: CheckResult, fact: CaseFact) -> list[Exchange]:
    """The exchanges that lead to the failure. Raises KitError if they cannot become plain code."""
    exchanges = list(fact.exchanges)
    for exchange in exchanges:
        target = exchange.request.target
        is_plain = exchange.request.header["op"] in ("call", "backward")
        if not is_plain or "given" in target or "probe" in target:
            raise KitError(f"{check.id}: this check does more than plain code can show")
    if not exchanges:
        stage = check.id.partition(".")[0]
        raise KitError(f"{check.id}: the code answered no call: grade {stage} to see why")
    calls = [at for at, exchange in enumerate(exchanges) if is_call(exchange)]
    is_of_one = check.way.partition(", ")[0] in _OF_ONE_ANSWER or check.way.find("Error") >= 0
    kept = calls[-1:] if is_of_one and len(calls) > _CALLS else calls[-2 * _CALLS :]
    numbers = {_call(exchanges[at]) for at in kept}
    wanted = []
    for at, exchange in enumerate(exchanges):
        header = exchange.request.header
        is_backward = header["op"] == "backward"
        if at in kept or (header["call"] in numbers if is_backward else not is_call(exchange)):
            wanted.append(exchange)
    used = {_object(exchange) for exchange in wanted if is_call(exchange)}
    is_about_objects = not calls or _object(exchanges[-1]) not in (*used, None)
    return [
        exchange
        for exchange in wanted
        if is_about_objects or _made(exchange) is None or _made(exchange) in used
    ]


def is_call(exchange: Exchange) -> bool:
    """Whether a function or a module's forward is called, and not a class or another method."""
    request = exchange.request
    is_call = request.header["op"] == "call" and "method" not in request.target
    return is_call and exchange.reply.handle is None


def _call(exchange: Exchange) -> int | None:
    """The number of a call, None if the learner's process gave none."""
    number = exchange.reply.header.get("call")
    return number if isinstance(number, int) else None


def _object(exchange: Exchange) -> int | None:
    number = exchange.request.target.get("object")
    return number if isinstance(number, int) else None


def _made(exchange: Exchange) -> int | None:
    """The object that an exchange makes or refers to."""
    made = exchange.reply.handle
    return _object(exchange) if made is None else made


@dataclass(frozen=True)
class _Held:
    """An object of the learner's, with its number in the exchanges."""

    number: int


@dataclass
class _Writer:
    """Writes exchanges as lines; `seeds` are those with which a check may have drawn inputs."""

    parameters: dict[str, list[str]]
    seeds: Sequence[int]
    lines: list[str | _Made | _MadeArray] = field(default_factory=list)
    entries: set[str] = field(default_factory=set)
    _made: dict[tuple[Any, ...], _Made | _MadeArray] = field(default_factory=dict)
    _objects: dict[int, tuple[str, str]] = field(default_factory=dict)  # name and class
    _plain: set[int] = field(default_factory=set)  # the objects that are no modules
    _results: dict[Any, str] = field(default_factory=dict)  # by the number of the call
    _tuples: set[str] = field(default_factory=set)  # the results that are tuples
    _leaves: list[str] = field(default_factory=list)
    _shown: list[str] = field(default_factory=list)
    _modes: dict[int, str] = field(default_factory=dict)  # to write, such as "eval()", by object
    _is_backward: bool = False

    def text(self) -> list[str]:
        """All lines, first those that draw what the check has drawn."""
        tensors = [made for made in self._made.values() if isinstance(made, _Made)]
        drawn = _drawn(tensors, self.seeds) if tensors else {}
        told = [line for lines in drawn.values() for line in lines]
        names = set(drawn)
        for line in self.lines:
            if isinstance(line, str):
                told.append(line)
            elif line.name not in names:
                told += line.written()
        used = set(re.findall(r'(?<![\w"])(?:inf|nan)\b', "\n".join(told)))
        constants = [f'{name} = float("{name}")' for name in sorted(used)]
        return [*constants, *told]

    def hear_modes(self, exchange: Exchange) -> None:
        """Note the modes set before an exchange, which stay even if it is left out."""
        for before in exchange.request.header.get("before", ()):
            arguments = ", ".join(map(repr, before["args"]))
            mode = f"{before['target']['method']}({arguments})"
            self._modes[before["target"]["object"]] = mode

    def write(self, exchange: Exchange) -> None:
        """Add the lines of one exchange."""
        header = exchange.request.header
        for number in [number for number in self._modes if number in self._objects]:
            self.lines.append(f"{self._objects[number][0]}.{self._modes.pop(number)}")
        if header["op"] == "backward":
            self._write_backward(exchange)
            return
        target = header["target"]
        if target.get("method") in _SILENT:
            name, _ = self._objects.get(target["object"], ("module", ""))
            self._shown = [f"[(name, tuple(p.shape)) for name, p in {name}.{target['method']}()]"]
            if target["method"] == "state_dict":
                self._shown = [f"list({name}.state_dict())"]
            return
        unpacker = Unpacker(
            exchange.request, handle=lambda number, _: _Held(number), strided=True, leaves=True
        )
        args, kwargs = unpacker.unpack(header["args"]), unpacker.unpack(header["kwargs"])
        function, code = self._target(target)
        names = self.parameters.get(code, [])
        told = [
            self._told(value, names[at] if at < len(names) else f"input_{at + 1}")
            for at, value in enumerate(args)
        ]
        told += [f"{name}={self._told(value, name)}" for name, value in kwargs.items()]
        call = f"{function}({', '.join(told)})"
        made = exchange.reply.handle
        is_plain = target.get("object") in self._plain
        if "makes" in target and made is not None:
            self._plain.add(made)
        if "method" in target and not (is_plain and made is None):
            self.lines.append(call)
        elif made is not None or code.endswith(".__init__"):
            self._write_object(function, call, made, None if "makes" in target else header["seed"])
        else:
            name = self._new("result", self._results.values())
            if "object" in target and not is_plain and header["seed"] is not None:
                self.lines.append(f"torch.manual_seed({header['seed']})")
            self.lines += _statement(name, call)
            self._results[_call(exchange)] = name
            self._shown = [*(shown for shown in self._shown if shown.startswith("result")), name]
            value = exchange.reply.header.get("value")
            if isinstance(value, dict) and "tuple" in value:
                self._tuples.add(name)

    def show(self, check: CheckResult) -> None:
        """Add the lines that print the wrong result."""
        way = check.way.partition(", ")[0]
        if self._leaves and way == Way.GRADIENT.value and self._shown:
            last = self._shown[-1]
            if not self._is_backward:
                self.lines.append(f"{last}{'[0]' * (last in self._tuples)}.sum().backward()")
            self.lines += [f"print({name}.grad)" for name in self._leaves]
            return
        if "in place" in check.message:
            self.lines += [f"print({made.name})" for made in self._made.values()]
        attribute = {Way.SHAPE.value: ".shape", Way.DTYPE.value: ".dtype"}.get(way, "")
        for name in self._shown[-_CALLS:]:
            if not attribute or not name.startswith("result"):
                self.lines.append(f"print({name})")
            elif name in self._tuples:
                self.lines.append(f"print([part{attribute} for part in {name}])")
            else:
                self.lines.append(f"print({name}{attribute})")

    def _write_object(self, function: str, call: str, made: int | None, seed: int | None) -> None:
        """Add the lines that make an object; without a seed it is no module."""
        word = "made" if seed is None else "module"
        name = self._new(word, [known for known, _ in self._objects.values()])
        if seed is not None:
            self.lines.append(f"torch.manual_seed({seed})")
        self.lines += _statement(name, call)
        if made is not None:
            self._objects.setdefault(made, (name, function))
        self._shown = [name]

    def _write_backward(self, exchange: Exchange) -> None:
        header = exchange.request.header
        name = self._results[header["call"]]
        self._is_backward = True
        given = Unpacker(exchange.request).unpack(header["gradients"])
        for index, gradient in given:
            one = f"{name}[{index}]" if name in self._tuples else name
            told = self._told(gradient, "gradient")
            self.lines.append(f"{one}.backward({told}{', retain_graph=True' * (len(given) > 1)})")

    def _target(self, target: dict[str, Any]) -> tuple[str, str]:
        """The called function or object, and the code that answers."""
        if "function" in target:
            name = target["function"]
            self.entries.add(name)
            return name, f"{name}.__init__" if f"{name}.__init__" in self.parameters else name
        name, kind = self._objects.get(target["object"], ("module", ""))
        if "method" in target:
            return f"{name}.{target['method']}", f"{kind}.{target['method']}"
        return name, f"{kind}.{'__call__' if target['object'] in self._plain else 'forward'}"

    @staticmethod
    def _new(word: str, taken: Any) -> str:
        """The word, followed by a number if it is taken."""
        number = len(list(taken))
        return f"{word}_{number + 1}" if number else word

    def _told(self, value: Any, name: str) -> str:
        """A value as code; a tensor gets a name and a line of its own."""
        if isinstance(value, _Held):
            return self._objects.get(value.number, ("module", ""))[0]
        if isinstance(value, (list, tuple)):
            parts = [self._told(each, f"{name}_{at + 1}") for at, each in enumerate(value)]
            if isinstance(value, list):
                return f"[{', '.join(parts)}]"
            return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
        if isinstance(value, dict):
            parts = [f"{key!r}: {self._told(each, _word(key))}" for key, each in value.items()]
            return f"{{{', '.join(parts)}}}"
        if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "stride"):
            return self._named(value, name)
        if hasattr(value, "tolist") and hasattr(value, "dtype"):
            return self._named(value, name)
        if isinstance(value, float) and not math.isfinite(value):
            return f'float("{value}")'
        return repr(value)

    def _named(self, array: Any, name: str) -> str:
        """The name of a tensor or an array, whose lines are added at its first use."""
        is_tensor = hasattr(array, "detach")
        key = _key(array) if is_tensor else (array.dtype, array.shape, array.tobytes())
        if key not in self._made:
            taken = {made.name for made in self._made.values()}
            free = (name if at == 1 else f"{name}_{at}" for at in range(1, len(taken) + 3))
            unused = next(word for word in free if word not in taken)
            made = _Made(unused, array) if is_tensor else _MadeArray(unused, array)
            self._made[key] = made
            self.lines.append(made)
            if is_tensor and array.requires_grad:
                self._leaves.append(made.name)
        return self._made[key].name


def _key(tensor: Any) -> tuple[Any, ...]:
    """What two tensors share if they are one tensor in a script."""
    plain = tensor.detach().cpu()
    numbers = plain.double() if plain.is_floating_point() else plain
    values = numbers.contiguous().numpy().tobytes()
    return tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.requires_grad, values


@dataclass(frozen=True)
class _Made:
    """A tensor of a script, and its name there."""

    name: str
    tensor: Any

    def written(self) -> list[str]:
        """The lines with its numbers written out. Raises KitError if they are too many."""
        tensor = self.tensor.detach().cpu()
        dtype = str(tensor.dtype)
        kind = "" if dtype in ("torch.float32", "torch.bool", "torch.int64") else f", dtype={dtype}"
        if tensor.numel() > FEW:
            plain = _plain(tensor)
            if plain:
                return [f"{self.name} = {plain}{kind})", *self._rest()]
        if tensor.numel() > _LITERAL:
            raise KitError(_TOO_LARGE)
        lines = _statement(self.name, f"torch.tensor({_literal(tensor.tolist(), dtype)}{kind})")
        return [*lines, *self._rest()]

    def drawn(self, how: str) -> list[str]:
        """The lines with its numbers drawn."""
        return [f"{self.name} = {how}", *self._rest()]

    def _rest(self) -> list[str]:
        lines = [] if self.tensor.is_contiguous() else _laid_out(self.name, self.tensor)
        return [*lines, f"{self.name}.requires_grad_()"] if self.tensor.requires_grad else lines


@dataclass(frozen=True)
class _MadeArray:
    """A numpy array of a script, and its name there."""

    name: str
    array: Any

    def written(self) -> list[str]:
        """The lines with its numbers written out. Raises KitError if they are too many."""
        dtype = self.array.dtype
        kind = "" if dtype in ("float64", "bool", "int64") else f", dtype={str(dtype)!r}"
        values = self.array.ravel()
        if values.size > FEW and bool((values == values[0]).all()):
            return [f"{self.name} = numpy.full({self.array.shape}, {values[0].item()!r}{kind})"]
        if values.size > _LITERAL:
            raise KitError(_TOO_LARGE)
        numbers = _literal(self.array.tolist(), str(dtype))
        return _statement(self.name, f"numpy.array({numbers}{kind})")


def _plain(tensor: Any) -> str:
    """A call that makes a tensor of equal numbers or an identity, without its last bracket."""
    import torch

    first = tensor.flatten()[0]
    if bool((tensor == first).all()):
        return f"torch.full({tuple(tensor.shape)}, {_literal(first.item(), str(tensor.dtype))}"
    if tensor.ndim == 2 and torch.equal(tensor, torch.eye(*tensor.shape, dtype=tensor.dtype)):
        return f"torch.eye{tuple(tensor.shape)}".removesuffix(")")
    return ""


def _drawn(made: Sequence[_Made], seeds: Sequence[int]) -> dict[str, list[str]]:
    """The lines that draw the tensors whose origin in the generator is found, by name.

    A check draws in an order of its own: the tensor that fits the generator's next numbers comes
    next.
    """
    import torch

    found: dict[str, list[str]] = {}
    generators = 0
    for seed in dict.fromkeys((*seeds, COTANGENT_SEED)):
        generator = torch.Generator().manual_seed(seed)
        draw = f"draw_{generators + 1}" if generators else "draw"
        lines: dict[str, list[str]] = {}
        kept = 0  # up to the last tensor that is too large to write out
        left = [each for each in made if each.name not in found]
        left = [each for each in left if each.tensor.is_floating_point() and each.tensor.numel()]
        while left:
            state = generator.get_state()
            for each in left:
                generator.set_state(state)
                how = _how(each.tensor.detach().cpu(), generator, draw)
                if how:
                    break
            else:
                break
            left.remove(each)
            lines[each.name] = each.drawn(how)
            kept = len(lines) if each.tensor.numel() > FEW else kept
        first = [f"{draw} = torch.Generator().manual_seed({seed})"]
        generators += kept > 0
        for name in list(lines)[:kept]:
            found[name] = first + lines[name]
            first = []
    return found


def _how(tensor: Any, generator: Any, draw: str) -> str:
    """How a tensor comes from a generator's next numbers, "" if it does not."""
    import torch

    wide = torch.float64 if tensor.dtype == torch.float64 else torch.float32
    values = torch.randn(tuple(tensor.shape), generator=generator, dtype=wide)
    at = int(values.abs().argmax())
    scale = float(tensor.flatten()[at].double() / values.flatten()[at].double())
    few = tensor.numel() <= FEW
    scale = float(f"{scale:.1g}") if few else float(f"{scale:.7g}")
    scaled = values * scale
    scaled = ((scaled * 10).round() / 10 if few else scaled).to(tensor.dtype)
    if scale <= 0 or not torch.allclose(scaled, tensor, rtol=2e-6, atol=1e-7):
        return ""
    sizes = ", ".join(map(str, tensor.shape))
    kind = ", dtype=torch.float64" if wide == torch.float64 else ""
    text = f"torch.randn({sizes}, generator={draw}{kind})"
    if scale != 1.0:
        text += f" * {scale:g}" if few else f" * {scale:.7g}"
    if few:
        text = f"({text} * 10).round() / 10"
    return text if tensor.dtype == wide else f"({text}).to({tensor.dtype})"


def _literal(value: Any, dtype: str) -> str:
    """A number, or nested lists with one row per line."""
    if isinstance(value, list):
        parts = [_literal(each, dtype) for each in value]
        is_row = not value or not isinstance(value[0], list)
        return f"[{(', ' if is_row else ',' + chr(10)).join(parts)}]"
    if isinstance(value, float) and math.isfinite(value):
        return repr(value) if dtype.endswith("float64") else _short(value)
    return str(value)  # inf and nan are names in the script


def _short(value: float) -> str:
    """The shortest number that is equal in float32."""
    import numpy

    return str(numpy.float32(value))


def _word(key: Any) -> str:
    """A key as a variable's name."""
    return "".join(letter if letter.isalnum() else "_" for letter in str(key))


def _statement(name: str, value: str) -> list[str]:
    """An assignment; a tensor's rows are below each other if they do not fit on one line."""
    whole = f"{name} = {value}".replace("\n", " ")
    if len(whole) <= _WIDTH or "\n" not in value:
        return [whole]
    first, *rest = f"{name} = {value}".split("\n")
    return [first, *(f"    {line}" for line in rest)]


def _laid_out(name: str, tensor: Any) -> list[str]:
    """The same tensor with another layout in memory."""
    shape, stride = tuple(tensor.shape), tuple(tensor.stride())
    if 0 in stride:
        kept = ", ".join(":1" if step == 0 else ":" for step in stride)
        return [f"{name} = {name}[{kept}].expand{shape}"]
    return [f"{name} = torch.empty_strided({shape}, {stride}, dtype={name}.dtype).copy_({name})"]
