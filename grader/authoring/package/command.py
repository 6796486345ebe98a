"""`grade package`: makes packages of a course, which pip installs and `grade init` begins."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from grader.authoring.package.building import build
from grader.channels.command import warn_if_unproven
from grader.command.course import authors_course
from grader.command.output import short_path


def add_options(parser: argparse.ArgumentParser) -> None:
    """Make packages of the course for self-paced learners: a wheel and an sdist of all its files,
    solutions too, and a wheel of the grader, which a course needs. course.toml says their name,
    version, authors, license and requirements.
    """
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=Path("dist"), help="default: dist"
    )


def run(args: argparse.Namespace) -> int:
    """Build the packages; print them and how to install them."""
    course = authors_course(args)
    built = build(course, args.out)
    for file in built:
        print(f"written: {short_path(file)}")
    wheels = [shlex.quote(short_path(file)) for file in built if file.suffix == ".whl"]
    print()
    print(f"Install it:  pip install {' '.join(wheels)}")
    print(f"Begin it:    grade init --course {course.name}")
    warn_if_unproven(course)
    return 0
