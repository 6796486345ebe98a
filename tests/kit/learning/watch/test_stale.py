"""The board of `grade watch` is that of a fresh `grade`: no verdict outlives the text it is on."""

import os
import random
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from grader.engine import Engine, Request, with_engine
from grader.learning.watch.changes import see
from grader.learning.watch.loop import Watch
from grader.learning.watch.state import Phase, Watching
from grader.read.dependencies import course_digest, text_digests
from grader.read.progress import memory_folder, recall_present, remember_results
from grader.read.workspace import mark_workspace
from grader.types.errors import KitError
from grader.types.progress import NOTEBOOK, Progress
from grader.types.report import StageResult, Status
from grader.types.submission import Submission
from grader.types.workspace import Workspace
from tests.kit.support.checkout import TINY, start_grade
from tests.kit.support.learner import LONGEST, SEED, Learner
from tests.kit.support.tiny import copy_tiny

FIRST, SECOND, BONUS = TINY.stages
pytestmark = pytest.mark.usefixtures("two_pytests_at_once")
Board = dict[str, tuple[Status | None, float]]


def right(slug: str) -> str:
    return TINY.stage(slug).solution_file.read_text(encoding="utf-8")


def stub(slug: str) -> str:
    return TINY.stage(slug).exercise_file.read_text(encoding="utf-8")


def wrong(slug: str) -> str:
    return right(slug).replace("return ", "return 2 * ")


