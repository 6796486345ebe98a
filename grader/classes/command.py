"""`grade class`: grades every submission of a class, and can justify every point later."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

from grader.command.grade import DEVICES
from grader.read.workspace import locate_whole_course
from grader.types.errors import KitError

_NOT_WITH_NBGRADER = (
    *("out", "assignment", "times", "junit", "since", "for_author", "similar", "anonymous"),
    *("yes", "dask"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Grade a folder that holds one folder, notebook, .py or .zip file for each student. --out
    keeps every verdict, old ones too. Rerun the command at any time: it continues where it stopped
    and grades only new submissions. With --nbgrader: grade submitted/ of an nbgrader course and
    write autograded/ and the gradebook; nbgrader continues from there.
    """
    parser.add_argument(
        "what",
        nargs="?",
        metavar="SUBMISSIONS",
        help="the folder; with --nbgrader: the assignment; with --why: a stage",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="the folder for the results")
    parser.add_argument(
        "--assignment", metavar="NAME", help="its name in course.toml (default: the only one)"
    )
    parser.add_argument(
        "--times",
        type=Path,
        metavar="CSV",
        help="a CSV file that says when students submitted (student, submitted), for the deadline "
        "in course.toml; Moodle's grading worksheet and nbgrader's export are such files",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--regrade",
        action="store_true",
        help="after a change to the course or the kit: regrade every submission whose verdict "
        "may change, and show all differences before they count",
    )
    what.add_argument(
        "--why",
        metavar="STUDENT",
        help="show how a student's points came about, and write a page for the student; add a "
        "stage for the numbers, such as --why ann softmax",
    )
    what.add_argument(
        "--requests",
        type=Path,
        metavar="CSV",
        help="a CSV file of requests (student, stage, words): regrade each, and write the verdicts "
        "with reasons to decisions.csv",
    )
    what.add_argument("--nbgrader", type=Path, metavar="DIR", help="the nbgrader course")
    parser.add_argument(
        "--yes", action="store_true", help="accept the differences of --regrade without asking"
    )
    parser.add_argument(
        "--junit", action="store_true", help="also write JUnit XML for each student"
    )
    parser.add_argument(
        "--since",
        type=Path,
        metavar="DIR",
        help="the folder with the results of an earlier assignment of this class: the report shows "
        "how the class changed since then",
    )
    parser.add_argument(
        "--for-author",
        action="store_true",
        help="also write for-author.md and .json, without names: the failures that nothing "
        "explains, each with the shortest code that shows it, and the hints that did not help",
    )
    parser.add_argument(
        "--similar", action="store_true", help="list similar answers in report.html"
    )
    parser.add_argument(
        "--anonymous", action="store_true", help="show numbers instead of names in report.html"
    )
    parser.add_argument(
        "--force", action="store_true", help="with --nbgrader: also regrade finished submissions"
    )
    parser.add_argument(
        "--device",
        choices=DEVICES,
        default="cpu",
        help="default: cpu; with a GPU, submissions are graded one at a time, without a memory "
        "limit",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="how many submissions to grade at once (default: one per CPU core)",
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="grade on a Dask cluster; ADDRESS is its scheduler, such as tcp://host:8786",
    )
    parser.add_argument(
        "--seconds-per-submission",
        type=_seconds,
        metavar="N",
        help="time limit for grading one submission (default: submission_seconds in course.toml); "
        "--out keeps the number",
    )
    parser.add_argument("--seed", type=int, help="seed of the checks' random inputs")
    parser.add_argument(
        "--unlocked",
        action="store_true",
        help="grade even if this machine cannot fully lock submissions in; one could then change "
        "another's points, and every report says so",
    )


def _seconds(word: str) -> float:
    """A number of seconds that was typed."""
    try:
        seconds = float(word)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {word!r}")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Run what the options ask for; 0 unless a person has to look at something."""
    _expect_to_go_together(args)
    # Each imports what only it needs, and that takes long.
    if args.nbgrader is not None:
        from grader.classes.nbgrader import grade_command as nbgrader
        from grader.classes.nbgrader.course import configured_course

        place = configured_course(args.nbgrader) if args.course is None else args.course
        return nbgrader.grade(args, locate_whole_course(place))
    from grader.classes.folder.settings import course_of

    course = course_of(args)
    if args.why is not None or args.requests is not None:
        from grader.classes.why import command as why

        return why.why(args, course) if args.why is not None else why.decide(args, course)
    from grader.classes.folder import grade_command as folder

    return folder.regrade(args, course) if args.regrade else folder.grade(args, course)


def _expect_to_go_together(args: argparse.Namespace) -> None:
    """Raise KitError for options that exclude each other."""
    if args.nbgrader is not None:
        for option in _NOT_WITH_NBGRADER:
            if getattr(args, option):
                raise KitError(
                    f"--{option.replace('_', '-')} does not work with --nbgrader: remove it"
                )
        return
    if args.force:
        raise KitError("--force works only with --nbgrader: to regrade here, type --regrade")
    if args.similar and args.anonymous:
        raise KitError("--similar shows names: remove --anonymous")
    if args.similar and find_spec("rapidfuzz") is None:
        raise KitError("--similar needs rapidfuzz: type `pip install rapidfuzz`")
    asks = next((name for name in ("why", "requests", "regrade") if getattr(args, name)), None)
    if args.out is None and asks:
        raise KitError(f"--{asks} needs the folder of the class's results: add --out RESULTS")
    if args.out is None:
        raise KitError(
            "type `grade class SUBMISSIONS --out RESULTS`, with a folder for the results"
        )
    if args.times is not None and (args.why or args.requests or args.regrade):
        raise KitError(
            "--times counts only when a folder is graded: type `grade class SUBMISSIONS --out DIR "
            "--times FILE.csv` first"
        )
    if args.what is not None and (args.requests or args.regrade):
        option = "--requests" if args.requests else "--regrade"
        raise KitError(f"{option} reads the submissions that --out keeps: remove '{args.what}'")
