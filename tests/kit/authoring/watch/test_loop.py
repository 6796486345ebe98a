"""`grade watch --author`: a proof at every save, of no more than the save can have changed."""

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from grader.authoring.verify.memory import Memory, sources_of_mistakes
from grader.authoring.verify.runs import CheckRuns
from grader.authoring.watch.loop import Proved, newest, watch
from grader.types.course import Course
from tests.kit.support.checkout import TINY, start_grade
from tests.kit.support.files import edit
from tests.kit.support.tiny import Typed

Save = Callable[[], object]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stage of each run of its checks in this process, so far."""
    runs: list[str] = []
    local = CheckRuns.local

    def noted(self: CheckRuns, *args: object, **kwargs: object) -> object:
        runs.append(self.stage.slug)
        return local(self, *args, **kwargs)

    monkeypatch.setattr(CheckRuns, "local", noted)
    return runs


def change(course: Course, file: str, old: str, new: str) -> None:
    path = course.root / file
    size = path.stat().st_size
    edit(path, old, new)
    later = time.time_ns() + 10**9 * (1 + size % 7)  # a clock may be coarse
    os.utime(path, ns=(later, later))


def proofs(course: Course, slug: str, *saves: Save) -> list[Proved]:
    """What is shown at first, and after each save."""

    def moments() -> Iterator[None]:
        for save in saves:
            yield  # nothing was saved
            save()
            yield

    return list(watch(course, slug, moments(), lambda slug, done, total: None))


def test_a_save_proves_the_stage_whose_file_it_is(course: Course) -> None:
    shown = proofs(
        course,
        "roughness",
        lambda: change(course, "solutions/roughness.py", "return max", "return min"),
        lambda: change(course, "solutions/roughness.py", "return min", "return max"),
        lambda: change(course, "hints/smooth.md", "Count", "TODO: Count"),
        lambda: (course.root / "tests/accepted/roughness/by_index.py").unlink(),
    )
    assert [each.slug for each in shown] == [*["roughness"] * 3, "smooth", "roughness"]
    assert [each.proof.is_sound for each in shown if each.proof] == [
        True,
        False,
        True,
        False,
        False,
    ]
    assert [each.users for each in shown][:1] == [()]
    last = shown[-1].proof
    assert [*last.stages[0].problems] == [
        "tests/accepted/roughness/: has 2 of 3 right answers: write 1 more"
    ]


def test_only_what_can_have_changed_runs_again(course: Course, ran: list[str]) -> None:
    counts: list[int] = []

    def counted(save: Save) -> Save:
        def saved() -> None:
            counts.append(len(ran))
            ran.clear()
            save()

        return saved

    answer = "tests/accepted/roughness/sorted_steps.py"
    mistakes = "hints/misconceptions/roughness.py"
    shown = proofs(
        course,
        "roughness",
        counted(lambda: change(course, "hints/roughness.md", "Count", "Please count")),
        counted(lambda: change(course, answer, "return", "return 0 +")),
        counted(lambda: change(course, mistakes, "max(values) - min", "2 * max(values) - min")),
        counted(lambda: change(course, "tests/checks/test_roughness.py", "up or down", "both")),
        counted(lambda: None),
    )
    every, hints, accepted, mistake, checks = counts
    assert all(each.proof and each.proof.is_sound for each in shown), shown
    assert hints == 0
    assert 0 < accepted <= 3 and 0 < mistake <= 3  # an answer runs with three seeds
    assert every == checks > 20


def test_the_stub_follows_the_solution_but_not_over_somebodys_work(course: Course) -> None:
    stub = course.root / "exercises/roughness.py"
    shown = proofs(
        course,
        "roughness",
        lambda: change(course, "solutions/roughness.py", "0 where there are none", "or 0"),
        lambda: change(course, "solutions/roughness.py", "\n\ndef", "LIMIT = 3\n\n\ndef"),
    )
    assert [each.stub for each in shown] == ["", "exercises/roughness.py", ""]
    assert "or 0" in stub.read_text("utf-8")
    last = shown[-1].proof
    assert last and "run grade stubs roughness --force" in last.stages[0].problems[0]


def test_a_course_that_cannot_be_read_is_told_and_watched_on(course: Course) -> None:
    shown = proofs(
        course,
        "roughness",
        lambda: change(course, "course.toml", "schema = 1", "schema ="),
        lambda: change(course, "course.toml", "schema =", "schema = 1"),
    )
    assert [each.fault.partition(":")[2][:7] for each in shown] == ["", "3: writ", ""]


def test_it_begins_with_the_stage_that_was_saved_last(course: Course) -> None:
    change(course, "hints/misconceptions/smooth.py", "import", "import")
    assert newest(course).slug == "smooth"


def test_a_memory_keeps_what_the_last_proof_used() -> None:
    memory, made = Memory(keeps=True), []

    def of(*keys: str) -> None:
        memory.begin("")
        for key in keys:
            memory.of(key, lambda key=key: made.append(key))
        memory.end()

    of("a", "b", "a")
    of("b")
    of("a", "b")
    assert made == ["a", "b", "a"]


def test_a_misconception_depends_on_its_own_lines_and_on_no_others() -> None:
    text = (TINY.root / "hints/misconceptions/roughness.py").read_text("utf-8")
    before = sources_of_mistakes(text)
    own = sources_of_mistakes(text.replace("max(values) - min", "min(values) - min"))
    shared = sources_of_mistakes(text.replace("import pairwise", "import pairwise, chain"))
    assert len(before) == 3
    assert [id for id in before if before[id] != own[id]] == ["rough_range"]
    assert all(before[id] != shared[id] for id in before)


def test_learners_have_no_such_option_in_their_copy(
    monkeypatch: pytest.MonkeyPatch, refused: Typed
) -> None:
    from grader.command import main as module

    installed = module._is_installed
    monkeypatch.setattr(
        module, "_is_installed", lambda name: "authoring" not in name and installed(name)
    )
    assert "`grade watch` has no option --author" in refused("watch", "--author")


def test_the_command_proves_a_save_and_ends_with_ctrl_c(course: Course) -> None:
    words = ("watch", "--author", "roughness", "--plain", "--course", course.root)
    with start_grade(*words) as process:
        lines = iter(process.stdout.readline, "")
        assert any("This stage is proven." in line for line in lines)
        assert any("The next save proves it again." in line for line in lines)
        change(course, "hints/roughness.md", "Count", "TODO: Count")
        assert any("to do: hints/roughness.md" in line for line in lines)
        assert any("The next save proves it again." in line for line in lines)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 1
