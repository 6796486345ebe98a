"""`grade release canvas`: writes scores for Canvas to import."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from grader.channels.canvas import canvas_import
from grader.channels.scores import parse_scores, parse_table, read_text
from grader.classes.folder.tables import csv_text
from grader.command.output import console, short_path, write_file
from grader.show.screen import count
from grader.show.workspace import notices

_NAMES_SHOWN = 10


def add_parser(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `grade release canvas`."""
    parser = kinds.add_parser(
        "canvas",
        help="write scores as a CSV file that Canvas' gradebook imports",
        description="Put scores into the CSV file that Canvas' gradebook exported, for Canvas to "
        "import. Students are matched by their SIS Login ID.",
    )
    parser.add_argument(
        "--roster",
        type=Path,
        required=True,
        metavar="EXPORT.csv",
        help="exported from Canvas' gradebook",
    )
    parser.add_argument(
        "--scores",
        type=Path,
        required=True,
        metavar="SCORES.csv",
        help="from `nbgrader export`, or any table with columns student_id and score",
    )
    parser.add_argument(
        "--assignment", required=True, metavar="NAME", help="the assignment's name in Canvas"
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="NAME",
        help="the assignment's name in SCORES.csv (default: the only one)",
    )
    parser.add_argument("--out", type=Path, metavar="FILE.csv", help="default: canvas-import.csv")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the table; print which students got no score, and which scores have no student."""
    text = read_text(args.roster)
    roster, between = parse_table(text, "the roster")
    scores = parse_scores(read_text(args.scores), args.source, str(args.scores))
    done = canvas_import(roster, scores.by_login, args.assignment)
    out: Path = args.out or Path("canvas-import.csv")
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    write_file(out, (mark + csv_text(done.rows, between)).encode())
    written = f"Written: {short_path(out)}, with {count(done.given, 'score')} in "
    sentences = [f"{written}'{done.column}'. In Canvas: Gradebook, Import."]
    sentences += _listed("No score, so the cell is unchanged:", done.without_score)
    sentences += _listed("Excused or not assigned in Canvas, so unchanged:", done.excused)
    sentences += _listed("A score, but no such login in Canvas:", done.without_student)
    highest, possible = scores.max_score, _points(done.points_possible)
    if highest is not None and possible is not None and highest != possible:
        sentences.append(
            f"The scores are out of {highest:g}, but Canvas has {possible:g} points possible and "
            "does not rescale: change one of the two."
        )
    console(args).print(notices(sentences), end="")
    return 0


def _listed(what: str, names: Sequence[str]) -> list[str]:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return [f"{what} {', '.join(names[:_NAMES_SHOWN])}{more}."] if names else []


def _points(text: str) -> float | None:
    """Points possible as Canvas writes them, maybe with a decimal comma."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None
