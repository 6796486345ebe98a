"""Hostile submissions among honest ones: each costs its own points and nothing else.

They are graded by one engine, an honest one after each. The threats are in docs/threat-model.md,
which names these tests. What a worker may not do is tried call by call in run/worker/test_lock.py,
what it can reach is looked through in attacks/test_secrecy.py; careless submissions are in
situations/.
"""

import json
import os
import re
import secrets
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import hypothesis
import pytest

from grader.channels.gradescope import results as gradescope
from grader.engine import Engine, Request, with_engine
from grader.run.worker.scratch import OWNER
from grader.show.html import verdict_html
from grader.show.junit import junit
from grader.show.scoreboard import scoreboard
from grader.show.terminal import explanation
from grader.types.report import Outcome, Report, Status, to_json
from grader.types.submission import Submission
from tests.kit.attacks.few_checks import leave_few
from tests.kit.support.checkout import COURSE as REAL
from tests.kit.support.checkout import ROOT
from tests.kit.support.drawn import draw

LIMITS = replace(REAL.limits, memory_mb=512, scratch_mb=32, file_mb=8, cpu_seconds=20)
COURSE = replace(REAL, limits=LIMITS)
# An attack may take that long; nobody waits longer where a loop is to be waited for.
SHORT = replace(
    COURSE, limits=replace(LIMITS, call_seconds=0.4, load_seconds=0.6, stage_seconds=0.5)
)
KEPT = {"shape": 1, "values": 2, "gradients": 1}  # of its checks, and what each is worth
FULL = sum(KEPT.values())
STAGE = replace(COURSE.stage("concat_heads"), points=FULL)
SEED = 3
TOKEN = secrets.token_hex(16)
RIGHT = "x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)"
HONEST = f"def concat_heads(x):\n    return {RIGHT}\n"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux locks the worker")

PRELUDE = """
import builtins, ctypes, gc, json, os, resource, signal, socket, struct, sys, threading, time

import torch

KIT, SIBLING, RESULTS, PORT, GRADER = {kit!r}, {sibling!r}, {results!r}, {port}, {grader}


def tries(*actions):
    "What came of each: what an action gave, or the error that refused it."
    told = []
    for action in actions:
        try:
            told.append(f"GOT {{action()!r}}"[:300])
        except BaseException as error:
            told.append(f"refused by {{type(error).__name__}}")
    raise RuntimeError("; ".join(told))


def wire():
    return sys.modules["grader.run.worker.wire"]


def channel():
    "The worker's own end of the protocol."
    return next(o for o in gc.get_objects() if type(o).__name__ == "Channel")


def connection():
    "The descriptor of the worker's socket."
    import stat
    return next(n for n in range(3, 64) if is_open(n) and stat.S_ISSOCK(os.fstat(n).st_mode))


def is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


"""


@dataclass(frozen=True)
class Attack:
    """A hostile concat_heads.py; what must be said to its author, and the points that it is worth.

    `says` is looked for in the messages and what was printed: it shows that the attack was made.
    """

    code: str
    says: str = ""
    worth: float = 0
    short: bool = False  # nobody waits long for it
    slow: bool = False  # tried only by those who ask for it
    within: float = 20.0
    files: Mapping[str, str] = field(default_factory=dict)


def does(line: str, says: str = "", **more: Any) -> Attack:
    """A function of one line."""
    return Attack(f"def concat_heads(x):\n    {line}\n", says, **more)


def asks(*actions: str, setup: str = "", says: str = "refused by") -> Attack:
    """Actions that must all be refused."""
    body = ", ".join(f"lambda: {action}" for action in actions)
    return Attack(f"{setup}\ndef concat_heads(x):\n    tries({body})\n", says)


def sends(header: str, data: str = "b''", aside: str = "None", says: str = "") -> Attack:
    """A reply that the learner's code makes up: every one is this one."""
    return Attack(
        f"""
def concat_heads(x):
    Channel, Frame = wire().Channel, wire().Frame
    original = Channel.send
    def send(self, frame, deadline=None):
        original(self, Frame({header}, {data}, {aside}))
    Channel.send = send
    return {RIGHT}
""",
        says,
    )


def hoards(item: str, says: str, **more: Any) -> Attack:
    """A function that keeps such items, one after the other, without end."""
    code = f"hoard = []\ndef concat_heads(x):\n    while True: hoard.append({item})\n"
    return Attack(code, says, **more)


def fills(work: str, done: str, **more: Any) -> Attack:
    """Work that fills a disk, and what is `done` if nothing stops it."""
    says = "more files than it may|No answer in"
    return does(f"{work}\n    raise RuntimeError('GO' + 'T {done}')", says, short=True, **more)


def sends_array(array: str, data: str = "b''") -> Attack:
    """A reply with one array, which is said to be like this."""
    return sends(f"{{'value': {{'tensor': 0}}, 'arrays': [{{{array}}}]}}", data)


