"""What a submission can reach holds no line of the checks, the solutions or the misconceptions.

The probe in probe.py is handed in as the learner's file. While real checks run it collects all it
can reach and gives it back as one long tensor, which is then looked through here.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from grader.read.submission import read_submission
from grader.run.answers import WorkerAnswers
from grader.run.collecting import with_checks
from grader.run.importing import Import
from grader.run.session import Checks
from grader.run.solutions import References
from grader.run.under_check import StageUnderCheck
from grader.run.worker.wire import Frame
from grader.run.workers import Interpreter
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE, ROOT

PROBE = Path(__file__).parent / "probe.py"
PUBLIC = (PROBE, Path(__file__))  # what the probe itself is made of
LIMITS = replace(COURSE.limits, call_seconds=300.0, stage_seconds=600.0, cpu_seconds=300)
SHORTEST = 30  # characters of a line that is worth looking for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux locks the worker")

IN_A_FUNCTION = """
import torch

ASKED = []


def split_heads(x, num_heads):
    if not ASKED:
        ASKED.append(True)
        return torch.frombuffer(bytearray(everything()), dtype=torch.uint8)
    raise ValueError("asked already")
"""
IN_A_MODULE = """
import torch
from torch import nn

from split_heads import split_heads
from softmax import attention_weights

ASKED = []
KEPT = []


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        self.num_heads = num_heads
        for name in ("w_q", "w_k", "w_v", "w_o"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=bias))

    def forward(self, query, key, value, mask=None):
        if ASKED:
            raise ValueError("asked already")
        ASKED.append(True)
        KEPT.append(attention_weights(split_heads(query, self.num_heads)))
        try:
            split_heads(query, query.shape[-1] + 1)
        except ValueError as error:
            KEPT.append(error)
        return torch.frombuffer(bytearray(everything()), dtype=torch.uint8), KEPT[0]
"""


def secret_files() -> list[Path]:
    folders = ("solutions", "hints", "hints/misconceptions", "tests/checks", "tests/kit")
    found = [path for folder in folders for path in sorted((ROOT / folder).glob("*.*"))]
    return [path for path in found if path.suffix in (".py", ".md") and path not in PUBLIC]


def secret_lines() -> dict[bytes, Path]:
    """Every distinctive line of the secret files, and where it is from.

    Lines of the stubs are the learner's own, those of the worker's code are there by design, and
    what every Python file may begin with tells nothing.
    """
    public = [*ROOT.glob("exercises/*.py"), *ROOT.glob("grader/run/worker/*.py"), *PUBLIC]
    known = {line for path in public for line in lines_of(path)}
    return {
        line: path
        for path in secret_files()
        for line in lines_of(path)
        if line not in known and not line.startswith((b"import ", b"from ", b"@pytest."))
    }


# Everywhere that a process may be able to read, the folders of the environment among them.
STARTS = [
    *("/", "/usr", "/lib", "/opt", "/etc", "/home", "/root", "/tmp", "/var"),
    *(str(folder) for folder in [ROOT, *ROOT.parents][:-1]),
    *(sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), *filter(None, sys.path)),
]


def lines_of(path: Path) -> Iterator[bytes]:
    for line in path.read_bytes().splitlines():
        if len(line.strip()) >= SHORTEST:
            yield line.strip()


SECRETS = secret_lines()


def texts(dump: bytes) -> set[bytes]:
    """The lines of a dump, in one, two or four bytes a letter, escaped or not, and printable runs.

    Without its zero bytes a text of two or four bytes a letter is a plain one.
    """
    plain = dump.replace(rb"\n", b"\n")
    found = [*plain.split(b"\n"), *plain.replace(b"\0", b"").split(b"\n")]
    found += re.findall(rb"[\x20-\x7e]{%d,}" % SHORTEST, plain)
    return {text.strip() for text in found if len(text) >= SHORTEST}


def leaks(dump: bytes) -> dict[bytes, Path]:
    """The secret lines that a dump holds."""
    return {text: SECRETS[text] for text in texts(dump) & SECRETS.keys()}


def probe(body: str, **told: object) -> bytes:
    """The probe's source, told where everything is."""
    places = {
        "PATHS": [str(path) for path in [*secret_files(), ROOT / "course.toml"]],
        "NAMES": sorted({path.name for path in secret_files()} - {"conftest.py"} | {"this.py"}),
        "PIDS": [os.getpid(), os.getppid()],
    }
    head = "".join(f"{name} = {value!r}\n" for name, value in (places | told).items())
    return (head + PROBE.read_text(encoding="utf-8") + body).encode()


@pytest.fixture(scope="module")
def dumps(interpreter: Interpreter) -> Mapping[str, bytes]:
    """What the probe found in a stage of its own, and in one that is answered by references."""

    def body(checks: Checks) -> dict[str, bytes]:
        alone = probe(IN_A_FUNCTION, STARTS=STARTS)
        answered = probe(IN_A_MODULE, LARGEST=96 << 20)
        return {
            "alone": _dump(interpreter, checks, "split_heads", alone),
            "answered": _dump(interpreter, checks, "multi_head_attention", answered),
        }

    return with_checks(COURSE, COURSE.stages, body)


