"""What the commands that make, restore and update a workspace print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from grader.show.screen import MARGIN, Page, Screen, framed, screen


@screen
def done(
    page: Page,
    said: str,
    files: Sequence[str],
    steps: Sequence[tuple[str, str]],
    copies: Sequence[str] = (),
) -> Iterator[Text]:
    """What was done to a folder: a sentence, its files, copies of old ones, what to type next."""
    yield Text()
    yield from page.sentence(page.word(said))
    for file in files:
        yield from page.wrap(page.word(file), MARGIN + 2)
    if copies:
        yield from page.sentence("Copies of the replaced files:")
    for copy in copies:
        yield from page.wrap(page.word(copy), MARGIN + 2)
    yield Text()
    yield from page.offers(steps)
    yield Text()


def handed_out(
    name: str, files: Sequence[str], copies: Sequence[str], steps: Sequence[tuple[str, str]]
) -> Screen:
    """The files written for others into the folder `name`, "" or "." for the working folder."""
    where = "this folder" if name in ("", ".") else name
    said = f"Written in {where}:" if files else f"All is up to date in {where}."
    return done(said, files, steps, copies)


@screen
def notices(page: Page, sentences: Iterable[str]) -> Iterator[Text]:
    """One paragraph for each sentence."""
    for sentence in sentences:
        yield from page.sentence(page.inline(sentence))


@framed
def whats_new(page: Page, title: str, news: str) -> Iterator[Text]:
    """What the course says is new in it, in simple markdown."""
    yield from page.sentence(f"New in {page.word(title)}:", "bold")
    yield Text()
    yield from page.markdown(news, MARGIN)