FORGING = {
    "claims that all passed": sends(
        "{'value': True, 'passed': True, 'outcome': 'passed', 'score': 100, 'points': 100}"
    ),
    "answers with no header": sends("{}"),
    "an error that is no error": sends("{'error': 'passed'}"),
    "an error of the grader's": sends(
        "{'error': {'type': 'Diverged', 'bases': ['BaseException']}}"
    ),
    "an error that ends pytest": sends(
        "{'error': {'type': 'Exit', 'bases': ['KeyboardInterrupt', 'SystemExit']}}"
    ),
    "says that it is a stub": sends(
        "{'error': {'type': 'NotImplementedError', 'stub': 1, 'frames': 7}}", says="Not"
    ),
    "an import that fails in no place": Attack(
        """
Channel, Frame = wire().Channel, wire().Frame
original = Channel.send
def send(self, frame, deadline=None):
    original(self, Frame({"error": {"type": "NotImplementedError", "frames": 7}}))
Channel.send = send
""",
        "cannot be imported",
    ),
    "a handle to what it does not have": sends("{'value': {'handle': 10 ** 30, 'type': 'Tensor'}}"),
    "an array that did not come": sends("{'value': {'tensor': 0}, 'arrays': []}"),
    "an array of a negative shape": sends_array("'dtype': 'float32', 'shape': [-1, 4]"),
    "an array of a huge shape": sends_array("'dtype': 'float32', 'shape': [1 << 39, 1 << 39]"),
    "an array of no bytes": sends_array("'dtype': 'float32', 'shape': [2, 3, 8]"),
    "an array on a device that is not there": sends_array(
        "'dtype': 'int8', 'shape': [1], 'device': 'cuda:7'", "b'x'"
    ),
    "an array of an unknown dtype": sends_array("'dtype': '__class__', 'shape': [1]", "b'x'"),
    "arguments that were changed, which never came": sends(
        "{'value': None, 'changed': {'list': [{'tuple': [99, {'tensor': 0}]}]}, 'arrays': []}"
    ),
    "changed arguments of another form": sends("{'value': None, 'changed': {'dict': [[1]]}}"),
    "a call that nobody made": sends("{'value': None, 'call': {'tuple': []}, 'arrays': 5}"),
    "numbers that are none": sends("{'value': float('nan'), 'call': -1, 'printed': [{}]}"),
    "a letter that is no letter": Attack(
        sends("{'value': None}", aside="{'printed': chr(0xd800) * 99 + chr(27) + '[2J'}").code,
        r"\\ud800\\ud800.*\\x1b\[2J",
    ),
    "what it prints, without end": sends("{'value': None}", aside="{'printed': 'x' * 900_000}"),
    "deep nesting": Attack(
        f"""
def concat_heads(x):
    header = b'{{"value":' + b'[' * 200_000 + b']' * 200_000 + b'}}'
    os.write(connection(), struct.pack("<III", len(header), 0, 0) + header)
    return {RIGHT}
"""
    ),
    "a frame of four gigabytes": Attack(
        "def concat_heads(x):\n    os.write(connection(), b'\\xff' * 12)\n    time.sleep(0.3)\n",
        "sent an invalid answer",
    ),
    "no protocol at all": does(
        "os.write(connection(), b'HTTP/1.1 200 OK\\r\\n\\r\\n' * 9)", "sent an invalid answer"
    ),
    "a reply before the question": Attack(
        f"""
def concat_heads(x):
    # The answers to all checks that are still to come, each of them "nothing wrong".
    for _ in range(50):
        channel().send(wire().Frame({{"value": None, "call": 0, "changed": {{"list": []}}}}))
    return {RIGHT}
"""
    ),
    "a reply and then another one": Attack(
        f"""
def concat_heads(x):
    Channel = wire().Channel
    if not hasattr(Channel, "first"):
        Channel.first = Channel.send
        def twice(self, frame, deadline=None):
            self.first(frame)
            self.first(frame)
        Channel.send = twice
    return {RIGHT}
""",
        worth=1,
    ),
    "asks where nobody is to be asked": Attack(
        """
def concat_heads(x):
    target = {"function": "concat_heads"}
    channel().send(wire().Frame({"op": "call", "target": target}, b"", {"ask": True}))
    return channel().receive()
""",
        "the worker sent a question, but nothing answers it",
    ),
    "asks without end": Attack(
        """
def concat_heads(x):
    while True:
        channel().send(wire().Frame({"op": "end", "pid": GRADER, "grace": 0}, b"", {"ask": True}))
""",
        "the worker sent a question, but nothing answers it",
    ),
    "a skip of pytest's": Attack(
        "def concat_heads(x):\n    import pytest\n    pytest.skip('not today')\n", "Skipped"
    ),
    "an exit of pytest's": Attack(
        "def concat_heads(x):\n    import pytest\n    pytest.exit('bye', returncode=0)\n", "Exit"
    ),
    "Ctrl-C": does("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "ends well at its end": Attack(
        "import atexit\natexit.register(os._exit, 0)\ndef concat_heads(x):\n    sys.exit(0)\n",
        "sys.exit",
    ),
    "an answer that equals everything": Attack(
        """
class Equal:
    shape = dtype = device = property(lambda self: self)
    def __eq__(self, other): return True
    def __getattr__(self, name): return self
    def __call__(self, *args, **kwargs): return self
    def __bool__(self): return True
    def __iter__(self): return iter(())
    __hash__ = None
def concat_heads(x):
    return Equal()
""",
        "returned a concat_heads.Equal",
    ),
    "what compares, in its own process": Attack(
        """
for name in ("equal", "allclose", "isclose"):
    setattr(torch, name, lambda *args, **kwargs: True)
torch.testing.assert_close = print
torch.Tensor.__eq__ = torch.Tensor.__ne__ = lambda self, other: True
builtins.AssertionError = ValueError
def concat_heads(x):
    return torch.zeros(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])
""",
        "is wrong at B=0",
        worth=1,
    ),
    "the grader's own code in its process": Attack(
        """
bench, server = (sys.modules[f"grader.run.worker.{name}"] for name in ("bench", "stage_server"))
bench.describe = server.describe = lambda *a: {"type": "Passed"}
bench.Bench.answer = lambda self, request: wire().Frame({"value": None, "call": 0})
json.JSONEncoder.encode = lambda self, value: '{"value": null}'
sys.modules["grader.judge.verdict"] = sys.modules["grader.checking"] = sys
def concat_heads(x): ...
"""
    ),
}

