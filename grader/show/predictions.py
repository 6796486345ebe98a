"""The questions of `grade predict`, one small screen at a time."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from grader.show.screen import MARGIN, Page, Screen, count
from grader.types.predictions import Number, Question, Shape, Tally

_BODY = MARGIN + 4


def opening(title: str, total: int) -> Screen:
    """What this is, and how to answer, skip and stop."""
    return Screen(lambda page: _opening(page, title, total))


def asked(question: Question, number: int, total: int) -> Screen:
    """One question with its choices."""
    return Screen(lambda page: _asked(page, question, number, total))


def prompt(question: Question) -> str:
    """What stands before the place where the answer is typed."""
    if isinstance(question.answer, Shape):
        return "  Your answer, a shape: "
    if isinstance(question.answer, Number):
        return "  Your answer, a number: "
    return f"  Your answer, {_either(list(question.choices))}: "


def typed_in(text: str) -> Screen:
    """What stands after the prompt, for input that no terminal has shown."""
    return Screen(lambda page: [Text(page.word(text))])


def not_understood(question: Question) -> Screen:
    """How such an answer is written; it did not count."""
    return Screen(lambda page: page.sentence(Text(f"I cannot read that. {_form(question)}")))


def once_more() -> Screen:
    """The first wrong answer."""
    line = "Not quite. Think once more, or press Enter to see the answer."
    return Screen(lambda page: _marked(page, page.glyphs.failed, "yellow", line))


def explained(question: Question, right: bool | None) -> Screen:
    """The answer and why it is so, for one who was `right`, wrong twice or (None) gave none."""
    return Screen(lambda page: _explained(page, question, right))


def closing(tally: Tally, slug: str, file: str) -> Screen:
    """How it went and what to do next; `file` is the one to write in, as a learner types it."""
    return Screen(lambda page: _closing(page, tally, slug, file))


def nothing_to_predict(slug: str, file: str) -> Screen:
    """For a stage that has no questions."""
    return Screen(lambda page: _nothing(page, slug, file))


def _opening(page: Page, title: str, total: int) -> Iterator[Text]:
    yield Text()
    heading = Text().append(page.word(title), "bold")
    heading.append(f"   {count(total, 'question')} before you write code", "dim")
    yield from page.sentence(heading)
    yield Text()
    yield from page.sentence(
        Text("There are no points: a wrong guess teaches as much as a right one.")
    )
    yield from page.sentence(Text("Enter alone shows the answer, q stops."))


def _asked(page: Page, question: Question, number: int, total: int) -> Iterator[Text]:
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


def _explained(page: Page, question: Question, right: bool | None) -> Iterator[Text]:
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


def _closing(page: Page, tally: Tally, slug: str, file: str) -> Iterator[Text]:
    yield Text()
    if tally.done:
        line = Text(f"{tally.first} of {tally.done} at the first try.", "bold")
        if tally.done == tally.total:
            line.append(" Now you know what your code has to do.", "not bold")
        yield from page.sentence(line)
    if tally.done < tally.total:
        left = count(tally.total - tally.done, "question")
        yield from page.offer(f"{left} left, whenever you like:", f"grade predict {slug}")
    yield Text()
    yield from _next_step(page, file)


def _nothing(page: Page, slug: str, file: str) -> Iterator[Text]:
    yield Text()
    yield from page.sentence(Text(f"There is nothing to predict in {page.word(slug)}."))
    yield Text()
    yield from _next_step(page, file)


def _next_step(page: Page, file: str) -> Iterator[Text]:
    yield from page.offer("Write it in:", file)
    yield from page.offer("Beside it:  ", "grade watch")
    yield Text()


def _marked(page: Page, mark: str, colour: str, words: str) -> Iterator[Text]:
    head = Text() if page.plain else Text(f"{mark} ", f"bold {colour}")
    yield from page.wrap(page.inline(words, "bold"), MARGIN, head)


def _form(question: Question) -> str:
    """How an answer to such a question may be written."""
    if isinstance(question.answer, Shape):
        return "Write a shape like 7 3 1 or (7, 3, 1)."
    if isinstance(question.answer, Number):
        return "Write a number like 12, 0.4, 3/8 or -inf."
    return f"Type one letter: {_either(list(question.choices))}."


def _either(letters: list[str]) -> str:
    return f"{', '.join(letters[:-1])} or {letters[-1]}"
