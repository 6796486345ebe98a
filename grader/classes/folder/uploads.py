"""Chooses which of a student's uploaded files count.

Functions whose names start with `read` read files; the rest are pure.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from grader.classes.folder.downloads import ARCHIVE, Heap, read_files
from grader.classes.nbgrader.submitted import (
    choose_notebook,
    hidden_names,
    most_like_it,
    name_notes,
    names_in,
    only,
    renaming,
)
from grader.read.files import listed_names
from grader.read.stubs import read_stub, same_but_for_words
from grader.read.submission import (
    notebook_bytes,
    parse_cells,
    read_submission,
    script,
    text_cell_notes,
)
from grader.types.course import Stage
from grader.types.errors import SubmissionFileError
from grader.types.submission import IS_A_LINK, Submission
from grader.types.text import listed, safe_line

# What browsers and file managers add to a name: "x (1)", "x - Copy", "Copy of x", "x copy 2".
_ADDED = re.compile(r"^copy of\s+|\s*\(\d+\)$|[\s_-]+copy(\s*\d+)?$|[\s_-]+\d+$", re.IGNORECASE)

_LONGEST_NAME = 255  # characters of a file's name that may be a stage's: a folder has no longer one
_ARCHIVES_CAP = 20  # per student
_NAMED, _NAME_SHOWN = 3, 60  # how many skipped files to name, and how much of each name
_PY_INSTEAD = "the .py files were"


@dataclass(frozen=True)
class Upload:
    """The files that count, and a sentence in `notes` about everything unusual."""

    submission: Submission
    notes: tuple[str, ...] = ()


def read_upload(folder: Path, stages: tuple[Stage, ...], notebook: str) -> Upload:
    """Read the submission in a student's folder, where `notebook`.ipynb is expected.

    The .py files count if one of them is a stage's, in whatever folder; but if all of them are
    still stubs and there is a notebook, the notebook counts. If there is neither, archives are
    opened. Raises SubmissionFileError, which tells the student what is wrong, without the path of a
    folder on the server.
    """
    try:
        return _read_upload(folder, stages, notebook)
    except SubmissionFileError as error:
        text = str(error).replace(f"{folder}{os.sep}", "").replace(str(folder), "your submission")
        raise SubmissionFileError(safe_line(text)) from None


def _read_upload(folder: Path, stages: tuple[Stage, ...], notebook: str) -> Upload:
    found, others = choose_notebook(folder, notebook, _grade_ids(stages))
    try:
        there = read_submission(folder)
    except SubmissionFileError:
        if found is None:
            raise
        there = Submission(str(folder), {})
    paths = map(folder.joinpath, listed_names(folder))
    archives = [path for path in paths if path.suffix.lower() == ARCHIVE]
    unopened = _left_out([path.name for path in archives], "other files were")
    upload = chosen(there.files, stages)
    if upload is not None:
        upload = _with_notes(
            upload, [*link_notes(there.links), *_hidden_notes(names_in(folder), there.files)]
        )
    if found is not None and (upload is None or not _begun(upload.submission, stages)):
        shown = found.relative_to(folder).as_posix()
        upload = _notebook(notebook_bytes(found, folder), shown, notebook, others, stages)
        return _with_notes(upload, unopened)
    if upload is not None:
        ignored = [] if found is None else [found.relative_to(folder).as_posix(), *others]
        return _with_notes(upload, [*_left_out(ignored, _PY_INSTEAD), *unopened])
    if not archives:
        raise _nothing(stages, notebook, names_in(folder))
    heap = read_files((path.name, path) for path in archives[:_ARCHIVES_CAP])
    return heap_upload(heap, stages, notebook)


def heap_upload(heap: Heap, stages: tuple[Stage, ...], notebook: str) -> Upload:
    """Choose from a heap of files by the rules of `read_upload`. Raises SubmissionFileError."""
    upload = chosen(heap.files, stages)
    if heap.notebooks and (upload is None or not _begun(upload.submission, stages)):
        right = f"{notebook}.ipynb"
        items = sorted(heap.notebooks.items(), key=lambda item: (item[0] != right, item[0]))
        shown, *others = most_like_it(items, right, _grade_ids(stages))
        data = heap.notebooks[shown]
        counted = _notebook(data, shown, notebook, others, stages)
        return _with_notes(counted, _twice_notes(heap, [shown]))
    if upload is None:
        raise _nothing(stages, notebook, [*heap.files, *heap.others])
    notes = [*_twice_notes(heap, sorted(heap.files)), *_hidden_notes(heap.others, heap.files)]
    return _with_notes(upload, [*notes, *_left_out(sorted(heap.notebooks), _PY_INSTEAD)])


def _with_notes(upload: Upload, notes: Sequence[str]) -> Upload:
    return replace(upload, notes=(*upload.notes, *notes))


def _left_out(names: Sequence[str], why: str) -> list[str]:
    """A sentence about files that were not graded: it names the first, and says why."""
    named = listed([safe_line(name[:_NAME_SHOWN]) for name in names], most=1)
    return [f"{named} {'were' if names[1:] else 'was'} not graded: {why}."] if names else []


def _hidden_notes(names: Iterable[str], files: Container[str]) -> list[str]:
    """A sentence about files that an ending too many keeps from being among the `files`."""
    hidden = [name for name in hidden_names(names) if name.rpartition(".")[0] not in files]
    return _left_out(hidden, renaming(hidden))


def _twice_notes(heap: Heap, names: Iterable[str]) -> list[str]:
    """A sentence about the first of these files that came several times."""
    there = [name for name in names if name in heap.twice]
    if not there:
        return []
    named, place = listed(list(map(safe_line, there)), most=1), safe_line(heap.twice[there[0]])
    return [f"{named} came several times: that of {place} counts."]


def link_notes(links: Iterable[str]) -> list[str]:
    """A sentence for each of the first few files that are links."""
    return [f"{safe_line(link[:_NAME_SHOWN])} {IS_A_LINK}." for link in sorted(links)[:_NAMED]]


def _grade_ids(stages: Iterable[Stage]) -> list[str]:
    """The ids of the cells in a released notebook of these stages."""
    names = (name for stage in stages for name in (stage.slug, *stage.formerly))
    return [cell for name in names for cell in (name, f"{name}-code")]


def _nothing(stages: tuple[Stage, ...], notebook: str, names: Iterable[str]) -> SubmissionFileError:
    """The error for a submission with only files of other names."""
    names = sorted(names)
    wanted = f"submit {notebook}.ipynb or {', '.join(stage.file_name for stage in stages)}"
    if any(name.lower().endswith(ARCHIVE) for name in names):  # in another archive
        wanted = f"unpack it, and {wanted}"
    advice = renaming(names, notebook) or wanted
    return SubmissionFileError(f"There is nothing to grade here{only(names)}: {advice}")


def chosen(files: Mapping[str, bytes], stages: tuple[Stage, ...]) -> Upload | None:
    """Choose among these .py files, given by path; None if none counts.

    The folder with the most stage files counts. In it, a file whose name is nearly right stands for
    a stage that has no other file. Without such a folder, a single file counts for all stages.
    """
    folders: dict[str, dict[str, bytes]] = {}
    for path, data in files.items():
        for parent in PurePosixPath(path).parents:
            name = PurePosixPath(path).relative_to(parent).as_posix()
            folders.setdefault(str(parent), {})[name] = data
    best: tuple[int, int, str] | None = None
    for folder, found in folders.items():
        rank = (-len(_named(found, stages)), folder.count("/") + (folder != "."), folder)
        if rank[0] and (best is None or rank < best):
            best = rank
    if best is None:
        if len(files) != 1:
            return None
        (path, data), *_ = files.items()
        name = PurePosixPath(path).name
        return Upload(script(path, name, data))
    counted = folders[best[2]]
    names = _named(counted, stages)
    notes = tuple(
        f"{safe_line(old)} was graded as {new}." for new, old in names.items() if old != new
    )
    notes += tuple(_elsewhere_notes(files, [s for s in stages if s.file_name not in names]))
    notes += tuple(_version_notes(files, best[2], names.values()))
    kept = {path: data for path, data in counted.items() if path not in names.values()}
    kept |= {new: counted[old] for new, old in names.items()}
    return Upload(Submission("the .py files", dict(sorted(kept.items()))), notes)


def _elsewhere_notes(files: Iterable[str], missing: Iterable[Stage]) -> list[str]:
    """A sentence about files of these `missing` stages that are in another folder."""
    wanted = {stage.file_name for stage in missing}
    found = {PurePosixPath(path).name: path for path in sorted(files, reverse=True)}
    there = [found[name] for name in sorted(wanted & found.keys())]
    return _left_out(there, "put all files into one folder")


def _version_notes(files: Mapping[str, bytes], folder: str, graded: Iterable[str]) -> list[str]:
    """A sentence about the other versions of the files in `folder` that count."""
    paths = {_slug(name): PurePosixPath(folder, name).as_posix() for name in graded}
    others = {
        path: paths[slug]
        for path in sorted(files)
        if (slug := _slug(PurePosixPath(path).name)) in paths and files[path] != files[paths[slug]]
    }
    instead = next(iter(others.values()), "")
    return _left_out(list(others), f"{safe_line(instead)} was")


def _named(files: Mapping[str, bytes], stages: tuple[Stage, ...]) -> dict[str, str]:
    """The file name of each stage that was found, and the file's actual name.

    A file keeps the name that its stage once had.
    """
    found = {stage.file_name: stage.file_name for stage in stages if stage.file_name in files}
    here = [stage for stage in stages if stage.file_name not in found]
    former = [(f"{old}.py", stage.slug) for stage in here for old in reversed(stage.formerly)]
    once = {slug: name for name, slug in reversed(former) if name in files}
    found |= {name: name for name in once.values()}
    wanted = {stage.slug: stage.file_name for stage in here if stage.slug not in once}
    for path in sorted(path for path in files if "/" not in path and len(path) <= _LONGEST_NAME):
        name = wanted.pop(_slug(path), None)
        if name is not None:
            found[name] = path
    return found


def _slug(name: str) -> str:
    """The stage that a .py file of this name may be meant for."""
    stem = _ADDED.sub("", name.removesuffix(".py")[:_LONGEST_NAME])
    return re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")


def _begun(submission: Submission, stages: tuple[Stage, ...]) -> bool:
    """Whether any stage's file names what the stage asks for, and is no longer the stub."""
    names = ((f"{slug}.py", stage) for stage in stages for slug in (stage.slug, *stage.formerly))
    stubs = dict(names)
    texts = {
        name: data.decode("utf-8-sig", "replace")
        for name, data in submission.files.items()
        if name in stubs
    }
    return any(
        any(re.search(rf"\b{entry.name}\b", text) for entry in stubs[name].entry_points)
        and not same_but_for_words(text, read_stub(stubs[name]))
        for name, text in texts.items()
    )


def _notebook(
    data: bytes, shown: str, name: str, others: Sequence[str], stages: tuple[Stage, ...]
) -> Upload:
    """The notebook as an upload."""
    shown = safe_line(shown)
    cells = parse_cells(data, shown)
    notes = (*name_notes(shown, name, others), *text_cell_notes(data, stages))
    return Upload(Submission(shown, {}, cells=cells), notes)