HELPED = "import helper\n" + right("moving_average").replace("return np", "return helper.ONE * np")
TEXTS = {
    "moving_average.py": [right("moving_average"), wrong("moving_average"), HELPED, "def (", ""],
    "smooth.py": [
        *(right("smooth"), wrong("smooth"), stub("smooth")),
        "import roughness\n" + right("smooth"),
        "import tools.part\n" + right("smooth"),
    ],
    "roughness.py": [right("roughness"), wrong("roughness"), stub("roughness"), "1 / 0"],
    "helper.py": ["ONE = 1\n", "ONE = 2\n", "1 / 0\n"],
    "tools/part.py": ["", "1 / 0\n"],
    "itertools.py": ["raise ImportError\n"],
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of someone who has solved everything."""
    (tmp_path / "exercises").mkdir()
    for stage in TINY.stages:
        (tmp_path / "exercises" / stage.file_name).write_text(right(stage.slug), encoding="utf-8")
    mark_workspace(tmp_path, TINY)
    return tmp_path


class Careful(Learner):
    """Remembers every board that was shown, and of which text it was."""

    def __init__(self, place: Workspace) -> None:
        self.boards: list[tuple[Submission, Board]] = []
        super().__init__(place)

    def show(self, state: Watching) -> None:
        seen = self.watch._seen
        if isinstance(seen, Submission):
            self.boards.append((seen, board(state.progress)))
        super().show(state)

    def settles(self) -> Board:
        """The board when every stage of the present text is judged."""

        def is_settled(state: Watching) -> bool:
            judged = all(status is not None for status, _ in board(state.progress).values())
            is_present = self.watch._seen == see(self.root / "exercises")
            return judged and is_present and state.phase is Phase.WAITING

        return board(self.sees(is_settled).progress)


def board(progress: Progress) -> Board:
    known = {stage.slug: progress.stage(stage.slug) for stage in TINY.stages}
    return {slug: (each.status, each.score) for slug, each in known.items()}


def watching(root: Path) -> Careful:
    return Careful(Workspace(root, TINY))


def save(root: Path, texts: Mapping[str, str | None]) -> None:
    """Write, or with None remove, several files in one go."""
    for name, text in texts.items():
        file = root / "exercises" / name
        if text is None:
            file.unlink(missing_ok=True)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")


def fresh(submissions: list[Submission]) -> list[Board]:
    """What a fresh `grade` says of each of them."""

    def each(engine: Engine) -> list[Board]:
        reports = [engine.grade_begun(Request(s, TINY.stages, SEED)) for s in submissions]
        return [{s.slug: (s.status, s.score) for s in report.stages} for report in reports]

    return with_engine(TINY, TINY.stages, "cpu", each)


def expect_no_stale_verdict(boards: list[tuple[Submission, Board]]) -> None:
    """Every verdict that was ever shown is the one on the text of that moment."""
    submissions: list[Submission] = []
    for submission, _ in boards:
        if submission not in submissions:
            submissions.append(submission)
    expected = fresh(submissions)
    for submission, shown in boards:
        right_one = expected[submissions.index(submission)]
        judged = {slug: found for slug, found in shown.items() if found[0] is not None}
        assert judged == {slug: right_one[slug] for slug in judged}
        assert all(score == 0 for status, score in shown.values() if status is None)


def passed(found: Board) -> set[str]:
    return {slug for slug, (status, _) in found.items() if status is Status.PASSED}


# --- what was found ----------------------------------------------------------------------------


def test_of_two_that_break_in_one_go_both_are_judged(root: Path) -> None:
    """As git checkout or an editor's save-all does."""
    with watching(root) as learner:
        assert passed(learner.settles()) == {"moving_average", "smooth", "roughness"}
        save(root, {"moving_average.py": wrong("moving_average"), "roughness.py": "1 / 0"})
        assert passed(learner.settles()) == set()
        save(root, {"moving_average.py": right("moving_average")})
        assert passed(learner.settles()) == {"moving_average", "smooth"}
        learner.judged("roughness", Status.FAILED)  # turned to, as all before it passes
    with watching(root) as later:
        assert passed(later.settles()) == {"moving_average", "smooth"}
    expect_no_stale_verdict(learner.boards + later.boards)


def test_what_changed_while_nobody_watched_is_judged(root: Path) -> None:
    with watching(root) as learner:
        learner.settles()
    save(root, {"moving_average.py": None, "roughness.py": wrong("roughness")})
    with watching(root) as later:
        assert passed(later.settles()) == set()
    _, first_shown = later.boards[0]
    assert first_shown == {stage.slug: (None, 0) for stage in TINY.stages}
    expect_no_stale_verdict(later.boards)


def test_a_helper_in_a_folder_below_is_followed(root: Path) -> None:
    with watching(root) as learner:
        learner.settles()
        save(root, {"tools/part.py": "", "smooth.py": "import tools.part\n" + right("smooth")})
        assert passed(learner.settles()) == {"moving_average", "smooth", "roughness"}
        save(root, {"tools/part.py": "1 / 0"})
        assert passed(learner.settles()) == {"moving_average", "roughness"}
    expect_no_stale_verdict(learner.boards)


def test_a_folder_that_is_refused_has_no_points_left(root: Path) -> None:
    with watching(root) as learner:
        learner.settles()
        save(root, {"huge.py": "#" * ((1 << 20) + 1)})
        assert learner.settles() == {stage.slug: (Status.FAILED, 0) for stage in TINY.stages}
        save(root, {"huge.py": None})
        assert passed(learner.settles()) == {"moving_average", "smooth", "roughness"}
    expect_no_stale_verdict(learner.boards)


def test_a_text_that_differs_in_no_stamp_is_seen(root: Path) -> None:
    """The file has the same length and times; on some systems two saves have the same time."""
    file = root / "exercises" / "roughness.py"
    with watching(root) as learner:
        learner.settles()
        times = file.stat()
        save(root, {"roughness.py": right("roughness").replace("max(", "min(")})
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert passed(learner.settles()) == {"moving_average", "smooth"}


def test_a_save_comes_before_what_is_left_to_judge(root: Path) -> None:
    """Another stage never ends, and is judged in the background."""
    patient = replace(TINY, limits=replace(TINY.limits, call_seconds=3 * LONGEST))
    endless = "import time\ndef smooth(values, width, times=1):\n    while True: time.sleep(1)\n"
    save(root, {"moving_average.py": stub("moving_average"), "smooth.py": endless})
    with Careful(Workspace(root, patient)) as learner:
        learner.judged("moving_average", Status.NOT_STARTED)
        time.sleep(0.5)  # well inside the loop
        save(root, {"moving_average.py": wrong("moving_average")})
        shown = learner.judged("moving_average", Status.FAILED)
        assert shown.progress.stage("smooth").status is None
        learner.presses("h")
        learner.sees(lambda state: state.panel is not None)


def test_it_turns_only_to_what_does_not_pass(root: Path) -> None:
    """After a save that changes nothing for the worse the learner stays where they are."""
    with watching(root) as learner:
        learner.settles()
        save(root, {"moving_average.py": "# tidied\n" + right("moving_average")})
        learner.settles()
        learner.sees(lambda state: state.success is not None)
        turned_to = {state.stage.slug for state in learner.states[-3:]}
    assert turned_to == {"moving_average"}


def test_a_notebooks_verdict_is_none_on_the_files(root: Path) -> None:
    save(root, {"roughness.py": stub("roughness")})
    result = StageResult("roughness", "", Status.PASSED, 2, 2, True, ())
    notebook = Submission("a notebook", {}, cells=("x = 1",))
    remember_results(root, [result], notebook, {"roughness": NOTEBOOK})
    assert recall_present(Workspace(root, TINY)).progress.stage("roughness").score == 2
    with watching(root) as learner:
        assert learner.settles()["roughness"] == (Status.NOT_STARTED, 0)
    assert learner.boards[0][1]["roughness"] == (None, 0)


def test_a_course_that_changes_ends_it(root: Path, tmp_path: Path) -> None:
    course = copy_tiny(tmp_path / "course")
    watch = Watch(Workspace(root, course), None, "cpu", SEED, changes_course, lambda *_: "")
    with pytest.raises(KitError, match="the course has changed: type `grade watch` again"):
        watch.run()


def changes_course(state: Watching) -> None:
    if state.phase is Phase.WAITING:
        with open(state.workspace.course.stages[0].check_file, "a", encoding="utf-8") as file:
            file.write("# more\n")


# --- whatever happens --------------------------------------------------------------------------


class Life:
    """What may happen in a learner's folder, drawn from a seed."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root = root
        self.chance = chance

    def something(self) -> None:
        self.chance.choice([self.edit, self.edit, self.save_all, self.delete, self.rename])()

    def edit(self) -> None:
        self.saves(1)

    def save_all(self) -> None:
        self.saves(self.chance.randint(2, len(TEXTS)))

    def saves(self, files: int) -> None:
        names = self.chance.sample(sorted(TEXTS), files)
        save(self.root, {name: self.chance.choice(TEXTS[name]) for name in names})

    def delete(self) -> None:
        names = self.chance.sample(sorted(TEXTS), self.chance.randint(1, 3))
        save(self.root, dict.fromkeys(names))

    def rename(self) -> None:
        """Two files change places, or one takes another name."""
        one, other = (self.root / "exercises" / n for n in self.chance.sample(sorted(TEXTS), 2))
        aside = self.root / "aside"
        for old, new in ((one, aside), (other, one), (aside, other)):
            new.parent.mkdir(exist_ok=True)
            with suppress(FileNotFoundError):
                old.replace(new)

    def damage(self) -> None:
        """Another program spoils or overwrites what is remembered."""
        file = memory_folder(self.root) / "progress.json"
        file.parent.mkdir(exist_ok=True)
        if self.chance.random() < 0.5 and file.exists():
            text = file.read_text(encoding="utf-8")
            file.write_text(text.replace("failed", "passed"), encoding="utf-8")
        else:
            file.write_text("{", encoding="utf-8")

    def kill(self) -> None:
        """`grade watch` runs and is killed at some moment, perhaps after a save."""
        words = ("watch", "--seed", str(SEED))
        with start_grade(*words, cwd=self.root, start_new_session=True) as process:
            if self.chance.random() < 0.7:
                process.stdout.readline()  # it has begun
                self.something()
            time.sleep(self.chance.uniform(0, 0.6))
            os.killpg(process.pid, signal.SIGKILL)


def live(root: Path, seed: int, rounds: int, steps: int) -> None:
    """Watch and let things happen, again and again; no board is ever another than a fresh one."""
    life = Life(root, random.Random(seed))
    boards: list[tuple[Submission, Board]] = []
    for _ in range(rounds):
        with watching(root) as learner:
            for _ in range(steps):
                for _ in range(life.chance.choice([1, 1, 2, 3])):
                    life.something()
                settled = learner.settles()
            end = time.monotonic() + LONGEST  # what is shown is written a moment later
            while board(recall_present(Workspace(root, TINY)).progress) != settled:
                assert time.monotonic() < end
                time.sleep(0.01)
        boards += learner.boards
        life.chance.choice([life.something, life.damage])()
        if sys.platform != "win32":
            life.kill()
    expect_no_stale_verdict(boards)


def test_no_board_is_ever_stale(root: Path) -> None:
    live(root, seed=15, rounds=2, steps=3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_no_board_is_ever_stale_in_a_long_life(root: Path, seed: int) -> None:
    live(root, seed, rounds=4, steps=8)


def test_a_verdict_is_on_what_was_read(root: Path) -> None:
    """What is saved while `grade` runs is not what it has judged."""
    workspace = Workspace(root, TINY)
    before = see(workspace.exercises)
    assert isinstance(before, Submission)
    texts = text_digests(TINY, before, course_digest(TINY))
    save(root, {"roughness.py": "1 / 0"})
    result = StageResult("roughness", "", Status.PASSED, 2, 2, True, ())
    remember_results(root, [result], before, texts)
    assert recall_present(workspace).progress.stage("roughness").status is None
