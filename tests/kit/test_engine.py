"""The engine as a whole grades the learner's own file, and says whose fault a failure is."""

import random
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest

from grader.classes.sharing.earned import Earned
from grader.classes.sharing.same_code import same_code
from grader.engine import Engine, Request, _quick_imports, grade, with_engine
from grader.read.course_file import read_course
from grader.run.lanes import can_fork
from grader.run.reader import Reader, SourceReader
from grader.run.session import Checks
from grader.run.solutions import solution_files
from grader.types.course import Course, Stage
from grader.types.report import Report, StageResult, Status
from grader.types.submission import Submission
from tests.kit.classes.folder_class import AVERAGE, SMOOTH
from tests.kit.support.checkout import COURSE, ROOT, TINY
from tests.kit.wrong_answers import wrong_answers, wrong_source

SOLUTIONS = solution_files(COURSE)
STUBS = {stage.file_name: stage.exercise_file.read_bytes() for stage in COURSE.stages}


def graded(files: dict[str, bytes]) -> Report:
    submission = Submission("a submission", files)
    return grade(COURSE, Request(submission, COURSE.stages, seed=11), "cpu")


@pytest.mark.slow
def test_one_poisoned_line_turns_its_stage_red_and_is_the_cause_of_later_ones() -> None:
    source = SOLUTIONS["split_heads.py"]
    poisoned = source.replace(b".transpose(1, 2)", b".transpose(1, 2).flip(1)")
    assert poisoned != source
    core = tuple(stage for stage in COURSE.stages if not stage.bonus)
    submission = Submission("mine", {**SOLUTIONS, "split_heads.py": poisoned})
    report = grade(COURSE, Request(submission, core, seed=11), "cpu")
    by_slug = {stage.slug: stage for stage in report.stages}
    assert by_slug["split_heads"].status is Status.FAILED
    for stage in report.stages:
        if "split_heads" in COURSE.stage(stage.slug).requires:
            assert stage.caused_by == "split_heads"
        elif stage.slug != "split_heads":
            assert stage.status is Status.PASSED
    assert report.score < report.max_score == 100


def test_a_wrong_class_of_an_earlier_stage_stays_the_learners_and_may_be_why() -> None:
    course = read_course(ROOT / "examples" / "transformer_block" / "course.toml")
    files = solution_files(course)
    root = b"torch.sqrt(variance + self.eps)"
    assert root in files["layer_norm.py"]
    files["layer_norm.py"] = files["layer_norm.py"].replace(root, b"(variance + self.eps)")
    files["gelu.py"] = b"def gelu(x):\n    return x\n"
    stages = [course.stage("residual_mlp")]
    (result,) = grade(course, Request(Submission("x", files), stages, seed=11), "cpu").stages
    assert (result.caused_by, result.perhaps) == (None, "layer_norm")
    assert not [check.message for check in result.checks if "Error" in check.message]


def test_a_stage_is_told_its_own_mistake_although_an_earlier_one_has_another() -> None:
    answer = next(
        a for a in wrong_answers("multi_head_attention") if a.name == "check_in_forward_only"
    )
    joined = SOLUTIONS["concat_heads.py"]
    not_joined = joined.replace(b"by_token = x.transpose(1, 2)", b"by_token = x")
    assert not_joined != joined
    files = {**SOLUTIONS, "multi_head_attention.py": answer.source.encode()}
    files["concat_heads.py"] = not_joined
    stage = COURSE.stage("multi_head_attention")
    report = grade(COURSE, Request(Submission("mine", files), (stage,), seed=11), "cpu")
    first, *others = report.stages[0].causes
    assert (first.show.diagnosis.id, first.others) == ("mha_no_value_error", ())
    [other] = others
    assert other.show.message == "It fails only because concat_heads is not right yet"
    assert len(other.checks) > 10