READING = {
    "files of the course": asks(
        "open(KIT + '/course.toml').read()",
        "open(KIT + '/solutions/concat_heads.py').read()",
        "open(KIT + '/tests/checks/test_concat_heads.py').read()",
        "os.listdir(KIT)",
        "open(KIT + '/grader/checking/comparing.py').read()",
    ),
    "another one's submission": asks(
        "open(SIBLING + '/concat_heads.py').read()", "os.listdir(SIBLING)", "open(RESULTS).read()"
    ),
    "by modules": asks(
        "__import__('grader.checking')",
        "__import__('grader.authoring.verify.verify')",
        "__import__('importlib').import_module('solutions.concat_heads')",
        "__import__('runpy').run_path(KIT + '/solutions/concat_heads.py')",
        "__import__('importlib.metadata').metadata.files('course-grader')[0]",
        "__import__('importlib.resources').resources.files('grader')",
    ),
    "by the C library": asks(
        "os.fdopen(libc.open(f'{KIT}/course.toml'.encode(), 0)).read()",
        "os.fdopen(libc.syscall(257, -100, f'{KIT}/course.toml'.encode(), 0)).read()",
        "os.fdopen(libc.memfd_create(b'x', 0))",
        setup="libc = ctypes.CDLL(None)",
    ),
    "by /proc": asks(
        *(
            f"open(f'/proc/{{{who}}}/{what}', 'rb').read(99)"
            for who in ("GRADER", "os.getppid()", "os.getpid()", '"self"')
            for what in ("environ", "mem", "maps", "cmdline", "root/etc/passwd", "cwd/x")
        ),
        "os.listdir('/proc')",
        "os.readlink(f'/proc/{GRADER}/exe')",
    ),
    "its environment": Attack(
        "def concat_heads(x):\n"
        "    raise RuntimeError(sorted({**os.environ, **{k.decode(): 1 for k in os.environb}}))\n",
        r"\[('LC_CTYPE', )?'LOGNAME', 'TMPDIR'\]",
    ),
    "its descriptors": does(
        "raise RuntimeError([n for n in range(3, 4096) if is_open(n)])", r"RuntimeError: \[\d+\]\n"
    ),
    "its command line and paths": does(
        "raise RuntimeError((sys.argv, sys.orig_argv[1:4]))", r"\['-c'\], \['-I', '-X', 'utf8'\]"
    ),
    "the folders around its own": asks(
        "os.listdir('..')", "os.listdir('../..')", "open('../x', 'w')", "os.scandir('/tmp')"
    ),
    "the network": asks(
        "socket.create_connection(('127.0.0.1', PORT), 1)",
        "socket.getaddrinfo('localhost', PORT)",
        "socket.socket(socket.AF_UNIX)",
        "socket.socketpair()",
        "__import__('urllib.request').request.urlopen(f'http://127.0.0.1:{PORT}/', timeout=1)",
        "kept.append(socket.socket(fileno=connection())) or kept[-1].connect(('127.0.0.1', PORT))",
        setup="kept = []",
    ),
    "a program": asks(
        "os.system('true') and None.x",
        "os.popen('cat /etc/passwd').read()",
        "__import__('subprocess').run(['/bin/true'])",
        "os.execv(sys.executable, ['python'])",
        "ctypes.CDLL(None).system(b'true') and None.x",
        "__import__('multiprocessing').Process(target=print).start()",
        "__import__('webbrowser').open('http://127.0.0.1') or None.x",
    ),
    "the checks, in the frames above": Attack(
        """
def concat_heads(x):
    frame, files = sys._getframe(), []
    while frame:
        files.append(frame.f_code.co_filename)
        frame = frame.f_back
    raise RuntimeError(files)
""",
        r"\['concat_heads.py', ('<grader (bench|stage_server|server)>', )+'<string>'\]",
    ),
}

