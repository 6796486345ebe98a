"""The side of `%load_ext grader` that runs in a notebook's kernel: its magics and grade_here.

The learner's code runs freely in the kernel, so nothing that grades is ever there: no check, no
solution, no engine. They are in a helper process. It starts at once, so that it is ready for the
first verdict, and it ends with the kernel, when its input ends. Only data passes between the two.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from html import escape
from importlib import import_module
from inspect import CO_COROUTINE
from pathlib import Path
from queue import Empty, SimpleQueue
from types import CodeType
from typing import Any

_Shown = Mapping[str, str]  # HTML, and the same as text for frontends without HTML
_Ran = tuple[str, str | None, float]  # a cell's text, its id if it is known, its seconds
_TICK = 0.1  # seconds; Windows notices an interrupt only between two waits
_FAREWELL = 5.0
_GRADING, _FINALE = "grade_here", "finale"
_WRITTEN = "  written: "
_AWAITS = "The cell was graded but not run here: move the `await` outside functions to another cell"
_MOVED = "The current folder was removed: type %cd ANOTHER_FOLDER, then %reload_ext grader"
_SHOWS = {
    "trace": "your code on the example of {}",
    "heatmap": "your code on the example of {}",
    "repro": "the checks of {}",
}


def load(shell: Any) -> None:
    """Add %%grade, grade_here and the line magics to a shell, and start the helper."""
    unload(shell)
    try:
        session = Session(shell)
    except FileNotFoundError:
        _display(_line(_MOVED))
        return
    shell.register_magic_function(session.grade_cell, "cell", "grade")
    for kind in _SHOWS:
        shell.register_magic_function(partial(session.show, kind), "line", kind)
    shell.register_magic_function(session.train, "line", _FINALE)
    shell.push({_GRADING: session.grade_here}, interactive=False)
    shell.events.register("pre_run_cell", session.cell_begins)
    shell.events.register("post_run_cell", session.cell_ended)
    sessions[id(shell)] = session


def unload(shell: Any) -> None:
    """Undo `load`."""
    session = sessions.pop(id(shell), None)
    if session is None:
        return
    shell.magics_manager.magics["cell"].pop("grade", None)
    for kind in (*_SHOWS, _FINALE):
        shell.magics_manager.magics["line"].pop(kind, None)
    if shell.user_ns.get(_GRADING) == session.grade_here:
        del shell.user_ns[_GRADING]
    shell.events.unregister("pre_run_cell", session.cell_begins)
    shell.events.unregister("post_run_cell", session.cell_ended)
    session.close()


sessions: dict[int, Session] = {}


class GradingStopped(KeyboardInterrupt):
    """The learner interrupted a verdict, so the cells queued behind this one do not run."""

    def _render_traceback_(self) -> list[str]:
        return ["Stopped: nothing was graded."]


class Session:
    """One kernel's session: the cells that have run so far, and the helper.

    `report` is the last report, as `grade --json` prints it.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        before = enumerate(shell.history_manager.input_hist_raw)
        self._cells: dict[int, _Ran] = {number: (source, None, 0.0) for number, source in before}
        self._source = self._cells.get(self._number, ("", None, 0.0))[0]
        self._id: str | None = None
        self._began = time.monotonic()
        self._is_left_out = False
        self._folder = os.getcwd()
        self._helper = Helper(self._folder)
        self.report: Mapping[str, Any] | None = None

    @property
    def _number(self) -> int:
        """The number of the cell that is running; newer IPythons already count the next one."""
        return len(self._shell.history_manager.input_hist_raw) - 1

    def close(self) -> None:
        """End the helper."""
        self._helper.close()

    def cell_begins(self, info: Any) -> None:
        """IPython calls this before a cell runs."""
        if _GRADING not in self._shell.user_ns:  # %reset removes it
            self._shell.push({_GRADING: self.grade_here}, interactive=False)
        if info.store_history:
            self._source, self._is_left_out = info.raw_cell, False
            self._id, self._began = _id_of(info), time.monotonic()

    def cell_ended(self, result: Any) -> None:
        """IPython calls this after a cell has run; a cell that never ended is not recorded."""
        if not result.info.store_history or self._is_left_out:
            return
        error = result.error_in_exec
        if isinstance(error, GradingStopped) or not isinstance(error, KeyboardInterrupt):
            seconds = time.monotonic() - self._began
            self._cells[result.execution_count] = (
                result.info.raw_cell,
                _id_of(result.info),
                seconds,
            )

    def grade_cell(self, line: str, cell: str) -> None:
        """`%%grade STAGE`: grade the cell for the stage, then run it."""
        number = self._number
        above, found, _ = self._source.partition("%%grade")  # %%time may stand above it
        lines_above = above.count("\n") if found else 0
        self._source = "\n" * lines_above + f"%%grade {line}\n{cell}"
        self._is_left_out = True
        slugs = line.split()
        if len(slugs) != 1:
            _display(_line("The cell was not run. Name its stage, as in: %%grade STAGE"))
            return
        answer = self._verdict(slugs, graded=number)
        if "error" in answer:
            return
        # Code that hangs or ends its process would also do so here.
        if answer.get("runs", True):
            code = self._compiled(cell)
            if code is not None and code.co_flags & CO_COROUTINE:  # the kernel's loop is busy
                _display(_line(_AWAITS))
                return
            self._is_left_out = False
            if code is not None:
                self._shell.run_cell(cell, store_history=False)

    def _compiled(self, cell: str) -> CodeType | None:
        """The cell's code; None if it is not valid Python, as the verdict has said."""
        text = self._shell.transform_cell(cell)
        with suppress(SyntaxError):
            code: CodeType = compile(text, "cell", "exec", PyCF_ALLOW_TOP_LEVEL_AWAIT)
            return code
        return None

    def grade_here(self, stage: object = None) -> float | None:
        """Grade a stage, or all, with everything that the cells so far have defined.

        A function or class stands for the stage of the same name. If nbgrader runs the
        notebook, the points are returned.
        """
        answer = self._verdict([] if stage is None else [str(getattr(stage, "__name__", stage))])
        nbgrader = os.environ.get("NBGRADER_EXECUTION")
        return None if nbgrader is None else _points(answer, validating=nbgrader == "validate")

    def show(self, kind: str, line: str) -> None:
        """`%trace STAGE`, `%heatmap STAGE` or `%repro CHECK`, for what the cells so far define."""
        words = line.split()
        if len(words) != 1:
            what = "check" if kind == "repro" else "stage"
            _display(_line(f"Name the {what}, as in: %{kind} {what.upper()}"))
            return
        self._ask({"show": kind, "of": words[0]}, f"running {_SHOWS[kind].format(words[0])}")

    def train(self, line: str) -> None:
        """`%finale [NAME] [--without PART]`: `grade finale` with what the cells so far define.

        An interrupt ends the training soon, and what was learnt is shown.
        """
        if not os.path.isdir(self._folder):
            _display(_line(_MOVED))
            return
        # A cell's place is its number, so that "code cell 7" means In [7].
        ran = [self._cells.get(key, ("",))[0] for key in range(1, self._number)]
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "notebook.ipynb")
            Path(file).write_text(json.dumps(_as_notebook(ran)), encoding="utf-8")
            printed = _run([_FINALE, *line.split(), "--submission", file], self._folder)
        for text in printed:
            name = text.removeprefix(_WRITTEN).strip()
            if text.startswith(_WRITTEN) and name.endswith(".svg"):
                _display(_picture(os.path.join(self._folder, name), name))

    def _verdict(self, slugs: Sequence[str], graded: int | None = None) -> Mapping[str, Any]:
        """Ask for a verdict and show it. Raises GradingStopped."""
        what = " ".join(slugs) or "what you have"
        return self._ask({"stages": slugs, "graded": graded}, f"grading {what}")

    def _ask(self, request: Mapping[str, Any], doing: str) -> Mapping[str, Any]:
        """Send the cells with a request, and show the answer. Raises GradingStopped."""
        shown = None
        try:
            if self._helper.has_ended:
                self._helper = Helper(self._folder)
            text = f"{doing.capitalize()} ..."
            if not self._helper.is_ready:
                text = f"Starting the grader, which takes a few seconds; then {doing} ..."
            shown = _display(_line(text), display_id=True)
            number, start = self._number, time.monotonic()
            cells = [[key, *ran] for key, ran in self._cells.items() if key < number]
            cells.append([number, self._source, self._id, 0.0])
            answer = self._helper.ask({**request, "cells": cells})
        except KeyboardInterrupt:
            if shown is not None:
                shown.update(_line("Stopped: nothing was graded."), raw=True)
            raise GradingStopped from None
        self._began += time.monotonic() - start  # the verdict's time is not the cell's
        if "html" in answer:
            self.report = answer.get("report", self.report)
            shown.update(_shown(answer["html"], answer["text"]), raw=True)
        else:
            problem = answer.get("error") or answer["ended"]
            is_left_out = "error" in answer and request.get("graded") is not None
            left_out = " (The cell was not run.)" if is_left_out else ""
            shown.update(_line(f"grade: {problem}{left_out}"), raw=True)
        return answer


