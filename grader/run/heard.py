"""What a worker's replies report beside the answers: printed text and forbidden calls."""

from __future__ import annotations

from grader.run.facts import ForbiddenCall
from grader.run.traceback_words import frames_told
from grader.run.worker.wire import Frame
from grader.types.course import Stage
from grader.types.text import safe

_PRINT_CAP = 4000


class Heard:
    """What the learner's code printed and called in one stage; capped, as it may send anything."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.printed = ""
        self.forbidden: tuple[ForbiddenCall, ...] = ()

    def listen(self, reply: Frame) -> None:
        """Add what a reply reports."""
        if len(self.printed) <= _PRINT_CAP:
            self.printed += str(reply.aside.get("printed", ""))[: _PRINT_CAP + 1]
        self.note_calls(reply)

    def note_calls(self, reply: Frame) -> None:
        """Add the forbidden calls that a reply reports, each name once."""
        calls = reply.aside.get("forbidden")
        for call in calls if isinstance(calls, list) else []:
            name = call.get("name") if isinstance(call, dict) else None
            known = [each.name for each in self.forbidden]
            if name in self._stage.forbidden and name not in known:
                self.forbidden += (ForbiddenCall(name, frames_told(call)),)

    @property
    def told(self) -> str:
        """What the learner's code printed, as text for the report."""
        printed = safe(self.printed)
        more = "\n... and more" if len(printed) > _PRINT_CAP else ""
        return printed[:_PRINT_CAP].strip() + more