WRITING = {
    "files of the kit": asks(
        "open(KIT + '/solutions/concat_heads.py', 'a')",
        "open(KIT + '/tests/checks/test_concat_heads.py', 'w')",
        "os.unlink(KIT + '/course.toml')",
        "os.rename(KIT + '/grader', KIT + '/g')",
        "os.chmod(KIT + '/course.toml', 0)",
        "os.utime(KIT + '/course.toml')",
        "os.truncate(KIT + '/course.toml', 0)",
        "os.mkdir(KIT + '/grader/evil')",
        "os.setxattr(KIT + '/course.toml', 'user.x', b'')",
    ),
    "the environment's libraries": asks(
        "open(torch.__file__, 'r+')",
        "open(os.__file__, 'a')",
        "os.rename(torch.__file__, torch.__file__ + '.old')",
        "open(os.path.dirname(torch.__file__) + '/evil.py', 'x')",
        "__import__('py_compile').compile(os.__file__, cfile=os.__file__ + 'c', doraise=True)",
    ),
    "results and siblings": asks(
        "open(RESULTS, 'a')",
        "open(SIBLING + '/concat_heads.py', 'w')",
        "os.replace(SIBLING + '/concat_heads.py', 'mine')",
        "os.link(RESULTS, 'mine')",
        "os.symlink(RESULTS, 'mine')",
        "__import__('sqlite3').connect(RESULTS).execute('create table t (x)')",
    ),
    "things for others to fall over": asks(
        "os.symlink('/etc/passwd', 'link')",
        "os.mkfifo('pipe')",
        "os.mknod('device', 0o20666, os.makedev(1, 5))",
        "os.chmod('.', 0)",
        "os.mknod('/dev/shm/x')",
        "open('/dev/shm/x', 'w')",
        "open('/dev/full', 'w')",
        "open('/dev/tty')",
    ),
    "the processes around it": asks(
        "os.kill(os.getppid(), signal.SIGKILL)",
        "os.kill(GRADER, signal.SIGSTOP)",
        "os.kill(-1, signal.SIGKILL)",
        "os.killpg(0, signal.SIGKILL)",
        "os.setpriority(os.PRIO_PROCESS, GRADER, 19)",
        "resource.prlimit(GRADER, resource.RLIMIT_CPU, (0, 0))",
        "os.sched_setaffinity(GRADER, [0])",
        "signal.pidfd_send_signal(os.pidfd_open(GRADER), 9)",
        "os.setsid()",
        "os.setpgid(0, 0)",
    ),
    "its own limits": asks(
        *(
            f"resource.setrlimit(resource.RLIMIT_{name}, (resource.RLIM_INFINITY,) * 2)"
            for name in ("AS", "CPU", "FSIZE", "NOFILE", "CORE")
        )
    ),
    "the scratch folder itself": Attack(
        f"""
import shutil
shutil.rmtree(os.getcwd(), ignore_errors=True)
def concat_heads(x):
    return {RIGHT}
""",
        worth=FULL,
    ),
}

TENSORS = {
    "a subclass that lies about its shape": Attack(
        """
class Liar(torch.Tensor):
    shape = property(lambda self: torch.Size([2, 3, 8]))
    size = stride = lambda self, *a: torch.Size([2, 3, 8])
    numel = lambda self: 10 ** 12
    element_size = lambda self: 0
    is_contiguous = lambda self, *a, **k: True
def concat_heads(x):
    return torch.zeros(1).as_subclass(Liar)
""",
        "does not hold the numbers of its shape",
    ),
    "a subclass that never answers": Attack(
        """
class Loop(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *args, **kwargs):
        while True: pass
def concat_heads(x):
    return x.as_subclass(Loop)
""",
        "endless loop",
        short=True,
        slow=True,
    ),
    "a giant without memory": does("return torch.zeros(1).expand(1 << 40)", "is too large"),
    "a giant of nothing": does("return torch.empty(0, 1 << 40, 1 << 20)"),
    "a giant, really": does(
        "return torch.zeros(200 << 20, dtype=torch.int8)", "is too large", slow=True
    ),
    "many giants": does(
        "return [torch.zeros(100 << 20, dtype=torch.int8)] * 9", short=True, slow=True
    ),
    "memory that is not its own": Attack(
        """
def concat_heads(x):
    tensor = torch.zeros(4)
    tensor.set_(torch.UntypedStorage(16), 0, (1 << 10,), (1,))
    return tensor
"""
    ),
    "NaN, which differs from all": does(
        f"return torch.full_like({RIGHT}, float('nan'))", "NaN", worth=1
    ),
    "strides that point everywhere": does("return torch.zeros(9).as_strided((9, 9, 9), (0, 0, 0))"),
    "layouts that no check expects": Attack(
        """
kinds = [
    lambda x: x.to_sparse(), lambda x: x.to("meta"), lambda x: torch.nested.nested_tensor([x, x]),
    lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), lambda x: (x + 1j * x).conj(),
    lambda x: torch.nn.Parameter(x), lambda x: x.to_mkldnn(), lambda x: torch._neg_view(x),
    lambda x: torch.zeros(3, dtype=torch.float8_e4m3fn), lambda x: x.numpy(), lambda x: x.storage(),
]
def concat_heads(x):
    made = []
    for kind in kinds:
        try:
            made.append(kind(x))
        except (RuntimeError, NotImplementedError):
            pass
    return made
"""
    ),
    "a length that lies": Attack(
        """
class Long(list):
    def __len__(self): return 1 << 60
    def __iter__(self):
        while True: yield 1
def concat_heads(x):
    return Long()
""",
        r"a list \(more than",
        short=True,
    ),
    "a list in itself": Attack(
        "def concat_heads(x):\n    mine = []\n    mine.append(mine)\n    return mine\n",
        "a list of 1",
    ),
    "more values than may pass": does("return [[1] * 9999] * 20", "its values are too many"),
    "a dictionary without end": Attack(
        """
class Endless(dict):
    def items(self):
        while True: yield 'key', 'value' * 1000
def concat_heads(x):
    return Endless(a=1)
""",
        short=True,
        slow=True,
    ),
    "a type that does not want to be known": Attack(
        """
class Meta(type):
    @property
    def __module__(cls): raise SystemExit
    @property
    def __qualname__(cls): os._exit(0)
    def __getattribute__(cls, name): raise MemoryError
class Hidden(metaclass=Meta): pass
def concat_heads(x):
    return Hidden()
"""
    ),
    "a number of a million digits": does("return 1 << 4_000_000", "too large"),
    "a text of a gigabyte": does("return 'x' * (1 << 27)", "too long", short=True, slow=True),
    "its input, changed behind its back": Attack(
        f"""
def concat_heads(x):
    torch.set_grad_enabled(False)
    x.zero_()
    x.resize_(1 << 20)
    return {RIGHT}
"""
    ),
    "gradients that it makes up": Attack(
        f"""
class Free(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return {RIGHT}
    @staticmethod
    def backward(ctx, grad): return torch.zeros(1).expand(1 << 40)
def concat_heads(x):
    return Free.apply(x)
""",
        "radient",
        worth=FULL - 1,
    ),
    "modes that change every operation": Attack(
        f"""
from torch.overrides import TorchFunctionMode
class Mode(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return torch.zeros(2)
Mode().__enter__()
torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")
def concat_heads(x):
    return {RIGHT}
"""
    ),
}