def _id_of(info: Any) -> str | None:
    """The notebook's id of the current cell, if the kernel knows it."""
    return getattr(info, "cell_id", None) or None


def _points(answer: Mapping[str, Any], *, validating: bool) -> float | None:
    """The points in the form that nbgrader reads from a cell: None means full points.

    Raises RuntimeError, which nbgrader counts as no points, if there is no reliable verdict.
    """
    if "report" not in answer:
        raise RuntimeError(f"no verdict: {answer.get('error') or answer.get('ended')}")
    report = answer["report"]
    if any(stage["status"] == "error" for stage in report["stages"]):
        raise RuntimeError("the grader itself failed here: set these points by hand")
    score = sum(stage["score"] for stage in report["stages"])
    if not answer["partial"]:
        return float(score)
    if not validating:
        raise RuntimeError("only the visible checks are here: set GRADE_COURSE to the whole course")
    most = sum(stage["max_score"] for stage in report["stages"])
    return None if score == most else float(score)


def _display(shown: _Shown, **options: Any) -> Any:
    display = import_module("IPython.display").display  # only this function needs IPython
    return display(shown, raw=True, **options)


def _picture(file: str, name: str) -> _Shown:
    """An SVG file, no wider than the cell."""
    data = base64.b64encode(Path(file).read_bytes()).decode("ascii")
    source = f"data:image/svg+xml;base64,{data}"
    return _shown(f'<img style="max-width: 100%" alt="{escape(name)}" src="{source}">', name)


