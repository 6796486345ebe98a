"""The look of the class report: one page of HTML that needs no network. Pure.

Its content policy allows only the kit's own style and script, each by its digest: a student's
markup could do nothing even if it were not escaped. For the same reason there is no `style`
attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from grader.learning.explore.page import source_digest
from grader.types.resources import resource
from grader.types.text import safe

_STYLE = resource(__package__, "page.css")
_SCRIPT = resource(__package__, "page.js")
PAGE_END = f"<script>{_SCRIPT}</script>\n</body>\n</html>\n"
_BY_POINTS = "Students by their points (from 0 to all points, in tenths)"
_CUT = "\N{HORIZONTAL ELLIPSIS}"


def text(words: str, letters: int | None = None) -> str:
    """Anyone's text as harmless HTML, cut after `letters` characters."""
    words = safe(words)
    if letters is not None and len(words) > letters:
        words = words[:letters] + _CUT
    return escape(words)


def verbatim(words: str, lines: int = 40, letters: int = 4000, *, style: str = "") -> str:
    """Text with its own line breaks, cut to a reasonable length."""
    words = safe(words).strip("\n").rstrip()
    kept = "\n".join(words[:letters].split("\n")[:lines])
    more = f"\n{_CUT} and more" if kept != words else ""
    opening = f'<pre class="{style}" tabindex="0">' if style else "<pre>"
    return f"{opening}{escape(kept)}{more}</pre>"


def page_start(title: str) -> str:
    """What comes before the body of a page. After it comes PAGE_END."""
    policy = "; ".join(
        [
            "default-src 'none'",
            f"style-src '{source_digest(_STYLE)}'",
            f"script-src '{source_digest(_SCRIPT)}'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
    )


def table(
    name: str,
    caption: str,
    columns: Sequence[str],
    rows: Iterable[str],
    *,
    sorted_by: int | None = None,
    style: str = "",
) -> Iterator[str]:
    """A table of rows (HTML) in a box that scrolls; a click on a column's head sorts it.

    `name` is the table's id on the page. The rows come sorted by the column `sorted_by`.
    """
    yield (
        f'<div class="box {style}" role="region" aria-labelledby="{name}" tabindex="0">'
        f'<table class="sorts"><caption id="{name}">{caption}</caption><thead><tr>'
    )
    for number, head in enumerate(columns):
        order = ' aria-sort="ascending"' if number == sorted_by else ""
        yield f'<th scope="col"{order}><button type="button" disabled>{head}</button></th>'
    yield "</tr></thead>\n<tbody>\n"
    yield from rows
    yield "</tbody></table></div>\n"


def cell(shown: str, value: float | None = None, *, style: str = "", label: str = "") -> str:
    """A table cell. It sorts by `value`, or by its text without one.

    A screen reader reads `label`, if there is one, instead of what is `shown`.
    """
    given = {"class": style, "data-v": "" if value is None else f"{value:.6g}", "aria-label": label}
    attributes = "".join(f' {name}="{words}"' for name, words in given.items() if words)
    return f"<td{attributes}>{shown}</td>"


def bar(share: float) -> str:
    """A bar that repeats the number beside it, hidden from screen readers."""
    return (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="empty" width="100" height="10"/>'
        f'<rect class="full" width="{100 * min(max(share, 0), 1):.4g}" height="10"/></svg>'
    )


def histogram(points: Sequence[float], most: float) -> str:
    """A histogram of students by their points, in ten equal bins from 0 to `most`."""
    bins = [0] * 10
    for each in points:
        bins[min(max(int(10 * each / most), 0), 9) if most > 0 else 0] += 1
    edges = [f"{most * place / 10:.4g}" for place in range(11)]
    words = "; ".join(
        f"{edges[place]} to {edges[place + 1]}: {many}" for place, many in enumerate(bins) if many
    )
    highest = max(*bins, 1)
    parts = [
        '<figure><svg class="histogram" viewBox="0 0 400 150" role="img" aria-labelledby="bins">',
        f'<title id="bins">Students by their points. {words or "none"}.</title>',
    ]
    for place, many in enumerate(bins):
        tall = max(100 * many / highest, 2 if many else 0)
        left = 40 * place
        parts.append(
            f'<rect class="full" x="{left + 2}" y="{120 - tall:.4g}" width="36" '
            f'height="{tall:.4g}"/>'
        )
        if many:
            parts.append(f'<text x="{left + 20}" y="{115 - tall:.4g}">{many}</text>')
    parts.append('<line x1="0" y1="120" x2="400" y2="120"/>')
    for place in range(0, 11, 2):
        anchor = {0: ' class="first"', 10: ' class="last"'}.get(place, "")
        parts.append(f'<text x="{40 * place}" y="138"{anchor}>{edges[place]}</text>')
    parts.append(f"</svg><figcaption>{_BY_POINTS}</figcaption></figure>\n")
    return "".join(parts)