EXHAUSTING = {
    "processor time, in threads": Attack(
        """
def spin():
    while True: pass
for _ in range(4): threading.Thread(target=spin, daemon=True).start()
def concat_heads(x):
    while True: pass
""",
        "endless loop",
        short=True,
    ),
    "processor time of others, in many threads": Attack(
        """
threading.stack_size(65536)
def concat_heads(x):
    for _ in range(900): threading.Thread(target=time.sleep, args=(9,), daemon=True).start()
    time.sleep(9)
""",
        "too many threads",
        short=True,
    ),
    "wall time": does("time.sleep(1e6)", "No answer in", short=True, slow=True),
    "wall time, stopped": does(
        "os.kill(os.getpid(), signal.SIGSTOP)", "No answer in", short=True, slow=True
    ),
    "time while it is imported": Attack(
        "import re\nre.match('(a+)+$', 'a' * 60 + 'b')\n" + HONEST,
        "while it was imported",
        short=True,
    ),
    "memory, page by page": hoards(
        "bytearray(1 << 20)", "MemoryError|No answer in", short=True, slow=True
    ),
    "memory of torch": does("return torch.ones(1 << 34)", "can't allocate memory"),
    "memory of shared pages": Attack(
        """
import mmap
hoard = []
def concat_heads(x):
    while True:
        hoard.append(mmap.mmap(-1, 64 << 20))
        hoard[-1][:] = bytes(64 << 20)
""",
        "OSError|MemoryError|No answer in",
        short=True,
        slow=True,
    ),
    "processes": asks(
        "os.fork()",
        "os.forkpty()",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "ctypes.CDLL(None).clone(None, None, 17) and 1 / (ctypes.get_errno() + 0)",
    ),
    "threads of small stacks": Attack(
        """
threading.stack_size(32768)
made = 0
def concat_heads(x):
    global made
    while True:
        threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()
        made += 1
        if made > 20_000: raise RuntimeError("GO" + "T 20,000 threads")
""",
        "too many threads|No answer in|can't start new thread",
        short=True,
        slow=True,
    ),
    "open files": hoards("open('/dev/null')", "Too many open files"),
    "pipes": hoards("os.pipe()", "Too many open files"),
    "files without a name": Attack(
        """
hoard = []
def concat_heads(x):
    while True:
        file = open("a", "wb")
        os.unlink("a")
        file.write(bytes(1 << 20))
        hoard.append(file)
""",
        "Too many open files",
        short=True,
    ),
    "one large file": does("open('a', 'wb').write(bytes(9 << 20))", "File too large", short=True),
    "a disk of many files": fills(
        "for n in range(200): open(str(n), 'wb').write(bytes(4 << 20))", "800 MB"
    ),
    "a disk of small files": fills(
        "for n in range(100_000): open(str(n), 'x').close()", "100,000 files", slow=True
    ),
    "a disk of deep folders": fills(
        "for _ in range(20_000): os.mkdir('d'); os.chdir('d')", "20,000 folders", slow=True
    ),
    "a disk of holes": fills(
        "for n in range(20_000): open(str(n), 'wb').truncate(8 << 20)", "160 GB", slow=True
    ),
    "output": Attack(
        f"""
def concat_heads(x):
    for _ in range(20): print("spam" * 100_000); sys.stderr.write("spam" * 100_000)
    os.write(1, b"spam" * 100_000); os.write(2, b"spam" * 100_000)
    return {RIGHT}
""",
        "and more",
        worth=FULL,
    ),
    "a message": Attack(
        """
class Endless(Exception):
    def __str__(self): return "no " * 50_000_000
def concat_heads(x):
    raise Endless
""",
        short=True,
        slow=True,
    ),
    "a message that never ends": Attack(
        """
class Endless(Exception):
    def __str__(self):
        while True: pass
def concat_heads(x):
    raise Endless
""",
        "endless loop",
        short=True,
        slow=True,
    ),
    "a line of code that is slow to search": sends(
        "{'error': {'type': 'Exception', 'message': 'leaf Variable that requires grad is being '"
        "'used in an in-place operation', 'frames': [{'line': 1, 'text': 'x.bias[' * 120_000}]}}",
        says="in words",
    ),
    "names": Attack(
        f"""
for number in range(100_000): globals()[f"name{{number}}" * 50] = number
{HONEST}
""",
        worth=FULL,
    ),
    "a frame at its cap, each time": Attack(
        """
hoard = torch.zeros(128 << 20, dtype=torch.int8)
def concat_heads(x):
    return hoard
""",
        "all its answers together are too large",
        slow=True,
    ),
    "a header at its cap, each time": does("return ['x' * 19_000] * 54", "a list of 54"),
    "the stack": Attack(
        """
sys.setrecursionlimit(1 << 30)
def concat_heads(x):
    return concat_heads(x)
""",
        "segmentation fault|RecursionError|MemoryError|No answer in",
        short=True,
        slow=True,
    ),
}

