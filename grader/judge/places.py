"""Whether anything is written where a stage asks for it. Pure."""

from __future__ import annotations

import re

from grader.run.sources import defined_elsewhere, definition, stage_sources
from grader.types.course import Stage
from grader.types.submission import Submission

_UNWRITTEN = re.compile(r"^[ \t]*raise NotImplementedError\b", re.MULTILINE)
# Code that may define names without writing them.
_HIDES_NAMES = re.compile(r"\b(exec|eval|globals|locals|vars|setattr|__dict__)\b|\bimport *\*")
_TEST = re.compile(r"^[ \t]*((async +def|def) +test|class +\w*Test)", re.MULTILINE)


def is_begun(submission: Submission, stage: Stage, stub: str) -> bool:
    """Whether a submission may hold anything of a stage but its `stub`.

    If all stages share a file or a notebook, whether it may define anything of the stage: that
    takes the name of an entry point, which code such as exec() may have in a text.
    """
    texts = [text for _, text in stage_sources(submission, stage)]
    if submission.is_folder:
        return "".join(texts).split() not in ([], stub.split())
    if stage.fixture:
        return any(stage.fixture in text for text in texts) and any(map(_TEST.search, texts))
    names = "|".join(entry.name for entry in stage.entry_points)
    definition = re.compile(rf"\b(def|class) +({names})\b|(?<![\"'.])\b({names})\b(?! *\()")
    if any(map(_HIDES_NAMES.search, texts)):
        definition = re.compile(rf"\b({names})\b")
    return any(map(definition.search, texts))


def is_written(submission: Submission, stage: Stage) -> bool:
    """Whether every entry point is defined, none of them beside code that is not written yet."""
    if stage.fixture:
        texts = [text for _, text in stage_sources(submission, stage) if stage.fixture in text]
        return any(_TEST.search(text) and not _UNWRITTEN.search(text) for text in texts)
    found = [_defining(submission, stage, entry.name) for entry in stage.entry_points]
    return all(texts and not _UNWRITTEN.search(texts[0]) for texts in found)


def is_replaced(submission: Submission, stage: Stage) -> bool:
    """Whether an entry point is written, and its stub stands below that."""
    found = [_defining(submission, stage, entry.name) for entry in stage.entry_points]
    return any(
        _UNWRITTEN.search(texts[0]) and not all(map(_UNWRITTEN.search, texts))
        for texts in found
        if texts
    )


def written_elsewhere(submission: Submission, stage: Stage) -> tuple[str, str] | None:
    """An entry point that is written in another file than the stage's, and that file."""
    for entry in stage.entry_points:
        for file, text in defined_elsewhere(submission, stage, entry.name):
            if not entry.is_fixture and not _UNWRITTEN.search(text):
                return entry.name, file
    return None


def _defining(submission: Submission, stage: Stage, name: str) -> list[str]:
    """The texts from each definition of a name to the next, the one that counts first."""
    defining: list[str] = []
    for _, text in stage_sources(submission, stage):
        starts = [found.start() for found in definition(name).finditer(text)]
        ends = [*starts[1:], len(text)][: len(starts)]
        defining += [text[a:b] for a, b in zip(starts, ends, strict=True)][::-1]
    return defining
