"""What the class's report looks like: one page of HTML that needs no network. Pure.

Its policy lets nothing in but the style and the script below, each by its digest, so that no markup
of a stranger's could do anything even if it were not escaped; so there is no `style` attribute.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from grader.types.text import safe

_CUT = "\N{HORIZONTAL ELLIPSIS}"


def text(words: str, letters: int | None = None) -> str:
    """Anybody's text, cut to so many letters if need be, as text and nothing else."""
    words = safe(words)
    if letters is not None and len(words) > letters:
        words = words[:letters] + _CUT
    return escape(words)


def verbatim(words: str, lines: int = 40, letters: int = 4000) -> str:
    """Text as it is, in its own lines, cut to what a page can bear."""
    words = safe(words).strip("\n").rstrip()
    kept = "\n".join(words[:letters].split("\n")[:lines])
    return f"<pre>{escape(kept)}{f'{chr(10)}{_CUT} and more' if kept != words else ''}</pre>"


def page(title: str, body: Iterable[str]) -> Iterator[str]:
    """A whole document around the pieces of its body."""
    policy = "; ".join(
        [
            "default-src 'none'",
            f"style-src '{_digest(_STYLE)}'",
            f"script-src '{_digest(_SCRIPT)}'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
    )
    yield from body
    yield f"<script>{_SCRIPT}</script>\n</body>\n</html>\n"


def table(
    name: str,
    caption: str,
    columns: Sequence[str],
    rows: Iterable[str],
    *,
    sorted_by: int | None = None,
    style: str = "",
) -> Iterator[str]:
    """A table of rows (HTML) in a box of its own to scroll in; a click on a head sorts it.

    `name` tells it from the page's other tables. `sorted_by` is the column that the rows are sorted
    by already.
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


def cell(shown: str, value: float | None = None, *, style: str = "", said: str = "") -> str:
    """A cell of a table that is sorted by its text, or by a `value` if it has one.

    `said` is what a screen reader says in the place of what is `shown`.
    """
    given = {
        "class": style,
        "data-v": "" if value is None else f"{value:.6g}",
        "aria-label": said,
    }
    attributes = "".join(f' {name}="{words}"' for name, words in given.items() if words)
    return f"<td{attributes}>{shown}</td>"


def bar(share: float) -> str:
    """A bar that only repeats what the number beside it says."""
    return (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="empty" width="100" height="10"/>'
        f'<rect class="full" width="{100 * min(max(share, 0), 1):.4g}" height="10"/></svg>'
    )


def histogram(numbers: Sequence[float], most: float, title: str, unit: str) -> str:
    """How many of the numbers lie in each tenth of the way from 0 to `most`."""
    bins = [0] * 10
    for number in numbers:
        bins[min(max(int(10 * number / most), 0), 9) if most > 0 else 0] += 1
    edges = [f"{most * place / 10:.4g}" for place in range(11)]
    said = "; ".join(
        f"{edges[place]} to {edges[place + 1]}: {many}" for place, many in enumerate(bins) if many
    )
    highest = max(*bins, 1)
    parts = [
        '<figure><svg class="histogram" viewBox="0 0 400 150" role="img" aria-labelledby="bins">',
        f'<title id="bins">{text(title)}. {said or "none"}.</title>',
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
    parts.append(f"</svg><figcaption>{text(title)} ({text(unit)})</figcaption></figure>\n")
    return "".join(parts)


def _digest(source: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}"


# A student's page stands in place of the class's once a link has led there; a browser that is too
# old for :has() shows it below. On paper there is what is on the screen.
_STYLE = """
:root { color-scheme: light;
  --paper: #fff; --ink: #1b1f24; --quiet: #57606a; --line: #d0d7de; --soft: #f3f5f8;
  --link: #0a58ca; --fill: #3b76c4; --rest: #dfe5ec;
  --f0: #fff; --f1: #e6f0fb; --f2: #cbe1f7; --f3: #a9cdf1; --f4: #82b5e8; }
@media screen and (prefers-color-scheme: dark) { :root { color-scheme: dark;
  --paper: #14181d; --ink: #e4e8ed; --quiet: #a3adb8; --line: #39424d; --soft: #1f262e;
  --link: #84b6ff; --fill: #5b95dd; --rest: #2c353f;
  --f0: #14181d; --f1: #17293b; --f2: #1a3752; --f3: #1d466b; --f4: #205583; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 0 1rem 3rem; max-width: 80rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 1.2rem 0 .3rem; }
h2 { font-size: 1.3rem; line-height: 1.25; margin: 2.2rem 0 .5rem; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; }
p, ul, dl { max-width: 46rem; margin: .5rem 0; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 1px; }
section:focus-visible { outline: none; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; padding: 0; list-style: none; }
.quiet, caption, figcaption { color: var(--quiet); }
.box { position: relative; overflow: auto; max-width: 100%; margin: .6rem 0; }
.tall { max-height: 90vh; }
table { border-collapse: separate; border-spacing: 0; }
caption { text-align: left; padding: .2rem 0; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem;
  border-bottom: 1px solid var(--line); font-weight: normal; }
thead th { position: sticky; top: 0; z-index: 2; background: var(--soft); vertical-align: bottom;
  font-weight: 600; line-height: 1.25; }
thead td { background: var(--soft); }
td[data-v] { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
thead button { all: unset; }
thead button:enabled { cursor: pointer; }
thead button:focus-visible { outline: 3px solid var(--link); }
thead button::after { content: " \\2195"; color: var(--quiet); }
thead button:disabled::after { visibility: hidden; }
thead [aria-sort=ascending] button::after { content: " \\2191"; color: var(--ink); }
thead [aria-sort=descending] button::after { content: " \\2193"; color: var(--ink); }
.heat th[scope=row] { position: sticky; left: 0; z-index: 1; background: var(--paper); }
.heat thead th:first-child { left: 0; z-index: 3; }
.heat thead th { min-width: 5.5rem; }
.heat th[scope=row] { min-width: 12rem; max-width: 16rem; }
.heat td { border-left: 1px solid var(--paper); }
.heat td[aria-label] { text-align: left; }
.f0 { background: var(--f0); } .f1 { background: var(--f1); } .f2 { background: var(--f2); }
.f3 { background: var(--f3); } .f4 { background: var(--f4); }
.bar { width: 8rem; height: .7rem; vertical-align: middle; }
.full { fill: var(--fill); } .empty { fill: var(--rest); }
figure { margin: .8rem 0; max-width: 36rem; }
.histogram { width: 100%; }
.histogram text { fill: var(--ink); font-size: 13px; text-anchor: middle; }
.histogram .first { text-anchor: start; } .histogram .last { text-anchor: end; }
.histogram line { stroke: var(--quiet); }
bdi, code { overflow-wrap: anywhere; }
td bdi { overflow-wrap: break-word; }
th bdi { display: inline-block; max-width: 100%; overflow: clip; vertical-align: bottom; }
pre { margin: .4rem 0; padding: .5rem .7rem;
  background: var(--soft); white-space: pre-wrap; overflow-wrap: anywhere; font-size: .875rem; }
code { background: var(--soft); padding: 0 .2em; font-size: .9em; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; }
dt { color: var(--quiet); } dd { margin: 0; }
.stage { border-left: 4px solid var(--line); padding-left: .8rem; margin: 1rem 0; }
.stage h3 { margin-top: 0; }
.reasons { columns: 2 28rem; column-gap: 1.5rem; }
.reason { break-inside: avoid; padding-bottom: .3rem; }
.reason p { margin: .3rem 0; } .reason p:first-child { margin-top: 0; }
h4 { font-size: 1rem; margin: .3rem 0; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1rem; }
.pair > div { min-width: 0; }
summary { cursor: pointer; padding: .2rem 0; }
.student { display: none; }
.student:target { display: block; }
main:has(> .student:target) > .class { display: none; }
@media (max-width: 40rem) { .pair { grid-template-columns: 1fr; }
  th, td { padding: .2rem .4rem; } .heat th[scope=row] { min-width: 6rem; max-width: 9rem; }
  .bar { width: 4rem; } dl { grid-template-columns: 1fr; } dd { margin: 0 0 .3rem .8rem; } }
@media print { :root { font-size: 11px; } body { max-width: none; padding: 0; }
  nav, .back { display: none; } .box, .tall { max-height: none; overflow: visible; }
  thead th, .heat th[scope=row] { position: static; }
  thead, tr, figure, h2, h3 { break-inside: avoid; }
  h2, h3, caption { break-after: avoid; } thead button::after { content: "" !important; }
  td { print-color-adjust: exact; } a { color: inherit; text-decoration: none; } }
"""

# Without it all is there, in the order of the names, and the heads of the tables are plain words.
# It changes no size, as to lay out a table of thousands of rows once more takes seconds.
_SCRIPT = """
"use strict";
const order = new Intl.Collator("en", { numeric: true }).compare;
for (const table of document.querySelectorAll("table.sorts")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.firstElementChild;
    button.disabled = false;
    button.addEventListener("click", () => {
      const turn = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      const value = row => row.cells[column].dataset.v ?? row.cells[column].textContent.trim();
      const rows = [...table.tBodies[0].rows].map(row => [value(row), row]);
      const known = rows.filter(([key]) => key !== "");
      const isNumber = known.every(([key]) => !Number.isNaN(Number(key)));
      known.sort(([a], [b]) => turn * (isNumber ? a - b : order(a, b)));
      const none = rows.filter(([key]) => key === "");
      for (const [, row] of [...known, ...none]) table.tBodies[0].append(row);
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", turn > 0 ? "ascending" : "descending");
    });
  });
}
"""