OUTLIVING = {
    "a thread that stays": Attack(
        f"""
def stay():
    number = 0
    while True:
        try: open(f"left{{number % 50}}", "w").write("here"); number += 1
        except OSError: pass
for _ in range(3): threading.Thread(target=stay).start()
{HONEST}
""",
        worth=FULL,
    ),
    "a farewell": Attack(
        f"""
import atexit, weakref
def bye(*args): open("left", "w").write("here"); time.sleep(1e6)
atexit.register(bye)
class Last:
    __del__ = bye
last = Last()
weakref.finalize(last, bye)
for number in range(1, 65):
    try: signal.signal(number, bye)
    except (OSError, ValueError): pass
{HONEST}
""",
        worth=FULL,
    ),
    "its socket closed, and on": Attack(
        """
def concat_heads(x):
    os.close(connection())
    while True: time.sleep(1)
""",
        "SIGKILL|killed|crashed|ended",
        short=True,
    ),
    "its death signal undone": asks(
        "ctypes.CDLL(None, use_errno=True).prctl(1, 0, 0, 0, 0) and [][ctypes.get_errno()]",
        "os.setsid()",
        "os.fork()",
        "ctypes.CDLL(None, use_errno=True).prctl(4, 1, 0, 0, 0) and [][ctypes.get_errno()]",
    ),
    "folders that their owner may not enter": Attack(
        f"""
def leave(place, mode):
    os.makedirs(f"{{place}}/inside/deeper")
    for folder in (place, f"{{place}}/inside", f"{{place}}/inside/deeper"):
        open(f"{{folder}}/file", "wb").write(bytes(4096))
    os.umask(0)
    os.mkdir(f"{{place}}/inside/closed", mode)
for mode in (0, 0o100, 0o200, 0o300, 0o400, 0o500):
    leave(f"mode {{mode:o}}", mode)
os.mkdir("unwritable", 0o500); os.mkdir("closed", 0); os.mkdir(os.fsencode("\\udcff\\n"), 0o500)
os.umask(0o777); os.makedirs("of a mask"); open("file of a mask", "w").close()
{HONEST}
""",
        worth=FULL,
    ),
    "names that are hard to list": Attack(
        f"""
for name in (b"\\xff\\xfe", b"new\\nline", b"-rf", b"*", b"~", b" ", b"\\x1b[2J", b"n" * 255):
    open(name, "wb").write(b"here"); os.mkdir(name[:200] + b".folder", 0o300)
{HONEST}
""",
        worth=FULL,
    ),
    "files that are open, without a name": Attack(
        f"""
held = []
for number in range(6):
    held.append(open(str(number), "wb")); os.unlink(str(number)); held[-1].write(bytes(4 << 20))
os.mkdir("held"); held.append(os.open("held", os.O_RDONLY)); os.chdir("held"); os.rmdir("../held")
{HONEST}
""",
        worth=FULL,
    ),
    "memory that outlives its process": asks(
        "open('/dev/shm/left', 'w')",
        "open('/dev/mqueue/left', 'w')",
        "open('/tmp/left', 'w')",
        "os.memfd_create('left')",
        *(
            f"ctypes.CDLL(None, use_errno=True).syscall({number}, *{arguments}) + 1"
            " or (_ for _ in ()).throw(OSError(ctypes.get_errno(), 'no'))"
            for number, arguments in (
                (29, (0, 4096, 0o1600)),  # shmget
                (64, (0, 1, 0o1600)),  # semget
                (68, (0, 0o1600)),  # msgget
                (240, (b"left", 0o102, 0o600, None)),  # mq_open
                (248, (b"user", b"left", b"here", 4, -4)),  # add_key
                (249, (b"user", b"left", None, -4)),  # request_key
                (250, (1, None)),  # keyctl, a session of its own
            )
        ),
    ),
    "a mark for the next one": Attack(
        """
def concat_heads(x):
    import builtins, fcntl, linecache, random
    for number in range(3): fcntl.fcntl(number, fcntl.F_SETFL, os.O_APPEND)
    builtins.MARK = sys.MARK = torch.MARK = os.environ["MARK"] = "left"
    torch.manual_seed(0); torch.set_num_threads(4); torch.set_default_dtype(torch.float64)
    for place in (".", "..", "/tmp", "/dev/shm", "/var/tmp"):
        try: open(f"{place}/mark", "w").write("left")
        except OSError: pass
    raise RuntimeError("marked")
""",
        "marked",
    ),
    "the mark of the one before": Attack(
        """
def concat_heads(x):
    import builtins, fcntl
    flags = sum(fcntl.fcntl(number, fcntl.F_GETFL) & os.O_APPEND for number in range(3))
    found = [where for where in (builtins, sys, torch) if hasattr(where, "MARK")]
    found += [place for place in (".", "/tmp", "/dev/shm") if os.path.exists(f"{place}/mark")]
    raise RuntimeError((found, os.environ.get("MARK"), torch.get_default_dtype(), flags))
""",
        r"\(\[\], None, torch.float32, 0\)",
    ),
}

