"""The preview of a stage as one page of HTML."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from itertools import groupby

from rich.console import Console

from grader.authoring.preview.parts import Part
from grader.show.screen import Screen
from grader.types.course import Stage
from grader.types.resources import filled


def preview_page(stage: Stage, parts: Sequence[Part]) -> str:
    """The whole page."""
    links, body = [], []
    for group, own in groupby(parts, key=lambda part: part.group):
        anchor = group.lower().replace(" ", "-")
        links.append(f'<a href="#{anchor}">{escape(group)}</a>')
        body.append(f'<section id="{anchor}"><h2>{escape(group)}</h2>')
        for part in own:
            body.append(f"<h3>{escape(part.title)}</h3>{part.html or _drawn(part.screen)}")
        body.append("</section>")
    return filled(
        __package__,
        "templates/page.html",
        title=escape(stage.title),
        slug=escape(stage.slug),
        links=" ".join(links),
        body="\n".join(body),
    )


def _drawn(screen: Screen) -> str:
    """A screen as a terminal of 80 columns shows it."""
    terminal = Console(
        record=True, width=80, file=io.StringIO(), force_terminal=True, color_system="standard"
    )
    terminal.print(screen, end="")
    lines = terminal.export_html(inline_styles=True, code_format="{code}").strip("\n")
    return f'<pre class="terminal">{lines}</pre>'
