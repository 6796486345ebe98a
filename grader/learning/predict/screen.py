"""The questions of `grade predict`, one small screen at a time."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from grader.learning.predict.types import Question, Tally
from grader.show.screen import MARGIN, Page, count, screen
from grader.types.text import listed

_BODY = MARGIN + 4


@screen
def opening(page: Page, title: str, total: int) -> Iterator[Text]:
    """What the questions are for, and how to answer, skip and stop."""
    yield Text()
    heading = Text().append(page.word(title), "bold")
    heading.append(f"   {count(total, 'question')} before you write code", "dim")
    yield from page.sentence(heading)
    yield Text()
    yield from page.sentence("There are no points: a wrong guess teaches as much as a right one.")
    yield from page.sentence("Press Enter to see the answer, or q and Enter to stop.")


@screen
def asked(page: Page, question: Question, number: int, total: int) -> Iterator[Text]:
    """One question with its choices."""
    yield Text()
    heading = Text().append(f"{number} of {total}   ", "dim")
    yield from page.sentence(heading.append_text(page.inline(question.heading, "bold")))
    yield Text()
    yield from page.markdown(question.text, MARGIN)
    yield Text()
    for letter, text in question.choices.items():
        yield from page.wrap(page.inline(text), MARGIN + 2, Text(f"{letter})  ", "bold"))
    if question.choices:
        yield Text()


def prompt(question: Question) -> str:
    """The prompt for the answer."""
    what = f"a {question.answer.kind}"
    return f"  Your answer, {listed(list(question.choices), 'or') or what}: "


@screen
def not_understood(page: Page, question: Question) -> Iterator[Text]:
    """How to write an answer to this question; the unreadable one did not count."""
    yield from page.sentence(f"I cannot read that. {_form(question)}")


@screen
def once_more(page: Page) -> Iterator[Text]:
    """The reply to a first wrong answer."""
    line = "Not quite. Think again, or press Enter to see the answer."
    yield from _marked(page, page.glyphs.failed, "yellow", line)


@screen
def explained(page: Page, question: Question, right: bool | None) -> Iterator[Text]:
    """The answer and the reason. `right` is None for a learner who gave no answer."""
    yield Text()
    if right:
        words = f"Right: {question.solution}"
        yield from _marked(page, page.glyphs.passed, "green", words)
    elif right is False:
        words = f"Not this time. The answer is {question.solution}"
        yield from _marked(page, page.glyphs.failed, "yellow", words)
    else:
        yield from page.wrap(page.inline(f"The answer is {question.solution}", "bold"), MARGIN)
    yield from page.markdown(question.because, _BODY - 2)


@screen
def closing(page: Page, tally: Tally, slug: str, file: str) -> Iterator[Text]:
    """The score and the next step; `file` is the file to write in, as a learner types it."""
    yield Text()
    if tally.done:
        line = Text(f"{tally.first} of {tally.done} at the first try.", "bold")
        if tally.done == tally.total:
            line.append(" Now you know what your code has to do.", "not bold")
        yield from page.sentence(line)
    if tally.done < tally.total:
        left = count(tally.total - tally.done, "question")
        yield from page.offer(f"{left} left. To start again:", f"grade predict {slug}")
    yield Text()
    yield from _next_step(page, file)


@screen
def nothing_to_predict(page: Page, slug: str, file: str) -> Iterator[Text]:
    """The screen for a stage without questions."""
    yield Text()
    yield from page.sentence(f"{page.word(slug)} has no questions.")
    yield Text()
    yield from _next_step(page, file)


def _next_step(page: Page, file: str) -> Iterator[Text]:
    yield from page.offers([("Your file:", file), ("Grade each save:", "grade watch")])
    yield Text()


def _marked(page: Page, mark: str, colour: str, words: str) -> Iterator[Text]:
    head = Text() if page.plain else Text(f"{mark} ", f"bold {colour}")
    yield from page.wrap(page.inline(words, "bold"), MARGIN, head)


def _form(question: Question) -> str:
    """How to write an answer to such a question."""
    if question.answer.kind == "shape":
        return "Write a shape like 7 3 1 or (7, 3, 1)."
    if question.answer.kind == "number":
        return "Write a number like 12, 0.4, 3/8 or -inf."
    return f"Type one letter: {listed(list(question.choices), 'or')}."