SPOOFING = {
    "escape codes in everything": Attack(
        r'''
EVIL = "\x1b[2J\x1b[H\x1b]0;owned\x07\x1b]52;c;ZXZpbA==\x07\x9b31m\r\b\x00\u202e\u200b\ud800[red]"
EVIL += "<script>alert(1)</script>&lt;"
SOURCE = """
def f():
    raise type(EVIL[:90].replace(chr(0), ''), (Exception,), {})(EVIL)
"""
def concat_heads(x):
    print(EVIL)
    code = compile(SOURCE, "concat_heads.py", "exec")
    names = {"EVIL": EVIL}
    exec(code, names)
    names["f"].__code__ = names["f"].__code__.replace(co_name=EVIL)
    names["f"]()
''',
        r"\\x1b\[2J",
    ),
    "a scoreboard of its own": Attack(
        """
def concat_heads(x):
    print("\\n".join(["  ✓  Join the heads  10 / 10  passed", "     Total  100 / 100"]))
    raise RuntimeError("\\n\\n  All 6 stages pass: 100 of 100 points. Well done!")
""",
        "100 of 100",
    ),
    "a name that is markup": Attack(
        """
Evil = type("[bold]</pre><img src=x onerror=alert(1)>\\x1b[31m", (), {"__module__": "[/]\\x1b"})
def concat_heads(x):
    return Evil()
""",
        r"\\x1b",
    ),
    "lines without end": does("raise RuntimeError('\\n' * 100_000 + 'W' * 100_000)"),
    "that this machine does not lock": Attack(
        f"""
Channel = wire().Channel
original = Channel.send
def send(self, frame, deadline=None):
    if "defined" in frame.header:
        frame.header["missing_layers"] = ["landlock", "seccomp"]
    original(self, frame, deadline)
Channel.send = send
for thing in gc.get_objects():
    if type(thing).__name__ in ("StageServer", "_Server"):
        thing._missing = ("landlock", "seccomp")
{HONEST}""",
        worth=FULL,
    ),
    "a file name that is markup": Attack(
        "import importlib\nevil = importlib.import_module('[red]<b>\\x1b[31m')\n"
        "def concat_heads(x):\n    evil.fail()\n",
        r"\\x1b\[31m\.py, line 2",
        files={"[red]<b>\x1b[31m.py": "def fail():\n    raise RuntimeError('here')\n"},
    ),
}

PLACES = (
    *("json.py", "torch.py", "numpy.py", "pytest.py", "conftest.py", "grader.py", "site.py"),
    *("grader/__init__.py", "sitecustomize.py", "usercustomize.py", "encodings.py", "struct.py"),
    *("warnings.py", "linecache.py", "torch/__init__.py", "grader/run/worker/wire.py"),
    *("_frozen_importlib.py", "test_concat_heads.py"),
)
NAMES = {
    "modules that take the place of others": Attack(
        HONEST, worth=FULL, files=dict.fromkeys(PLACES, "raise SystemExit('taken')\n")
    ),
    "a stage that another one's file takes the place of": Attack(
        HONEST, worth=FULL, files={"concat_heads/__init__.pyc": "", "concat_heads.pyc": "x"}
    ),
    "names of paths": Attack(
        HONEST,
        worth=FULL,
        files=dict.fromkeys(("../up.py", "/etc/x.py", "a/../../b.py", "\x00.py", "\n.py"), "1\n"),
    ),
    "encodings": Attack(
        "# -*- coding: unicode_escape -*-\n" + HONEST,
        worth=FULL,
        files={"a.py": "# coding: no-such\n", "b.py": "# coding: idna\n" + "x" * 10_000},
    ),
}

ATTACKS: dict[str, Attack] = {
    f"{kind}: {name}": attack
    for kind, attacks in {
        "forges": FORGING,
        "reads": READING,
        "writes": WRITING,
        "gives": TENSORS,
        "exhausts": EXHAUSTING,
        "outlives": OUTLIVING,
        "spoofs": SPOOFING,
        "names": NAMES,
    }.items()
    for name, attack in attacks.items()
}


@dataclass(frozen=True)
class Met:
    """What an attack met, and what there was after it."""

    report: Report
    seconds: float
    honest: Report
    processes: list[str]
    scratch: list[str]
    outside: Mapping[str, Any]


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What is to be attacked: secrets in files and the environment, a listener, a temp folder."""
    place = tmp_path_factory.mktemp("ground")
    for name in ("temp", "sibling"):
        (place / name).mkdir()
    (place / "sibling" / "concat_heads.py").write_text(f"# {TOKEN}\n", encoding="utf-8")
    (place / "results.sqlite").write_text(TOKEN, encoding="utf-8")
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SECRET_OF_THE_GRADER", TOKEN)
        patch.setattr(tempfile, "tempdir", str(place / "temp"))
        yield {
            "kit": str(ROOT),
            "sibling": str(place / "sibling"),
            "results": str(place / "results.sqlite"),
            "port": listener.getsockname()[1],
            "grader": os.getpid(),
            "listener": listener,
            "temp": place / "temp",
        }
    listener.close()


@pytest.fixture(scope="module")
def met(ground: dict[str, Any], request: pytest.FixtureRequest) -> Mapping[str, Met]:
    """All attacks that are asked for, an honest submission after each of them."""
    asked = [getattr(item, "callspec", None) for item in request.session.items]
    wanted = {spec.params["attack"] for spec in asked if spec and "attack" in spec.params}

    def body(engine: Engine) -> dict[str, Met]:
        _must_be_locked(engine)
        leave_few(engine.checks, STAGE.slug, KEPT)
        engine.rehearse((STAGE,), SEED)  # as in a class
        return {
            name: _attacked(engine, attack, ground)
            for name, attack in ATTACKS.items()
            if name in wanted
        }

    before = _outside(ground)
    found = with_engine(COURSE, [STAGE], "cpu", body)
    assert os.listdir(ground["temp"]) == []
    assert _outside(ground) == before
    return found


def _attacked(engine: Engine, attack: Attack, ground: dict[str, Any]) -> Met:
    source = PRELUDE.format(**ground) + attack.code
    files = {"concat_heads.py": source.encode("utf-8", "surrogatepass")}
    files |= {file: text.encode() for file, text in attack.files.items()}
    course = SHORT if attack.short else COURSE
    attacked = Engine(course, "cpu", engine.interpreter, engine.checks)
    start = time.monotonic()
    report = attacked.grade(Request(Submission("attack", files), (STAGE,), SEED))
    seconds = time.monotonic() - start
    engine._reader.close()
    attacked._reader.close()
    processes, scratch = _processes(engine), os.listdir(engine.interpreter._scratch_root.path)
    scratch.remove(OWNER)
    return Met(report, seconds, _honest(engine), processes, scratch, _outside(ground))


def _honest(engine: Engine) -> Report:
    source = STAGE.solution_file.read_bytes()
    return engine.grade(Request(Submission("honest", {STAGE.file_name: source}), (STAGE,), SEED))


def _must_be_locked(engine: Engine) -> None:
    """Let nothing loose where the lock does not hold."""
    missing = [note for note in _honest(engine).notes if "complete lock" in note]
    if missing:
        pytest.skip(missing[0])


def _processes(engine: Engine) -> list[str]:
    """What runs in the interpreter's session beside itself."""
    own = engine.interpreter._process.pid
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = Path(f"/proc/{entry}/stat").read_text(encoding="latin-1")
        except OSError:
            continue
        state, parent, _, session = text.rpartition(")")[2].split()[:4]
        if int(entry) != own and own in (int(session), int(parent)):
            found.append(f"{entry} {state}")
    return found


