"""The part of the class's report that shows which answers are alike. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from grader.show.class_look import text, verbatim
from grader.show.screen import count
from grader.types.similarity import Alike, Similar

_LISTED = 100  # groups of students
_LINES = 30
_LETTERS = 3000
_NAME = 40  # letters


def similar_section(
    similar: Similar | None, titles: Mapping[str, str], link: Callable[[str], str]
) -> Iterator[str]:
    """Which answers are alike, with their lines side by side; how to find out if `similar` is None.

    `titles` are the stages' by their slugs; `link` gives what leads to a student's page.
    """
    yield '<section aria-labelledby="similar"><h2 id="similar">Similar answers</h2>\n'
    if similar is None:
        yield (
            "<p>Not compared this time. Type the command with <code>--similar</code> too: what is "
            "graded already is not graded again.</p></section>\n"
        )
        return
    yield (
        "<p><strong>A place to look, never a verdict.</strong> Compared is only what at most "
        f"{count(similar.rare, 'student')} of the class {'has' if similar.rare == 1 else 'have'} "
        "written: the stub, the solution and what more students share are taken away, for a short "
        "task has few right answers, and so are names, comments and layout. Students who were "
        "allowed to work together, or who had the same source, write alike too.</p>\n"
    )
    groups: dict[tuple[str, ...], list[Alike]] = {}
    for one in similar.alike:
        groups.setdefault(one.students, []).append(one)
    if not groups:
        yield "<p>No two answers are more alike than the tasks bring about.</p>\n"
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), -_size(group[1])))
    for students, stages in ordered[:_LISTED]:
        yield from _group(students, stages, titles, link)
    more = similar.left_out + sum(len(stages) for _, stages in ordered[_LISTED:])
    if more:
        yield f"<p>And {count(more, 'pair')} less alike.</p>\n"
    yield "</section>\n"


def _size(stages: list[Alike]) -> int:
    return sum(one.size for one in stages)


def _group(
    students: tuple[str, ...],
    stages: list[Alike],
    titles: Mapping[str, str],
    link: Callable[[str], str],
) -> Iterator[str]:
    names = ", ".join(f"<bdi>{text(name, _NAME)}</bdi>" for name in students)
    said = ", ".join(f"{text(titles.get(one.stage, one.stage))} {one.share:.0%}" for one in stages)
    yield f"<details><summary><strong>{names}</strong>: {said}</summary>\n"
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
