"""Submissions that lie about the memory they take: the kernel is asked, not they."""

import ctypes
import sys
from dataclasses import replace

import pytest

from grader.run.answers import WorkerAnswers
from grader.run.collecting import with_checks
from grader.run.facts import Ending
from grader.run.importing import Import
from grader.run.remote import RemoteSubmission
from grader.run.session import Checks
from grader.run.solutions import solution_files
from grader.run.under_check import StageUnderCheck
from grader.run.workers import Interpreter
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE
from tests.kit.wrong_answers import wrong_source

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks the worker")

LIES = {
    "nothing": "",
    "a meter of its own": """
import grader.run.worker.bench as bench
class Nothing:
    peak = held = 1
    def __enter__(self): return self
    def __exit__(self, *_): return False
bench.meter = Nothing
bench.Bench._usage = lambda self: bench.Frame({"value": {"peak": 1, "held": 1}})
""",
    "a scan of its own": """
import grader.run.worker.bench as bench
bench.held_shapes = lambda module: []
""",
    "replies of its own": """
import grader.run.worker.server as server
pack = server.Channel.send
def send(self, frame, deadline=None):
    frame.header |= {"peak": 1, "held": 1}
    if frame.header.get("value") == [[5]]: frame.header["value"] = []
    return pack(self, frame, deadline)
server.Channel.send = send
""",
    "memory that was there before": """
import torch
hoard = torch.zeros(400 << 18)
empty = torch.empty
""",
    "a library that it lets go": """
import gc, sys
import matplotlib.pyplot
for name in list(sys.modules):
    if name.split(".")[0] in ("matplotlib", "PIL", "pyparsing"): vars(sys.modules.pop(name)).clear()
gc.unfreeze()
gc.collect()
""",
    "a library that it only names": "if False:\n    import matplotlib.pyplot\n",
}
# A wrong answer, and the check that must see it whatever it says.
WHOLE_MATRIX = ("flash", "plain", "memory")
KEEPERS = [("need_weights", f"keeps_{how}", "nothing_left") for how in ("always", "on_the_class")]
OLD = ("need_weights", "keeps_first_call", "nothing_old_left")


QUICK = ((WHOLE_MATRIX, "a meter of its own"), (OLD, "a scan of its own"))


def slow_unless(wrong: tuple[str, str, str], lie: str) -> list[pytest.MarkDecorator]:
    return [] if (wrong, lie) in QUICK else [pytest.mark.slow]


def endings(interpreter: Interpreter, slug: str, source: str, check: str) -> list[Ending]:
    """How the cases of one check end for this source of a stage."""
    stage = COURSE.stage(slug)
    files = solution_files(COURSE) | {stage.file_name: source.encode()}

    def body(checks: Checks) -> list[Ending]:
        answers = WorkerAnswers(interpreter, Import(COURSE, stage, Submission("lies", files)))
        remote = StageUnderCheck(stage, answers)
        [planned] = [each for each in checks.planned[slug] if each.id == f"{slug}.{check}"]
        try:
            facts = checks.facts(stage, remote, 5, "cpu", planned.cases)
            return [fact.ending for fact in facts]
        finally:
            remote.close()

    return with_checks(COURSE, [stage], body)


@pytest.mark.parametrize(
    "slug, answer, check, lie",
    [
        pytest.param(*wrong, lie, id=f"{wrong[1]}, {name}", marks=slow_unless(wrong, name))
        for wrong in (WHOLE_MATRIX, *KEEPERS, OLD)
        for name, lie in LIES.items()
    ],
)
def test_what_it_says_of_its_memory_is_of_no_use(
    interpreter: Interpreter, slug: str, answer: str, check: str, lie: str
) -> None:
    source = lie + wrong_source(slug, answer)
    assert Ending.PASSED not in endings(interpreter, slug, source, check)


def test_a_process_that_names_itself_two_lines_is_measured_all_the_same(
    interpreter: Interpreter,
) -> None:
    renames = "import ctypes\nctypes.CDLL(None).prctl(15, b'a\\rb', 0, 0, 0)\n"
    source = renames + COURSE.stage("flash").solution_file.read_text("utf-8")
    assert {*endings(interpreter, "flash", source, "memory")} == {Ending.PASSED}


def test_a_library_of_right_code_does_not_count(interpreter: Interpreter) -> None:
    source = COURSE.stage("need_weights").solution_file.read_text("utf-8")
    plots = "import torch; import matplotlib.pyplot as plt\n"
    assert {*endings(interpreter, "need_weights", plots + source, "nothing_left")} == {
        Ending.PASSED
    }


IN_PLACE = """
import torch
hoard = torch.zeros(ROOM)
def flash_attention(q, k, v, mask=None, causal=False, dropout_p=0.0):
    Tq, Tk = q.shape[2], k.shape[2]
    scores = hoard[: q[..., 0].numel() * Tk].view(*q.shape[:3], Tk)
    torch.matmul(q, k.mT, out=scores).div_(q.shape[3] ** 0.5)
    if causal: scores.masked_fill_(~torch.ones(Tq, Tk, dtype=torch.bool).tril(), -torch.inf)
    return scores.sub_(scores.amax(-1, True)).exp_().div_(scores.sum(-1, True)) @ v
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        IN_PLACE.replace("ROOM", "40_000_000"),
        IN_PLACE.replace("hoard[", "torch.zeros(40_000_000)[").replace("ROOM", "1"),
        # For few tokens it wastes what it needs for many.
        IN_PLACE.replace("hoard[", "torch.zeros(q.shape[2] * 5300)[").replace("ROOM", "1"),
    ],
    ids=["taken before", "taken in the call", "wasted for few tokens"],
)
def test_room_for_the_whole_matrix_is_seen_whenever_it_is_taken(
    interpreter: Interpreter, source: str
) -> None:
    assert Ending.PASSED not in endings(interpreter, "flash", source, "memory")


UNMAPS = """
import ctypes
libc = ctypes.CDLL(None)
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
class Library(ctypes.Structure):
    _fields_ = [("address", ctypes.c_uint64), ("name", ctypes.c_char_p)]
kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Library), ctypes.c_size_t, ctypes.c_void_p)
def visit(library, *rest):
    if b"openblas" in (library.contents.name or b""):
        place = library.contents.address + (1 << 20)
        libc.munmap(place, 15 << 20)
    return 0
libc.dl_iterate_phdr(kind(visit), None)
"""


seals = pytest.mark.skipif(
    sys.platform == "linux" and ctypes.CDLL(None).syscall(462, 0, 0, 0) != 0,
    reason="Linux before 6.10 cannot seal a library",
)


@seals
def test_the_room_of_a_library_is_not_to_be_had(interpreter: Interpreter) -> None:
    source = UNMAPS + wrong_source("flash", "plain")
    assert Ending.PASSED not in endings(interpreter, "flash", source, "memory")


NAMES = """
import matplotlib.ft2font
ANSWERS = []
def visit(library, *rest):
    if b"ft2font" in (library.contents.name or b""):
        ANSWERS.append(libc.munmap(library.contents.address + (1 << 20), 1 << 16))
    return 0
libc.dl_iterate_phdr(kind(visit), None)
def flash_attention(*given):
    raise ValueError(ANSWERS)
"""


@seals
def test_the_room_of_a_library_that_only_this_code_names_is_not_to_be_had(
    interpreter: Interpreter,
) -> None:
    stage = COURSE.stage("flash")
    files = {stage.file_name: (UNMAPS + NAMES).encode()}
    answers = WorkerAnswers(interpreter, Import(COURSE, stage, Submission("names", files)))
    under_check = StageUnderCheck(stage, answers)
    under_check.begin(1)
    remote = RemoteSubmission(under_check)
    with pytest.raises(ValueError, match=r"\[-1\]"), remote.measured():
        remote.flash_attention(1, 2, 3)
    under_check.close()


HALF = "    q, k, dtype = q.half(), k.half(), v.dtype\n    Tq"


@pytest.mark.slow
def test_half_a_matrix_in_half_precision_is_not_exact_enough(interpreter: Interpreter) -> None:
    source = IN_PLACE.replace("torch.zeros(ROOM)", "torch.zeros(40_000_000, dtype=torch.half)")
    source = source.replace("    Tq", HALF, 1).replace("@ v", ".to(dtype) @ v")
    assert Ending.PASSED not in endings(interpreter, "flash", source, "memory")


def test_the_process_is_not_told_that_it_is_measured(interpreter: Interpreter) -> None:
    """Every frame that reaches it is one that it could get in any check."""
    source = """
import gc
import grader.run.worker.server as server
seen = []
receive = server.Channel.receive
def note(self, *args):
    frame = receive(self, *args)
    seen.append(sorted(frame.header) + sorted(frame.aside))
    return frame
server.Channel.receive = note
def flash_attention(q, k, v, mask=None, causal=False, dropout_p=0.0):
    raise ValueError(repr(seen))
"""
    stage = COURSE.stage("flash")
    files = solution_files(COURSE) | {stage.file_name: source.encode()}
    answers = WorkerAnswers(interpreter, Import(COURSE, stage, Submission("seen", files)))
    under_check = StageUnderCheck(stage, answers)
    remote = RemoteSubmission(under_check)
    under_check.begin(1)
    with pytest.raises(ValueError, match="begin") as plain:
        remote.flash_attention(1, 2, 3)
    with pytest.raises(ValueError, match="begin") as measured, remote.measured():
        remote.flash_attention(1, 2, 3)
    under_check.close()
    told = [str(caught.value).splitlines()[0] for caught in (plain, measured)]
    assert told[0] == told[1] and "measured" not in told[1]


@pytest.mark.slow
def test_where_the_kernel_says_nothing_the_tensors_are_counted(
    interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.run.workers.Worker.memory", lambda self: None)
    for slug, answer, check in (WHOLE_MATRIX, KEEPERS[0], OLD):
        source = wrong_source(slug, answer)
        assert Ending.PASSED not in endings(interpreter, slug, source, check)
        right = COURSE.stage(slug).solution_file.read_text(encoding="utf-8")
        assert {*endings(interpreter, slug, right, check)} == {Ending.PASSED}


def test_no_check_pays_for_what_a_worker_says_of_itself() -> None:
    """`held_by` alone decides nothing: the check that uses it measures as well."""
    for stage in COURSE.stages:
        for part in stage.check_file.read_text(encoding="utf-8").split("\n@pytest.mark.points")[1:]:
            if "held_by" in part or "expect_nothing_left(" in part:
                assert "submission.measured()" in part, (stage.slug, part[:200])


def test_the_limits_hold_for_a_measured_process_too(interpreter: Interpreter) -> None:
    limits = replace(COURSE.limits, load_seconds=1)
    stage = COURSE.stage("flash")
    files = {stage.file_name: b"import time\ndef flash_attention(*given):\n    time.sleep(60)\n"}
    course = replace(COURSE, limits=limits)
    others = {*interpreter.workers}
    answers = WorkerAnswers(interpreter, Import(course, stage, Submission("endless", files)))
    under_check = StageUnderCheck(stage, answers)
    under_check.begin(1)
    remote = RemoteSubmission(under_check)
    with pytest.raises(Exception, match="No answer in 1 second"), remote.measured():
        remote.flash_attention(1, 2, 3)
    under_check.close()
    assert interpreter.workers <= others