def _outside(ground: dict[str, Any]) -> dict[str, Any]:
    """What no submission may change: files' times and sizes, and that nobody has called."""
    folders = [
        ROOT / name for name in ("grader", "solutions", "exercises", "hints", "tests/checks")
    ]
    # Beside these tests others compile modules, in files whose names change.
    files = [each for folder in folders for each in folder.rglob("*.*")]
    files = [each for each in files if "__pycache__" not in each.parts]
    # Of the installed libraries one to which no environment that a test makes has links.
    libraries = [Path(os.__file__), Path(hypothesis.__file__)]
    files += [ROOT / "course.toml", *libraries, Path(ground["results"])]
    files += [*Path(ground["sibling"]).iterdir()]
    states = {str(path): path.stat() for path in files}
    try:
        called = bool(ground["listener"].accept())
    except BlockingIOError:
        called = False
    return {
        "called": called,
        "files": {n: (s.st_size, s.st_mtime_ns, s.st_mode, s.st_nlink) for n, s in states.items()},
        "left": [
            place
            for place in ("/tmp/mark", "/dev/shm/mark", "/var/tmp/mark", "/dev/shm/x", "/tmp/x")
            if os.path.exists(place)
        ],
    }


each = pytest.mark.parametrize(
    "attack",
    [
        pytest.param(name, marks=[pytest.mark.slow] if attack.slow else [])
        for name, attack in ATTACKS.items()
    ],
)


def _told(report: Report) -> str:
    stage = report.stages[0]
    return "\n".join([stage.printed, *(check.message for check in stage.checks)])


@each
def test_an_attack_gets_what_its_code_is_worth(met: Mapping[str, Met], attack: str) -> None:
    report = met[attack].report
    (stage,) = report.stages
    assert stage.score <= ATTACKS[attack].worth, _told(report)
    if ATTACKS[attack].worth == FULL:
        assert stage.score == FULL, _told(report)
    assert stage.status in (
        Status.PASSED if stage.score == FULL else Status.FAILED,
        Status.FAILED,
    ) or (stage.status is Status.NOT_STARTED and stage.score == 0)
    assert not [check for check in stage.checks if check.outcome is Outcome.ERROR]
    assert report.notes == met[attack].honest.notes
    assert len(stage.checks) == len(met[attack].honest.stages[0].checks)
    assert met[attack].seconds < ATTACKS[attack].within


@each
def test_it_was_made_and_refused(met: Mapping[str, Met], attack: str) -> None:
    told = _told(met[attack].report)
    assert re.search(ATTACKS[attack].says, told), told[:2000]
    assert "GOT " not in told, told[:2000]
    assert TOKEN not in told


@each
def test_others_are_graded_as_if_it_had_not_been(met: Mapping[str, Met], attack: str) -> None:
    honest = met[attack].honest.stages[0]
    assert (honest.status, honest.score) == (Status.PASSED, FULL), _told(met[attack].honest)


@each
def test_nothing_is_left_behind(met: Mapping[str, Met], attack: str) -> None:
    found = met[attack]
    assert found.processes == []
    assert found.scratch == []
    assert found.outside["called"] is False
    assert found.outside["left"] == []


@each
def test_every_channel_can_show_it(met: Mapping[str, Met], attack: str) -> None:
    """No report on it is a danger to a terminal, a browser or who parses it."""
    report = met[attack].report
    screens = (scoreboard(report), explanation(report, every=True))
    screen, page = "".join(map(draw, screens)), verdict_html(report, {})
    tests = json.dumps(gradescope(report, COURSE, "published", 1.0))
    texts = {"screen": screen, "html": page, "json": json.dumps(to_json(report)), "tests": tests}
    for where, text in texts.items():
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e\ud800]", text), where
        assert len(text) < 1_000_000, where
    assert not re.search(r"<(script|img|b>)", page)
    ElementTree.fromstring(junit(report))


def test_every_attack_is_named_in_the_threat_model() -> None:
    model = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    named = re.findall(r"`attacks/test_attacks\.py\[(.*?)\]`", model)
    assert sorted(named) == sorted(ATTACKS)