class KeepsLongest(WorkerAnswers):
    """A worker's answers, of which the longest is kept: the record of a stage holds less."""

    longest = b""

    def answer(self, request: Frame) -> Frame:
        reply = super().answer(request)
        self.longest = max(self.longest, reply.data, key=len)
        return reply


def _dump(interpreter: Interpreter, checks: Checks, slug: str, source: bytes) -> bytes:
    course = replace(COURSE, limits=LIMITS)
    stage = course.stage(slug)
    files = dict(read_submission(ROOT / "exercises").files)
    files[stage.file_name] = source
    answered = course.required(stage)
    references = References(interpreter, course, answered) if answered else None
    importing = Import(course, stage, Submission("probe", files), answered)
    answers = KeepsLongest(interpreter, importing, references=references)
    facts = checks.run(stage, StageUnderCheck(stage, answers), 7, "cpu")
    if references is not None:
        references.close()
    assert not interpreter.missing_layers
    assert len(answers.longest) > 1 << 20, {fact.message for fact in facts.cases}
    return answers.longest


@pytest.fixture(scope="module")
def everyones(tmp_path_factory: pytest.TempPathFactory) -> set[bytes]:
    """The lines that any process has in its heap which loads the libraries of the course.

    A line of code may be so plain that torch's own source has it too.
    """
    file = tmp_path_factory.mktemp("everyones") / "dump"
    script = file.with_suffix(".py")
    libraries = "".join(f"import {name}\n" for name in COURSE.preload)
    body = f"\nwith open({str(file)!r}, 'wb') as file:\n    file.write(b'\\n'.join(heap()))\n"
    script.write_text(libraries + PROBE.read_text(encoding="utf-8") + body, encoding="utf-8")
    subprocess.run([sys.executable, "-I", str(script)], check=True, timeout=60)
    found = texts(file.read_bytes()) & SECRETS.keys()
    assert len(found) < 20, found
    return found


each = pytest.mark.parametrize("where", ["alone", "answered"])


@each
def test_no_secret_line_is_within_reach(
    dumps: Mapping[str, bytes], everyones: set[bytes], where: str
) -> None:
    found = {line: file for line, file in leaks(dumps[where]).items() if line not in everyones}
    assert not found, "\n".join(f"{path.name}: {line!r}" for line, path in found.items())


@each
def test_the_probe_is_not_blind(dumps: Mapping[str, bytes], where: str) -> None:
    dump = dumps[where]
    assert b"a line of the probe's own, which must be found" in dump
    if where == "alone":
        assert b"Gur Mra bs Clguba" in dump  # of the standard library's this.py
        walked = re.search(rb"walked over (\d+) files", dump)
        assert walked is not None and int(walked[1]) > 1000
    else:
        looked = re.search(rb"looked through (\d+) of (\d+) pages", dump)
        assert looked is not None and int(looked[1]) > 5000


def test_only_the_environments_own_files_can_be_opened(dumps: Mapping[str, bytes]) -> None:
    # The heap may also hold the beginning of such a line, with any bytes after it, or its end.
    found = re.findall(rb"\nopened ([^\n\0]+) indeed\n", b"".join(dumps.values()))
    opened = {os.path.realpath(os.fsdecode(path)) for path in found}
    stdlib = os.path.realpath(os.path.dirname(os.__file__))
    assert f"{stdlib}/this.py" in opened
    of_the_environment = (stdlib, os.path.realpath(sys.prefix), "/usr/lib")
    for path in opened:
        assert path.startswith(of_the_environment), path
        assert "/grader/" not in path, path
    assert not opened & {os.path.realpath(path) for path in secret_files()}


@each
def test_one_socket_and_nothing_else_is_open(dumps: Mapping[str, bytes], where: str) -> None:
    found = re.findall(rb"\nopen descriptor (\d+) of mode (\d)", dumps[where])
    kinds = {int(number): kind for number, kind in found}
    assert {number: kinds.pop(number) for number in (0, 1, 2)} == {0: b"2", 1: b"2", 2: b"2"}
    assert list(kinds.values()) == [b"1"]  # S_IFSOCK is 0o140000, S_IFCHR 0o020000


def test_without_the_lock_it_finds_them(tmp_path: Path) -> None:
    """The same probe, started as an ordinary program, sees every secret file."""
    script = tmp_path / "open_probe.py"
    dump = str(tmp_path / "dump")
    body = f"\nwith open({dump!r}, 'wb') as file:\n    file.write(b'\\n'.join(files() + heap()))\n"
    script.write_bytes(probe(body))
    subprocess.run([sys.executable, "-I", str(script)], check=True, timeout=60)
    assert set(leaks((tmp_path / "dump").read_bytes()).values()) == set(SECRETS.values())
