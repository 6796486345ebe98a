"""`grade release canvas | moodle | blackboard`: writes scores for a platform to import."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from grader.channels.rosters import PointsImport, blackboard_import, canvas_import, moodle_import
from grader.channels.scores import parse_scores
from grader.classes.folder.csv_files import csv_text, parse_table, read_text
from grader.command.output import console, short_path, write_file
from grader.show.screen import count
from grader.show.workspace import notices
from grader.types.errors import KitError
from grader.types.text import listed

_NAMES_SHOWN = 10
Fill = Callable[[Sequence[Sequence[str]], Mapping[str, float], str], PointsImport]


@dataclass(frozen=True)
class _Platform:
    """A learning platform: what it exports, what names its students, and where to import."""

    name: str
    fill: Fill
    exported: str
    matched: str
    then: str
    locked: str = "Locked"
    has_columns: bool = True  # of several assignments
    quotes_all: bool = False  # in a table that no tabs divide


_PLATFORMS = (
    _Platform(
        "Canvas",
        canvas_import,
        "exported from Canvas' gradebook",
        "SIS Login ID",
        "Gradebook, Import",
        "Excused or not assigned",
    ),
    _Platform(
        "Moodle",
        moodle_import,
        "the assignment's grading worksheet, downloaded from Moodle in English",
        "email address or ID number",
        "the assignment, Submissions, Upload grading worksheet",
        has_columns=False,
    ),
    _Platform(
        "Blackboard",
        blackboard_import,
        "the gradebook, downloaded from Blackboard with Work Offline",
        "Username or Student ID",
        "the gradebook, Upload",
        quotes_all=True,
    ),
)


def add_parsers(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `grade release canvas`, `moodle` and `blackboard`."""
    for platform in _PLATFORMS:
        name = platform.name
        parser = kinds.add_parser(
            name.lower(),
            help=f"write scores as a CSV file that {name} imports",
            description=f"Put scores into a table that {name} exported, for {name} to import. "
            f"Students are matched by their {platform.matched}.",
        )
        parser.add_argument(
            "--roster", type=Path, required=True, metavar="EXPORT.csv", help=platform.exported
        )
        parser.add_argument(
            "--scores",
            type=Path,
            required=True,
            metavar="SCORES.csv",
            help="from `nbgrader export`, or any table with columns student_id and score",
        )
        if platform.has_columns:
            what = f"the assignment's name in {name}"
            parser.add_argument("--assignment", required=True, metavar="NAME", help=what)
        parser.add_argument(
            "--from",
            dest="source",
            metavar="NAME",
            help="the assignment's name in SCORES.csv (default: the only one)",
        )
        default = f"{name.lower()}-import.csv"
        parser.add_argument(
            "--out", type=Path, metavar="FILE.csv", default=default, help=f"default: {default}"
        )
        parser.set_defaults(run=partial(_run, platform), assignment="")


def _run(platform: _Platform, args: argparse.Namespace) -> int:
    """Write the table; print which students got no score, and which scores have no student."""
    text = read_text(args.roster)
    roster, between = parse_table(text, "the roster")
    scores = parse_scores(read_text(args.scores), args.source, str(args.scores))
    if args.out.exists() and any(args.out.samefile(f) for f in (args.roster, args.scores)):
        raise KitError(f"--out {args.out}: is one of the tables that are read: choose another file")
    done = platform.fill(roster, scores.by_login, args.assignment)
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    quotes_all = platform.quotes_all and between != "\t"
    table = csv_text(done.rows, between, quotes_all=quotes_all)
    write_file(args.out, (mark + table).encode())
    name = platform.name
    written = f"Written: {short_path(args.out)}, with {count(done.given, 'score')} in "
    sentences = [f"{written}'{done.column}'. In {name}: {platform.then}."]
    sentences += _listed("No score, so the cell is unchanged:", done.without_score)
    sentences += _listed(f"{platform.locked} in {name}, so unchanged:", done.locked)
    sentences += _listed(f"A score, but no such student in {name}:", done.without_student)
    unclear = [f"'{login}'" for login in scores.unclear]
    sentences += _listed("Left out, because they differ only by case or spaces:", unclear)
    highest, possible = scores.max_score, _points(done.points_possible)
    if highest is not None and possible is not None and highest != possible:
        sentences.append(
            f"The scores are out of {highest:g}, but {name} has {possible:g} points possible and "
            "does not rescale: change one of the two."
        )
    console(args).print(notices(sentences), end="")
    return 0


def _listed(what: str, names: Sequence[str]) -> list[str]:
    return [f"{what} {listed(names, most=_NAMES_SHOWN)}."] if names else []


def _points(text: str) -> float | None:
    """Points possible as a platform writes them, maybe with a decimal comma."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None
