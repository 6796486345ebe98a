"""Someone who works on the tiny course and keeps `grade watch` open, for the tests."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from grader.learning.watch.loop import Watch
from grader.learning.watch.state import Phase, Watching
from grader.types.course import Stage
from grader.types.report import Status
from grader.types.workspace import Workspace
from tests.kit.support.checkout import TINY

SEED = 7
LONGEST = 60.0  # seconds; a test that waits longer has failed
Someone = TypeVar("Someone", bound="Learner")


class Learner:
    """Someone who watches, in a `with`: writes files, presses keys and looks at the screen."""

    def __init__(self, place: Workspace, stage: Stage | None = None) -> None:
        self.root = place.root
        self.edited: list[tuple[Path, int]] = []
        self.states: list[Watching] = []
        self._changed = threading.Condition()
        self.watch = Watch(place, stage, "cpu", SEED, self.show, self.edit)
        self._thread = threading.Thread(target=self.watch.run, daemon=True)

    def __enter__(self: Someone) -> Someone:
        self._thread.start()
        return self

    def __exit__(self, *how: object) -> None:
        self.presses("q")
        self._thread.join(LONGEST)
        assert not self._thread.is_alive()

    def show(self, state: Watching) -> None:
        with self._changed:
            self.states.append(state)
            self._changed.notify_all()

    def edit(self, file: Path, line: int) -> str:
        self.edited.append((file, line))
        return "no editor here"

    def sees(self, what: Callable[[Watching], bool]) -> Watching:
        """The first state from now on that is like this."""
        end = time.monotonic() + LONGEST
        with self._changed:
            while not (self.states and what(self.states[-1])):
                if not self._changed.wait(max(0.0, end - time.monotonic())):
                    pytest.fail(f"not seen; the last was {self.states[-1:]}")
            return self.states[-1]

    def judged(self, slug: str, status: Status) -> Watching:
        return self.sees(
            lambda state: (
                state.phase is Phase.WAITING
                and state.report is not None
                and (state.report.stages[0].slug, state.report.stages[0].status) == (slug, status)
            )
        )

    def writes(self, slug: str, text: str) -> None:
        """Save as most editors do: a new file takes the old one's place."""
        file = self.root / "exercises" / f"{slug}.py"
        new = file.with_suffix(".tmp")
        new.write_text(text, encoding="utf-8")
        new.replace(file)

    def solves(self, slug: str) -> None:
        self.writes(slug, TINY.stage(slug).solution_file.read_text(encoding="utf-8"))

    def presses(self, key: str) -> None:
        self.watch.press(key)


@pytest.fixture
def two_pytests_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks run in a pytest of their own, here in a thread of this one, and both would set
    and remove the same variable of the environment."""
    monkeypatch.setattr("_pytest.runner._update_current_test_var", lambda item, when: None)
