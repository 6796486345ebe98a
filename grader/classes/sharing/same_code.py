"""Which of a submission's code is the same as another's: see `sameness`, which a worker runs."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

# Where no worker can be forked, this process runs it.
import grader.classes.sharing.sameness  # noqa: F401
from grader.engine import Request
from grader.run.reader import SourceReader, sent_along
from grader.run.sources import all_sources, cell_name
from grader.types.course import Course
from grader.types.submission import Submission

_ANOTHER_ENCODING = re.compile(rb"(?i)coding[:=](?![ \t]*utf-8(?![\w.-]))")


@dataclass(frozen=True)
class Same:
    """A stage's code: the `digest` of what it does, and the names of the `sources` that hold it.

    `lazy_from` is the first cell that imports annotations from __future__, for itself and the cells
    after it.
    """

    digest: str
    sources: frozenset[str]
    lazy_from: str | None

    def alone(self, submission: Submission) -> Submission:
        """The submission without its other sources."""
        if submission.cells is None:
            files = {name: data for name, data in submission.files.items() if name in self.sources}
            return replace(submission, files=files)

        def kept(name: str, cell: str) -> str:
            if name in self.sources:
                return cell
            return "from __future__ import annotations" if name == self.lazy_from else ""

        numbered = enumerate(submission.cells, start=1)
        return replace(submission, cells=tuple(kept(cell_name(n), cell) for n, cell in numbered))


def same_code(course: Course, request: Request, source: SourceReader) -> dict[str, Same]:
    """The code of each requested stage that no other code can affect, by slug."""
    submission = request.submission
    files = {name: data for name, data in submission.files.items() if name.endswith(".py")}
    if not all(map(_is_read_alike, files.values())):
        return {}
    kind = "files" if submission.is_folder else "script" if submission.script else "cells"
    about = {
        "modules": sent_along("grader.classes.sharing", ("plain_code", "sameness")),
        "sources": list(all_sources(replace(submission, files=files))),
        "kind": kind,
        "libraries": list(course.preload),
        "stages": {
            stage.slug: {
                "names": [entry.name for entry in stage.entry_points],
                "file": submission.script or stage.file_name,
                "forbidden": list(stage.forbidden),
            }
            for stage in request.stages
            if not stage.fixture
        },
    }
    found = source.look("sent", "same code", about) or {}
    return {
        slug: Same(digest, frozenset(names), lazy_from)
        for slug, (digest, names, lazy_from) in found.items()
    }


def _is_read_alike(data: bytes) -> bool:
    """Whether Python reads a file in UTF-8, as grader.run.sources does.

    In another encoding a comment may hold code.
    """
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return not _ANOTHER_ENCODING.search(b"\n".join(data.splitlines()[:2]))
