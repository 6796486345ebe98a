"""The answer to a student's complaint as one page of HTML, to give to the student. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import tzinfo

from grader.classes.late import Late
from grader.classes.report.look import PAGE_END, page_start, text, verbatim
from grader.classes.report.student import LONG_NAME, Person, about_student, moment
from grader.classes.why.answer import PRESENT, Answer, Failure
from grader.classes.why.changes import with_changes

_MOST = {"lines": 1000, "letters": 50_000}  # of an input, or of the lines that show a failure


def answer_page(
    title: str, answer: Answer, late: Late | None = None, zone: tzinfo | None = None
) -> Iterator[str]:
    """The page, piece by piece. It has no line of a check, a solution or another student.

    `late` is how late the submission came, if it did. Times are in the `zone`, or in UTC.
    """
    answer = replace(answer, report=answer.report.for_students)
    entry = replace(answer.entries[-1], report=answer.report)
    person = Person(1, entry, False, late, zone)
    yield page_start(f"{entry.student}: {title}")
    yield (
        f"<header><h1><bdi>{text(person.name, LONG_NAME)}</bdi></h1><p>{text(title)}</p></header>\n"
        "<main>"
    )
    yield from about_student(person, {})
    for failure in answer.failures:
        yield from _failure(failure)
    if answer.failures and not answer.is_same_version:
        yield f"<p>{text(PRESENT)}</p>"
    yield "<h2>All verdicts</h2><ul>"
    slugs = [stage.slug for stage in answer.report.stages]
    for entry, points, lines in with_changes(answer.entries, slugs, zone):
        yield f"<li>{text(moment(entry.when, zone))}: {points}, seed {entry.seed}"
        yield "".join(f"<br>{text(line, 2000)}" for line in lines) + "</li>"
    yield f"</ul></main>\n{PAGE_END}"


def _failure(failure: Failure) -> Iterator[str]:
    yield f"<h2><code>{text(failure.check or failure.slug)}</code> without the grader</h2>"
    if failure.why_not:
        yield f"<p>There are no lines to run: {text(failure.why_not)}.</p>"
    else:
        where = "in a cell below yours" if failure.is_notebook else "in the folder of your files"
        yield f"<p>Run these lines {where}:</p>{verbatim(failure.lines, **_MOST, style='code')}"
    for name, numbers in failure.inputs:
        shown = verbatim(numbers, **_MOST, style="code")
        yield f"<details><summary>The numbers of {text(name)}</summary>{shown}</details>"