def test_code_that_uses_no_earlier_stage_is_explained_although_there_is_none() -> None:
    """Its one file is handed in alone, and its scale has no name."""
    stage = COURSE.stage("multi_head_attention")
    source = wrong_source(stage.slug, "scale_keys").encode()
    request = Request(Submission("mine", {stage.file_name: source}), (stage,), seed=11)

    def body(engine: Engine) -> bool:
        return engine.may_place(engine.grade(request))

    assert with_engine(COURSE, (stage,), "cpu", body)


def test_an_untouched_stub_stays_quiet_though_the_file_it_imports_is_broken() -> None:
    report = graded({**STUBS, "masking.py": b"def causal_mask(seq_len)\n    pass\n"})
    by_slug = {stage.slug: stage.status for stage in report.stages}
    assert by_slug.pop("masking") is Status.FAILED
    assert set(by_slug.values()) == {Status.NOT_STARTED}
    assert report.score == 0


STUB = (TINY.exercises / "moving_average.py").read_text("utf-8")
RIGHT = (
    f"{AVERAGE}    if not 1 <= width <= len(values):\n        raise ValueError('width')\n"
    "    means = np.convolve(values, np.ones(width), 'valid')\n    return means / width\n"
)
RAW = RIGHT.replace("means / width", "means")  # sums, not means
# With these in its process the wrong answer would be right, and the right one wrong.
HELPS = (
    "import numpy as np\nold = np.convolve\n"
    "np.convolve = lambda a, b, mode: old(a, b / len(b), mode)\n"
)
HARMS = "import numpy as np\nnp.ones = np.zeros\n"
SLY = (  # the source does not tell it
    "import numpy as np\nold = np.convolve\n"
    "[np][0].convolve = lambda a, b, mode: old(a, b / len(b), mode)\n"
)


@pytest.mark.slow
def test_an_import_without_end_is_waited_for_less_each_time() -> None:
    course = replace(TINY, limits=replace(TINY.limits, load_seconds=2, call_seconds=0.5))
    endless = f"import time\nclass Endless:\n    while True:\n        time.sleep(1)\n{RIGHT}"
    jumps = (
        "def roughness(v):\n    return max((abs(b - a) for a, b in zip(v, v[1:])), default=0.0)\n"
    )
    submission = Submission("a notebook", {}, cells=(endless, SMOOTH, jumps))
    average, smooth, roughness = grade(course, Request(submission, TINY.stages, seed=1)).stages
    assert roughness.status is Status.PASSED
    told = "No answer in {} second{}, the limit of 2 halved each time"
    assert average.checks[0].message.startswith(told.format(1, ""))
    assert smooth.checks[0].message.startswith(told.format(0.5, "s"))


@pytest.mark.slow
def test_what_stands_beside_a_loop_without_end_counts_and_what_it_lacks_is_told() -> None:
    course = replace(TINY, limits=replace(TINY.limits, load_seconds=1, call_seconds=0.5))
    loop = "while True:\n    pass\n"
    cells = (f"{RIGHT}\n{loop}", loop)
    report = grade(course, Request(Submission("n", {}, cells=cells), TINY.stages, seed=1))
    average, smooth, _ = report.stages
    assert average.status is Status.PASSED
    assert any("only the definitions" in note for note in report.notes)
    assert smooth.checks[0].message.startswith("The notebook does not define smooth:")


def files(average: str, smooth: str = SMOOTH, **others: str) -> dict[str, bytes]:
    texts = {"moving_average": average, "smooth": smooth, **others}
    return {f"{name}.py": text.encode() for name, text in texts.items()}


def without_seconds(report: Report) -> Report:
    """The report as all channels show it, but for the time that its checks took."""
    stages = (
        replace(stage, printed="", checks=tuple(replace(c, seconds=0.0) for c in stage.checks))
        for stage in report.stages
    )
    return replace(report, stages=tuple(stages))


MEAN = (
    "def roughness(values):\n"
    "    return sum(abs(b - a) for a, b in zip(values, values[1:])) / len(values)\n"
)


