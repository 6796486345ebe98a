"""Reads submissions from before a stage was renamed. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from grader.types.course import Stage
from grader.types.submission import Submission

# A module that stands for another one.
_STANDS_FOR = "import sys\nimport {slug}\nsys.modules[__name__] = {slug}\n"


def with_present_names(submission: Submission, stages: Iterable[Stage]) -> Submission:
    """The submission with each stage's file under its present name.

    A file that still has a former name of its stage gets the present one; files that import it by
    the former name still can.
    """
    files = dict(submission.files)
    for stage in stages if submission.is_folder else ():
        if stage.file_name in files or stage.file_name in submission.links:
            continue
        found = next((old for old in reversed(stage.formerly) if f"{old}.py" in files), None)
        if found is not None:
            files[stage.file_name] = files[f"{found}.py"]
            files[f"{found}.py"] = _STANDS_FOR.format(slug=stage.slug).encode()
    return replace(submission, files=files) if files != submission.files else submission
