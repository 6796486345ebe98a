"""What the commands that make, restore and update a workspace print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from grader.show.screen import MARGIN, Page, count, framed, screen


@screen
def made(page: Page, name: str, files: int, steps: Sequence[tuple[str, str]]) -> Iterator[Text]:
    """A new workspace with `files` files to work in, and what to type next.

    `name` is the folder's, "" or "." for the working folder.
    """
    yield Text()
    what = f"exercises/ with {count(files, 'file')} to work in, README.md, settings for editors."
    where = page.word(name) or "a workspace here"
    yield from page.sentence(f"Made {where}: {what}")
    yield from _steps(page, steps)


@screen
def restored(
    page: Page, name: str, files: Sequence[str], steps: Sequence[tuple[str, str]]
) -> Iterator[Text]:
    """An existing workspace: the missing files that were restored, and what to type next."""
    yield Text()
    done = "Restored the missing files:" if files else "Nothing is missing."
    where = page.word(name) or "This folder"
    yield from page.sentence(f"{where} is already a workspace. {done}")
    for file in files:
        yield from page.wrap(page.word(file), MARGIN + 2)
    yield from _steps(page, steps)


@screen
def handed_out(
    page: Page,
    name: str,
    files: Sequence[str],
    copies: Sequence[str],
    steps: Sequence[tuple[str, str]],
) -> Iterator[Text]:
    """Files written for others, the copies of replaced files, and what to type next.

    `name` is the folder's, "" or "." for the working folder.
    """
    yield Text()
    where = "this folder" if name in ("", ".") else page.word(name)
    yield from page.sentence(f"Written in {where}:" if files else f"All is up to date in {where}.")
    for file in files:
        yield from page.wrap(page.word(file), MARGIN + 2)
    if copies:
        yield from page.sentence("Copies of the replaced files:")
    for copy in copies:
        yield from page.wrap(page.word(copy), MARGIN + 2)
    yield from _steps(page, steps)


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


def _steps(page: Page, steps: Sequence[tuple[str, str]]) -> Iterator[Text]:
    yield Text()
    yield from page.offers(steps)
    yield Text()
