"""A class of the tiny course: answers to its stages, what students submit, and their results."""

import csv
import json
from pathlib import Path
from typing import Any

from grader.classes.folder.ledger import open_ledger
from grader.command.main import main
from tests.kit.support.files import write_files

AVERAGE = "import numpy as np\n\ndef moving_average(values, width):\n"
RIGHT = (
    AVERAGE + "    if not 1 <= width <= len(values):\n        raise ValueError('width')\n"
    "    return np.convolve(values, np.ones(width), 'valid') / width\n"
)
ONE_TOO_FEW = RIGHT.replace("'valid') / width", "'valid')[:-1] / width")
NO_ERROR = AVERAGE + "    return np.convolve(values, np.ones(width), 'valid') / width\n"
SMOOTH = (
    "from moving_average import moving_average\n\ndef smooth(values, width, times=1):\n"
    "    for _ in range(times):\n        values = moving_average(values, width)\n"
    "    return values\n"
)


def hand_in(folder: Path, **answers: str) -> None:
    """A folder for each student, with their answer to the first stage and a right second one."""
    for student, answer in answers.items():
        write_files(folder / student, {"moving_average.py": answer, "smooth.py": SMOOTH})


def class_of(course: Path, out: Path) -> list[str]:
    """The words that `grade class` begins with for this course and these results."""
    return ["class", "--course", str(course), "--out", str(out)]


def grade_class(course: Path, out: Path, *words: str | Path) -> int:
    """The exit code of `grade class ...`."""
    return main([*class_of(course, out), *map(str, words)])


def rows(table: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with open(table, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def gradebook(out: Path) -> dict[str, dict[str, str]]:
    """By student, the rows of scores.csv."""
    return {row["student_id"]: row for row in rows(out / "scores.csv")}


def scores(out: Path) -> dict[str, str]:
    """By student, the points in scores.csv."""
    return {student: row["score"] for student, row in gradebook(out).items()}


def results_of(out: Path) -> dict[str, Any]:
    """By student, the lines of results.jsonl."""
    lines = (out / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return {line["student"]: line for line in map(json.loads, lines)}


def verdicts(out: Path) -> list[object]:
    """All that must be equal wherever a class was graded and however often; times are not."""
    with open_ledger(out, create=False) as ledger:
        return [
            (
                entry.record,
                entry.seed,
                entry.report
                and [
                    (check.id, check.outcome, check.score, check.message, check.diagnosis)
                    for stage in entry.report.stages
                    for check in stage.checks
                ],
            )
            for entry in ledger.latest()
        ]
