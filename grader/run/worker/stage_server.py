"""Serves one stage in a worker: loads the submission's code and answers what checks request."""

from __future__ import annotations

import importlib
import io
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from grader.run.worker.bench import Bench
from grader.run.worker.bridge import Caller
from grader.run.worker.forbidden import CallWatch
from grader.run.worker.loader import Loader
from grader.run.worker.lock import seal_libraries
from grader.run.worker.raised import describe
from grader.run.worker.reading import look
from grader.run.worker.wire import Channel, Closed, Frame, WireError

_PRINT_CAP = 20_000  # characters of the learner's output to keep


class Tap(io.TextIOBase):
    """A stdout that keeps the first characters and counts the rest."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._room = _PRINT_CAP
        self._dropped = 0

    def writable(self) -> bool:
        """Always true, because print needs it."""
        return True

    def write(self, text: str) -> int:
        """Keep as much of `text` as fits."""
        kept = text[: self._room]
        if kept:
            self._parts.append(kept)
            self._room -= len(kept)
        self._dropped += len(text) - len(kept)
        return len(text)

    def drain(self) -> str:
        """The text since the last call."""
        text = "".join(self._parts)
        self._parts.clear()
        if self._dropped:
            text += f"\n... and {self._dropped} more characters\n"
            self._dropped = 0
        return text


class StageServer:
    """Serves one stage of one submission on a channel; `kit` is what `kit_globals` returned."""

    def __init__(self, channel: Channel, kit: frozenset[int]) -> None:
        self._channel = channel
        self._tap = Tap()
        self._namespace: Callable[[str], Any] = self._unknown
        self._loader: Loader | None = None
        self._bench = Bench(lambda name: self._namespace(name), self._line)
        self._watch = CallWatch(self._line, kit)
        self._failures: list[dict[str, Any]] = []  # of the notebook's cells

    def serve(self) -> None:
        """Answer requests until the other side closes."""
        sys.stdout = sys.stderr = self._tap
        warnings.formatwarning = self._warning
        while True:
            try:
                request = self._channel.receive()
            except Closed:
                return
            reply = self._answer(request)
            printed = self._tap.drain()
            if printed:
                reply.aside = {**reply.aside, "printed": printed}
            try:
                self._channel.send(reply)
            except WireError as error:  # too many values: nothing has been sent yet
                answer = {"opaque": "answer", "why": str(error)}
                self._channel.send(Frame({"value": answer}, aside=reply.aside))

    def _warning(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        line: str | None = None,
    ) -> str:
        """A warning as the learner sees it: with the place if it is a line of theirs."""
        text = self._line(filename, lineno)
        place = "" if text is None else f"{filename}, line {lineno}: "
        words = str(message).partition(" (Triggered internally at ")[0]  # a line of torch's own
        return f"{place}{category.__name__}: {' '.join(words.split())}\n"

    def _answer(self, request: Frame) -> Frame:
        op = request.header.get("op")
        if op == "load":
            return self._load(request.header)
        if op == "look":
            return Frame({"found": look(request.header)})
        if op == "preload":
            return _preload(request.header["names"])
        if request.aside.get("begin"):
            self._bench.reset()
            self._watch.begin(request.aside.get("forbidden", ()))
        with self._watch.noticing():
            reply = self._bench.answer(request)
        if "error" in reply.header:
            reply.header["error"].update(self._cause(reply.header["error"]))
        forbidden = self._watch.drain()
        if forbidden:
            reply.aside = {**reply.aside, "forbidden": forbidden}
        return reply

    def _cause(self, error: dict[str, Any]) -> dict[str, Any]:
        """What the name that an error misses needs: the failed cell, or the file to import.

        A name of the object needs neither. Of a global name that several cells set, the last one.
        """
        root = error["frames"][-1].get("root") if error["frames"] else None
        if self._loader is not None and root in self._loader.reset_by:
            return {"set_by": [root, self._loader.reset_by[root]]}
        unless = r"(?!\. Did you mean: 'self\.)"
        missing = re.match(rf"name '(\w+)' is not defined{unless}", error["message"])
        if missing and error["type"] == "NameError":
            name = missing[1]
            ways = rf"(async )?def {name}\b", rf"class {name}\b", rf"{name} *[:=]"
            imports = rf"(from|import)\b[^\n(]*(\([^)]*)?\b{name}\b"
            defines = re.compile(rf"^[ \t]*({'|'.join((*ways, imports))})", re.MULTILINE)
            for failure in reversed(self._failures):
                if defines.search(failure["source"]):
                    return {"cause": {**failure, "source": ""}}
            if self._loader is not None:
                return {"module": self._loader.defining(name)}
        return {}

    def _load(self, header: dict[str, Any]) -> Frame:
        """Import the learner's code for one stage; reply which names are defined and missing."""
        if self._loader is not None:
            self._loader.remove()
        self._bench.reset()
        self._watch.begin(())
        self._watch.over(header["forbidden"])
        patches = {slug: self._patch(names) for slug, names in header["answered"].items()}
        files = dict.fromkeys((f"{slug}.py" for slug in patches), b"")  # one may be missing
        files |= {name: text.encode("latin-1") for name, text in header["files"].items()}
        loader = self._loader = Loader(files, patches)
        loader.install()
        cells = header["cells"]
        errors: list[dict[str, Any]] = []
        try:
            if cells is None and header["script"] is None:
                module = importlib.import_module(header["module"])
            else:
                module, errors = loader.run_script(
                    cells,
                    header["script"],
                    header["aliases"],
                    only_definitions=header["only_definitions"],
                )
        except BaseException as error:  # noqa: BLE001 - sys.exit during the import is an answer too
            return Frame({"error": describe(error, loader.line)})
        self._failures = errors
        fixture = header.get("fixture")
        self._namespace = lambda name: module if name == fixture else getattr(module, name)
        defined = [name for name in header["names"] if callable(getattr(module, name, None))]
        others = [name for name in list(vars(module)) if not name.startswith("_")][:200]
        told = errors[:10] + errors[10:][-10:]  # in a kernel, the cell being graded comes last
        return Frame({"defined": defined, "others": [name[:80] for name in others], "cells": told})

    def _patch(self, names: list[str]) -> Callable[[Any], None]:
        """Have the other side answer the functions `names` of a module."""

        def answered(name: str) -> Callable[..., Any]:
            caller = Caller(self._ask, _builtin_error)

            def function(*args: Any, **kwargs: Any) -> Any:
                return caller.call({"function": name}, args, kwargs)

            function.__name__ = name
            return function

        def patch(module: Any) -> None:
            for name in names:
                setattr(module, name, answered(name))

        return patch

    def _ask(self, request: Frame) -> Frame:
        self._channel.send(Frame(request.header, request.data, {"ask": True}))
        return self._channel.receive()

    def _line(self, file: str, number: int) -> str | None:
        return self._loader.line(file, number) if self._loader else None

    @staticmethod
    def _unknown(name: str) -> Any:
        raise LookupError(f"nothing is loaded yet, so there is no {name}")


def _preload(names: list[str]) -> Frame:
    """Import the modules of these names, as far as the environment has them, for good."""
    for name in names:
        with suppress(BaseException):  # what cannot be imported is no library; some end Python
            importlib.import_module(name)
    seal_libraries()
    return Frame({})


def _builtin_error(error: dict[str, Any]) -> Exception:
    """The exception to raise in the learner's code for an error of an answered function."""
    known = {kind.__name__: kind for kind in (ValueError, TypeError, RuntimeError, IndexError)}
    for base in error.get("bases", []):
        if base in known:
            return known[base](str(error.get("message", "")))
    return RuntimeError(str(error.get("message", "")))