def _line(text: str) -> _Shown:
    return _shown(f"<p>{escape(text)}</p>", text)


def _shown(html: str, text: str) -> _Shown:
    return {"text/html": html, "text/plain": text}


def _as_notebook(sources: Sequence[str]) -> Mapping[str, Any]:
    """A notebook file with these cells."""
    cells = [{"cell_type": "code", "metadata": {}, "source": source} for source in sources]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def _run(words: Sequence[str], folder: str) -> list[str]:
    """Run `grade` with these words in this folder, and print what it prints; returns its lines.

    An interrupt is passed on to it.
    """
    package = Path(__file__).resolve().parent
    code = f"import sys; sys.path[0] = {str(package.parent)!r}; "
    code += f"from {package.name}.command.main import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        **_OUT_OF_REACH_OF_INTERRUPTS,
    )
    lines: SimpleQueue[str | None] = SimpleQueue()

    def read() -> None:
        with process, process.stdout as stream:  # type: ignore[union-attr]
            for line in stream:
                lines.put(line.replace(f"grade {words[0]}", f"%{words[0]}"))  # as it is typed here
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    printed: list[str] = []
    while True:
        try:
            if (line := lines.get(timeout=_TICK)) is None:
                return printed
            printed.append(line)
            sys.stdout.write(line)
        except Empty:
            continue
        except KeyboardInterrupt:
            process.terminate() if sys.platform == "win32" else process.send_signal(signal.SIGINT)


class Helper:
    """The process that grades for a notebook in `folder`.

    Only the main thread asks it; two other threads write and read.
    """

    def __init__(self, folder: str) -> None:
        self._numbers = itertools.count(1)
        self._requests: SimpleQueue[Mapping[str, Any] | None] = SimpleQueue()
        self._answers: SimpleQueue[Mapping[str, Any]] = SimpleQueue()
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - open while it runs
        self._process: subprocess.Popen[bytes] | None = None
        self._why = ""
        self.is_ready = False
        self.has_ended = False
        # Run in the folder that holds this package, so that a learner's file that is named like a
        # library cannot hide the library.
        package = Path(__file__).resolve().parent
        command = [sys.executable, "-m", package.name, "serve", "--folder", folder]
        try:
            self._process = subprocess.Popen(
                command,
                cwd=package.parent,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                **_OUT_OF_REACH_OF_INTERRUPTS,
            )
        except OSError as error:
            self.has_ended, self._why = True, error.strerror or str(error)
            return
        for body in (self._write, self._read):
            threading.Thread(target=body, args=(self._process,), daemon=True).start()

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to a request, or {"ended": one line} if the helper has ended.

        An interrupt cancels the request.
        """
        number = next(self._numbers)
        try:
            self._requests.put({"id": number, **request})
            while True:
                try:
                    answer = self._answers.get(timeout=_TICK)
                except Empty:
                    if self.has_ended:
                        return {"ended": self._ended()}
                    continue
                if answer["id"] == number:
                    return answer
        except KeyboardInterrupt:
            self._requests.put({"cancel": number})
            raise

    def close(self) -> None:
        """End the process."""
        self._requests.put(None)
        if self._process is None:
            return
        try:
            self._process.wait(_FAREWELL)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _write(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        with suppress(OSError, ValueError), process.stdin as stream:
            while (request := self._requests.get()) is not None:
                stream.write(json.dumps(request).encode() + b"\n")
                stream.flush()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout as stream:
            for line in stream:
                answer = json.loads(line)
                if "fatal" in answer:
                    self._why = answer["fatal"]
                elif "ready" in answer:
                    self.is_ready = True
                else:
                    self._answers.put(answer)
        process.wait()
        self._requests.put(None)
        self.has_ended = True

    def _ended(self) -> str:
        """Why there is no answer, in one line."""
        code = self._process.returncode if self._process is not None else 0
        if not self._why:
            self._complaints.seek(0)
            lines = self._complaints.read().decode("utf-8", "replace").split("\n")
            printed = [line.strip() for line in lines if line.strip()]
            self._why = printed[-1] if printed and code > 0 else f"exit code {code}"
            if code < 0:
                self._why = f"signal {-code}"
        return f"the grader has ended ({self._why}); run the cell again to start another"


_OUT_OF_REACH_OF_INTERRUPTS: Mapping[str, Any] = (
    {"creationflags": 0x0000_0200}  # CREATE_NEW_PROCESS_GROUP
    if sys.platform == "win32"
    else {"start_new_session": True}
)
