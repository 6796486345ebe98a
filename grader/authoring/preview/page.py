"""The preview of a stage as one page of HTML. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby

from grader.authoring.preview.parts import Part
from grader.show.screen import Screen
from grader.types.course import Stage
from grader.types.resources import filled


def preview_page(stage: Stage, parts: Sequence[Part], drawn: Callable[[Screen], str]) -> str:
    """The whole page; `drawn` makes HTML of what a terminal shows."""
    links, body = [], []
    for group, own in groupby(parts, key=lambda part: part.group):
        anchor = group.lower().replace(" ", "-")
        links.append(f'<a href="#{anchor}">{escape(group)}</a>')
        body.append(f'<section id="{anchor}"><h2>{escape(group)}</h2>')
        for part in own:
            body.append(
                f"<h3>{escape(part.title)}</h3>{part.html or _terminal(drawn(part.screen))}"
            )
        body.append("</section>")
    return filled(
        __package__,
        "templates/page.html",
        title=escape(stage.title),
        slug=escape(stage.slug),
        links=" ".join(links),
        body="\n".join(body),
    )


def _terminal(drawn: str) -> str:
    lines = drawn.strip("\n")
    return f'<pre class="terminal">{lines}</pre>'
