"""The part of the class's report that shows which answers are alike. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from grader.classes.report.look import text, verbatim
from grader.classes.report.types import Alike, Similar
from grader.show.screen import count
from grader.types.text import listed

_LISTED = 100  # groups of students
_LINES = 30
_LETTERS = 3000
_NAME = 40  # letters


def similar_answers(
    similar: Similar | None, titles: Mapping[str, str], link: Callable[[str], str]
) -> Iterator[str]:
    """The similar answers, with their lines side by side; how to compare if `similar` is None.

    `titles` maps slugs to titles; `link` makes a link to a student's section.
    """
    if similar is None:
        yield (
            "<p>Not compared this time. Rerun the command with <code>--similar</code>: it does not "
            "grade anything twice.</p>\n"
        )
        return
    yield (
        "<p><strong>A place to look, never a verdict.</strong> A short task has few right answers, "
        f"so the comparison only uses code that at most {count(similar.rare, 'student')} of the "
        "class wrote. It ignores the stub, the solution, and all names, comments and layout. "
        "Students who worked together with permission, or who used the same source, also write "
        "similar code.</p>\n"
    )
    groups: dict[tuple[str, ...], list[Alike]] = {}
    for one in similar.alike:
        groups.setdefault(one.students, []).append(one)
    if not groups:
        yield "<p>No two answers are more alike than the tasks themselves explain.</p>\n"
    ordered = sorted(
        groups.items(), key=lambda group: (-len(group[1]), -sum(one.size for one in group[1]))
    )
    for students, stages in ordered[:_LISTED]:
        yield from _group(students, stages, titles, link)
    if similar.unread:
        names = listed(list(map(link, similar.unread)), most=_LISTED)
        yield (
            f"<p>Not compared: {names}. Some of their code is very long, hard to parse or not in "
            "UTF-8. Such code can hide a copy: look at it yourself.</p>\n"
        )
    more = similar.left_out + sum(len(stages) for _, stages in ordered[_LISTED:])
    if more:
        yield f"<p>And {count(more, 'less similar pair')}.</p>\n"


def _group(
    students: tuple[str, ...],
    stages: list[Alike],
    titles: Mapping[str, str],
    link: Callable[[str], str],
) -> Iterator[str]:
    names = ", ".join(f"<bdi>{text(name, _NAME)}</bdi>" for name in students)
    shares = ", ".join(
        f"{text(titles.get(one.stage, one.stage))} {one.share:.0%}" for one in stages
    )
    yield f"<details><summary><strong>{names}</strong>: {shares}</summary>\n"
    yield f"<p>Their pages: {', '.join(map(link, students))}.</p>\n"
    for one in stages:
        yield (
            f"<h3>{text(titles.get(one.stage, one.stage))}</h3>"
            f"<p>{one.share:.0%} alike, {count(one.size, 'token')} of Python.</p>"
            '<div class="pair">'
        )
        for name, excerpt in zip(students, one.excerpts, strict=False):
            shown = verbatim(excerpt, _LINES, _LETTERS)
            yield f"<div><h4><bdi>{text(name, _NAME)}</bdi></h4>{shown}</div>"
        yield "</div>\n"
    yield "</details>\n"