@pytest.mark.skipif(not can_fork("cpu"), reason="no fork on this system")
@pytest.mark.parametrize("average", [RIGHT, RAW])
def test_several_processes_give_the_same_report(
    average: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With each verdict in its place, whose fault a failure is, and why."""
    patient = partialmethod(Engine.with_place, seconds=60.0)  # the machine may be busy
    monkeypatch.setattr(Engine, "with_place", patient)
    submission = Submission("a folder", files(average, roughness=MEAN))
    request = Request(submission, TINY.stages, seed=1)
    told: dict[int, list[Any]] = {1: [], 2: []}
    for lanes, seen in told.items():
        report = grade(
            TINY,
            request,
            "cpu",
            lambda each, seen=seen: seen.append(each.slug),
            lambda each, seen=seen: seen.append(without_seconds(each)),
            lanes=lanes,
        )
        seen.append(without_seconds(report))
    assert told[2] == told[1]
    assert told[2][:3] == [stage.slug for stage in TINY.stages]


@pytest.mark.skipif(not can_fork("cpu"), reason="no fork on this system")
def test_several_processes_share_one_budget() -> None:
    """What one of them has used is not left for the others."""
    apart = replace(
        TINY,
        stages=tuple(replace(s, requires=()) for s in TINY.stages),
        limits=replace(TINY.limits, submission_seconds=0.01),
    )
    request = Request(Submission("a folder", files(RIGHT, roughness=MEAN)), apart.stages, seed=1)
    report = grade(apart, request, "cpu", lanes=2)
    assert any("used up its 0.01 seconds" in note for note in report.notes)
    assert {stage.status for stage in report.stages} == {Status.FAILED}


def test_the_core_is_told_before_a_bonus_stage_is_run() -> None:
    told: list[object] = []
    submission = Submission("a folder", files(RIGHT, roughness=MEAN))
    request = Request(submission, TINY.stages, seed=1)
    report = grade(TINY, request, "cpu", lambda each: told.append(each.slug), core=told.append)
    average, smooth, core, roughness = told
    assert (average, smooth, roughness) == ("moving_average", "smooth", "roughness")
    assert isinstance(core, Report)
    assert core.stages[:2] == report.stages[:2]
    assert core.stages[2].status is Status.NOT_STARTED


def verdicts(course: Course, submissions: Sequence[Submission]) -> tuple[list[Report], int]:
    """The verdict on each in the course of a class, and how often all of one's was known before.

    Each is the verdict that it gets by itself.
    """
    stages = tuple(stage for stage in course.stages if not stage.bonus)

    def body(engine: Engine) -> tuple[list[Report], int]:
        engine.rehearse(stages, 11)  # as for a class
        reports, known = [], 0
        with Earned(shared=False) as earned:
            for submission in submissions:
                request = Request(submission, stages, seed=11)
                reports.append(engine.grade(request, shared=earned.of))
                checks = [check for stage in reports[-1].stages for check in stage.checks]
                known += not any(check.seconds for check in checks)
                by_itself = without_seconds(engine.grade(request))
                assert without_seconds(reports[-1]) == by_itself, submission
        return reports, known

    return with_engine(course, stages, "cpu", body)


def test_what_others_have_earned_changes_no_verdict() -> None:
    renamed = RIGHT.replace("means", "result")
    handed_in = [
        *[files(RIGHT), files(renamed), files("# mine\n" + RIGHT), files(RIGHT)],
        *[files(STUB), files(STUB), files(STUB), files(RAW), files(RAW), files(RAW)],
        files(RIGHT, SMOOTH.replace("times=1", "times=2")),
    ]
    submissions = [Submission(str(number), each) for number, each in enumerate(handed_in)]
    reports, known = verdicts(TINY, submissions)
    assert [report.score == report.max_score for report in reports[:4]] == [True] * 4
    # The fourth, which the third has proven, and the third stub. Other names are other code.
    assert known == 2
    assert reports[-1].score < reports[-1].max_score


def test_what_others_hand_in_takes_no_points_from_what_is_written() -> None:
    stage = TINY.stages[0]
    stub, right = (Submission("one's", files(average)) for average in (STUB, RIGHT))

    def body(engine: Engine) -> Report:
        not_begun = engine.grade(Request(stub, (stage,), seed=11)).stages[0]
        request = Request(right, (stage,), seed=11)
        same = same_code(TINY, request, SourceReader(Reader(None), right))[stage.slug]
        with Earned(shared=False) as earned:
            earned.take(f"{stage.slug} {same.digest} 11 cpu", not_begun, alone=True)
            return engine.grade(request, shared=earned.of)

    assert with_engine(TINY, [stage], "cpu", body).stages[0].status is Status.PASSED


@pytest.mark.parametrize(
    "poison",
    [HELPS, *(pytest.param(poison, marks=pytest.mark.slow) for poison in (HARMS, SLY))],
    ids=["helps", "harms", "sly"],
)
def test_what_somebody_does_to_the_libraries_is_nobody_elses(poison: str) -> None:
    """Whether they do it in one stage's file, in the other's, or in a file of their own."""

    def poisoned(average: str) -> list[dict[str, bytes]]:
        return [
            files(poison + average),
            files(average, poison + SMOOTH),
            files("import aid\n" + average, aid=poison),
        ]

    theirs = [*poisoned(RAW), *poisoned(RIGHT)] * 3
    handed_in = [*theirs, *[files(RAW), files(RIGHT)] * 3]
    submissions = [Submission(str(number), each) for number, each in enumerate(handed_in)]
    reports = verdicts(TINY, submissions)[0][len(theirs) :]
    for raw, right in zip(reports[::2], reports[1::2], strict=True):
        assert raw.score < right.score == right.max_score


@pytest.mark.parametrize("poison", [HELPS, SLY], ids=["open", "sly"])
def test_a_cell_that_helps_helps_nobody_else(poison: str) -> None:
    helped = [(poison, RAW, SMOOTH), (RAW, poison, SMOOTH), (RAW, SMOOTH, poison)]
    cells = [*helped, *[(RAW, SMOOTH)] * 3]
    submissions = [Submission(str(number), {}, cells=each) for number, each in enumerate(cells)]
    reports, known = verdicts(TINY, submissions)
    assert known == 0
    assert [report.score == report.max_score for report in reports] == [True] * 3 + [False] * 3


def test_a_cancellation_is_heard_while_a_mistake_is_named() -> None:
    """For some mistakes that takes seconds, and a save must not wait for it."""
    from grader.run.failures import Cancelled

    first = TINY.stages[0]
    wrong = {first.file_name: b"def moving_average(values, width): return values * 0"}

    def cancelled(engine: Engine) -> None:
        def diagnosed(stage: object, facts: object, go_on: Callable[[], None]) -> dict[str, Any]:
            engine.cancel()
            go_on()
            return {}

        engine._diagnosed = diagnosed
        with pytest.raises(Cancelled):
            engine.grade(Request(Submission("x", wrong), (first,), 7))

    with_engine(TINY, (first,), "cpu", cancelled)


@pytest.mark.slow
def test_in_a_class_of_the_known_answers_everybody_gets_what_is_theirs() -> None:
    tests = Path(__file__).parents[1]
    chance = random.Random(0)
    submissions = []
    for number in range(16):
        texts = {}
        for stage in COURSE.stages:
            right = sorted((tests / "accepted" / stage.slug).glob("*.py"))[:4]
            wrong = [answer.source.encode() for answer in wrong_answers(stage.slug)]
            others = [file.read_bytes() for file in (*right * 5, stage.exercise_file)]
            texts[stage.file_name] = chance.choice([*others, *chance.sample(wrong, 2)])
        cells = [texts[stage.file_name].decode("utf-8-sig") for stage in COURSE.stages[:6]]
        if chance.random() < 0.5:
            cells.insert(
                chance.randrange(6), "import torch\nprint(split_heads(torch.ones(1, 2, 4), 2))"
            )
            submissions.append(Submission(str(number), {}, cells=tuple(cells)))
        else:
            submissions.append(Submission(str(number), texts))
    verdicts(COURSE, submissions)


def test_an_explanation_that_fails_costs_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object) -> None:
        raise IndexError("a fault of the kit")

    stage = TINY.stage("moving_average")
    request = Request(Submission("mine", {stage.file_name: RAW.encode()}), (stage,), seed=11)
    explained = grade(TINY, request, "cpu")
    monkeypatch.setattr("grader.diagnosis.comparison.diagnose.diagnose", fails)
    plain = grade(TINY, request, "cpu")
    assert any(check.diagnosis for stage in explained.stages for check in stage.checks)
    assert not any(check.diagnosis for stage in plain.stages for check in stage.checks)
    assert plain.score == explained.score > 0


ENDLESS = RAW.replace("    means =", "    while width == 1:\n        pass\n    means =")


@pytest.mark.slow
def test_what_has_no_end_on_a_gpu_is_neither_run_again_nor_explained() -> None:
    course = replace(TINY, limits=replace(TINY.limits, call_seconds=0.5))
    stage = course.stage("moving_average")
    request = Request(Submission("mine", {stage.file_name: ENDLESS.encode()}), (stage,), seed=11)

    def body(engine: Engine) -> list[list[bool]]:
        parts = engine.interpreter, engine.checks
        reports = [Engine(course, name, *parts).grade(request) for name in ("cuda", "cpu")]
        return [[bool(c.diagnosis) for s in r.stages for c in s.checks] for r in reports]

    on_gpu, on_cpu = with_engine(course, [stage], "cpu", body)
    assert any(on_cpu) and not any(on_gpu)


@pytest.mark.parametrize(
    "source, devices", [(RAW, ["cuda", "cpu"]), (RIGHT, ["cuda"])], ids=["wrong", "right"]
)
def test_what_fails_on_a_gpu_is_explained_by_what_happens_on_the_cpu(
    source: str, devices: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, used = Checks.run, []

    def noted(self: Checks, stage: Stage, remote: Any, seed: int, device: str) -> Any:
        used.append(device)
        return run(self, stage, remote, seed, device)

    monkeypatch.setattr(Checks, "run", noted)
    stage = TINY.stage("moving_average")
    request = Request(Submission("mine", {stage.file_name: source.encode()}), (stage,), seed=11)

    def body(engine: Engine) -> list[StageResult]:
        engines = (Engine(TINY, name, engine.interpreter, engine.checks) for name in devices)
        return [result for each in engines for result in each.grade(request).stages]

    results = with_engine(TINY, [stage], "cpu", body)
    assert used == [*devices, *devices[1:]]  # the second engine's is the CPU
    told = [[check.diagnosis for check in result.checks] for result in results]
    assert all(each == told[0] for each in told)
    assert any(told[0]) == (source is RAW)


def test_who_writes_above_the_stub_of_a_notebook_is_told_what_replaces_their_code() -> None:
    stage = COURSE.stage("split_heads")
    stub = stage.exercise_file.read_text(encoding="utf-8")
    solution = SOLUTIONS[stage.file_name].decode()
    for cells, told in (((solution, stub), True), ((stub, stub), False)):
        report = grade(COURSE, Request(Submission("nb", {}, cells=cells), (stage,), seed=11))
        assert report.stages[0].status is Status.NOT_STARTED
        replaces = "The stub stands below your code and replaces it: move your code there."
        assert report.stages[0].why_not_started == (replaces if told else "")
        assert (f"split_heads: {replaces}" in report.notes) is told


@pytest.mark.parametrize(
    "cell, is_another", [("def relu(x): return x", True), ("split_heads", False)]
)
def test_a_notebook_of_another_course_is_said_to_be_one(cell: str, is_another: bool) -> None:
    stage = COURSE.stage("split_heads")
    report = grade(COURSE, Request(Submission("nb", {}, cells=(cell,)), (stage,), seed=11))
    assert any("is it the right one?" in note for note in report.notes) is is_another


def test_who_writes_in_another_file_than_the_stages_is_told_where_it_belongs() -> None:
    stage = COURSE.stage("split_heads")
    stub = stage.exercise_file.read_bytes()
    for copy, told in ((SOLUTIONS[stage.file_name], True), (stub, False)):
        files = {stage.file_name: stub, "split_heads (1).py": copy}
        report = grade(COURSE, Request(Submission("mine", files), (stage,), seed=11))
        assert report.stages[0].status is Status.NOT_STARTED
        where = "split_heads is written in split_heads (1).py; move it to split_heads.py."
        assert report.stages[0].why_not_started == (where if told else "")


def test_who_saves_beside_exercises_is_told_the_whole_way() -> None:
    stage, near = COURSE.stage("split_heads"), {"split_heads.py": SOLUTIONS["split_heads.py"]}
    mine = Submission("mine", {stage.file_name: stage.exercise_file.read_bytes()}, near=near)
    report = grade(COURSE, Request(mine, (stage,), seed=11))
    where = "split_heads is written in split_heads.py, outside exercises; "
    where += "move it to exercises/split_heads.py."
    assert report.stages[0].why_not_started == where and where in report.notes


@pytest.mark.parametrize("source", [b"import os\nos._exit(0)\n", None], ids=["deadly", "missing"])
def test_a_file_that_cannot_be_imported_at_all_is_the_cause_of_later_failures(
    source: bytes | None,
) -> None:
    first, later, _ = TINY.stages
    files = {f"{stage.slug}.py": stage.solution_file.read_bytes() for stage in TINY.stages}
    files = {n: data for n, data in files.items() if n != first.file_name}
    files |= {} if source is None else {first.file_name: source}
    report = grade(TINY, Request(Submission("mine", files), (first, later), seed=11))
    assert [stage.status for stage in report.stages] == [Status.FAILED, Status.FAILED]
    assert [stage.caused_by for stage in report.stages] == [None, first.slug]


ELSEWHERE = "ModuleNotFoundError: No module named 'elsewhere'"


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("import math\nfrom elsewhere import averaged", ELSEWHERE),
        ("open('x.csv')\nfrom elsewhere import averaged", ELSEWHERE),
        ("from elsewhere import (\n    averaged,\n)", ELSEWHERE),
        ("def averaged(:\n    return 1", "SyntaxError: invalid syntax"),
        ("while True: pass\nfrom elsewhere import averaged", ELSEWHERE),
        ("averaging = print\n1 / 0", ""),
    ],
)
def test_who_uses_a_name_is_told_of_the_cell_that_should_define_it(cell: str, says: str) -> None:
    cells = (cell, AVERAGE + "    return averaged()\n")
    course = replace(TINY, limits=replace(TINY.limits, load_seconds=2))
    report = grade(course, Request(Submission("nb", {}, cells=cells), TINY.stages[:1], seed=1))
    message = report.stages[0].checks[0].message
    assert "NameError: name 'averaged' is not defined" in message
    assert ("import or define it" in message) is not bool(says)
    assert (f"The cell that defines or imports it fails: {says}" in message) is bool(says)


OF_AN_OBJECT = "class A:\n    smooth = run = lambda self: smooth(1)\n"


@pytest.mark.parametrize(
    "code, says",
    [
        (
            AVERAGE + "    return smooth(values)\n",
            "smooth.py defines it: write `from smooth import smooth` at the top",
        ),
        (OF_AN_OBJECT + AVERAGE + "    return A().run()\n", "within a method write self.smooth"),
    ],
)
def test_who_uses_a_name_of_another_file_is_told_to_import_it(code: str, says: str) -> None:
    files = {"moving_average.py": code.encode()}
    files["smooth.py"] = TINY.stages[1].solution_file.read_bytes()
    report = grade(TINY, Request(Submission("mine", files), TINY.stages[:1], seed=1))
    told = " ".join(report.stages[0].checks[0].message.split())
    assert says in told
    assert told.count("smooth.py defines it") == says.count("smooth.py")


def test_the_first_ctrl_c_during_imports_waits_for_their_end() -> None:
    """An import that it interrupts may lose it."""
    before = signal.getsignal(signal.SIGINT)
    with _quick_imports() as imported:
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            imported()
    assert signal.getsignal(signal.SIGINT) is before
