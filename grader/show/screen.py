"""What every text screen is drawn on: its width, its alphabet, wrapping and simple markdown.

A renderer is a function from a `Page` to lines. The decorator `screen` turns it into a function
that returns a `Screen`, which rich can print: the width and the encoding are those of the console
that prints it, and known only then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.style import Style
from rich.text import Text

from grader.show.markdown import INLINE, Kind, blocks
from grader.types.text import safe

if TYPE_CHECKING:
    from rich.console import ConsoleOptions

_Args = ParamSpec("_Args")

WIDEST = 88  # longer lines are harder to read
MARGIN = 2
GAP = 2  # between columns
SHORTEST_TITLE = 14  # a title cut shorter than this is left out
COMMAND = "bold cyan"  # the colour of commands to type
_TAB = 4


@dataclass(frozen=True)
class Glyphs:
    """The signs of one alphabet; each is one cell wide except `more`."""

    passed: str
    failed: str
    not_started: str
    error: str
    waiting: str
    full: str
    empty: str
    gutter: str
    bullet: str
    more: str


UNICODE = Glyphs("✓", "✗", "·", "!", "↑", "━", "·", "│", "•", "…")
ASCII = Glyphs("+", "x", ".", "!", "^", "#", ".", "|", "-", "...")

# Signs that authors like and an old Windows console lacks; other signs become escapes.
_SPELLED_OUT = str.maketrans(
    {
        "→": "->", "←": "<-", "≠": "!=", "≤": "<=", "≥": ">=", "≈": "~=", "×": "x", "·": "*",
        "√": "sqrt ", "ᵀ": "^T", "∞": "inf", "−": "-", "–": "-", "—": "-", "…": "...", "•": "-",
        "‘": "'", "’": "'", "“": '"', "”": '"', "✓": "+", "✗": "x", "∑": "sum", "Σ": "sum",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Page:
    """What a renderer knows about the console that it draws on."""

    console: Console
    width: int
    encoding: str
    glyphs: Glyphs
    colour: bool
    plain: bool = False
    course: str = ""  # the option that names the course, if it was typed

    def clean(self, text: str) -> str:
        """`text` with hidden characters as escapes, in characters that this console has."""
        text = safe(text).expandtabs(_TAB)
        if self.glyphs is UNICODE:
            return text
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            text = text.translate(_SPELLED_OUT)
            return text.encode(self.encoding, "backslashreplace").decode(self.encoding)
        except LookupError:
            return text.encode("ascii", "backslashreplace").decode("ascii")
        return text

    def word(self, text: str, width: int | None = None) -> str:
        """`text` on one line, cut to `width` cells if need be."""
        text = self.clean(text).replace("\n", " ").strip()
        if width is None or cell_len(text) <= width:
            return text
        kept = set_cell_size(text, max(0, width - len(self.glyphs.more))).rstrip()
        return kept + self.glyphs.more

    def column(self, text: str, width: int) -> str:
        """`text` on one line in exactly `width` cells."""
        return set_cell_size(self.word(text, width), width)

    def wrap(self, text: str | Text, indent: int, head: Text | None = None) -> Iterator[Text]:
        """The lines of `text`, with an indentation of `indent`, all to the right of `head`."""
        text, head = Text(text) if isinstance(text, str) else text, head or Text()
        width = max(8, self.width - indent - head.cell_len)
        for number, line in enumerate(text.wrap(self.console, width, overflow="fold")):
            beside = Text(" " * head.cell_len) if number else head
            yield Text(" " * indent).append_text(beside).append_text(line)

    def verbatim(
        self, text: str, indent: int, style: str = "", *, gutter: bool = False, limit: int
    ) -> tuple[list[Text], int]:
        """The lines of `text` unchanged, wrapped, at most `limit`.

        Also returns how many of its own lines are missing or cut.
        """
        lines: list[Text] = []
        raw = self.clean(text).rstrip().split("\n")
        bar = f"{self.glyphs.gutter} " if gutter and not self.plain else ""
        width = max(8, self.width - indent - len(bar))
        for number, line in enumerate(raw):
            room = limit - len(lines)
            if room <= 0:
                return lines, len(raw) - number
            head = _LABEL.match(line) or _INDENT.match(line)
            label = head.group() if head is not None else ""
            label = label if cell_len(label) <= width // 2 else ""
            body = line[len(label) :]
            if lines and _CARETS.fullmatch(line) and cell_len(raw[number - 1]) > width:
                continue  # below a line of code that is broken, carets point at nothing
            # Wrapping a whole line of a megabyte would take too long.
            piece = Text(body[: room * width], style)
            parts = piece.wrap(self.console, width - cell_len(label), overflow="fold")
            for at, part in enumerate(parts[:room] or [Text()]):
                lines.append(Text(" " * indent).append(bar, "dim"))
                lines[-1].append(" " * cell_len(label) if at else label, style).append_text(part)
            if len(parts) > room or len(piece) < len(body):
                return lines, len(raw) - number
        return lines, 0

    def sentence(self, text: str | Text, style: str = "") -> Iterator[Text]:
        """A paragraph at the margin; `style` is that of a plain `str`."""
        yield from self.wrap(Text(text, style) if isinstance(text, str) else text, MARGIN)

    def offer(self, words: str, command: str) -> Iterator[Text]:
        """A line that ends in something to type; that part is never broken."""
        line = Text(words)
        if self.course and command.split(" ")[0] == "grade" and " --course " not in command:
            command += f" {self.course}"
        if MARGIN + cell_len(words) + 2 + cell_len(command) <= self.width:
            line.append("  ").append(self.word(command), COMMAND)
            yield Text(" " * MARGIN).append_text(line)
        else:
            yield from self.sentence(line)
            whole = Text(" " * (MARGIN + 2), no_wrap=True)
            yield whole.append(self.word(command), COMMAND)

    def offers(self, offers: Sequence[tuple[str, str]]) -> Iterator[Text]:
        """Several of them; what to type begins in one column."""
        widest = max((cell_len(words) for words, _ in offers), default=0)
        for words, command in offers:
            yield from self.offer(words if self.plain else f"{words:{widest}}", command)

    def inline(self, text: str, style: str = "") -> Text:
        """One paragraph of an author's text: `code`, **bold** and addresses are styled."""
        drawn = Text(style=style)
        for part in INLINE.split(self.clean(text)):
            if _CODE.fullmatch(part):
                drawn.append(part.strip("`").strip() if self.colour else part, "cyan")
            elif _BOLD.fullmatch(part):
                drawn.append(part[2:-2], "bold")
            else:
                drawn.append(part)
        for address in _ADDRESS.finditer(drawn.plain):
            drawn.stylize(Style(link=address.group()), *address.span())
        return drawn

    def markdown(self, text: str, indent: int) -> Iterator[Text]:
        """Simple markdown: headings, paragraphs, lists and code; everything else unchanged."""
        for block in blocks(safe(text).expandtabs(_TAB)):
            left = indent + block.indent
            if block.kind is Kind.CODE:
                yield Text(" " * left).append(self.clean(block.text), "cyan")
            elif block.kind is Kind.BLANK:
                yield Text()
            else:
                drawn = self.inline(block.text, "bold" if block.kind is Kind.HEADING else "")
                sign = block.sign if block.sign[:1].isdecimal() else self.glyphs.bullet
                yield from self.wrap(drawn, left, Text(f"{sign} ") if block.sign else None)


_INDENT = re.compile(r" +")
_LABEL = re.compile(r" +\w[\w ]*? {2,}(?=\S)")  # "  expected  "; the value stays to the right of it
_CARETS = re.compile(r" *[~^][~^ ]*")
_CODE = re.compile(r"``.+``|`[^`]+`")
_BOLD = re.compile(r"\*\*[^*\n]+\*\*")
_ADDRESS = re.compile(r"https://[\w./-]+[\w/]")


class CourseConsole(Console):
    """A console that adds the option `course` to each command that a screen offers.

    It cuts no line, because a screen wraps all of them but commands and code.
    """

    course = ""

    def print(self, *objects: Any, soft_wrap: bool | None = True, **options: Any) -> None:
        """Print as any console does."""
        super().print(*objects, soft_wrap=soft_wrap, **options)


class PlainConsole(CourseConsole):
    """A console for screen readers: no bars, boxes or columns, and no line is broken."""


class Screen:
    """Lines that rich can print. They are redrawn for each console, so nothing is wrapped twice."""

    def __init__(self, draw: Callable[[Page], Iterable[Text]]) -> None:
        self.draw = draw

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        plain = isinstance(console, PlainConsole)
        page = Page(
            console=console,
            width=options.max_width if plain else min(options.max_width, WIDEST),
            encoding=options.encoding,
            glyphs=ASCII if options.ascii_only else UNICODE,
            colour=console.color_system is not None and not console.no_color,
            plain=plain,
            course=console.course if isinstance(console, CourseConsole) else "",
        )
        for line in self.draw(page):
            if not line.no_wrap:  # it must stay whole
                line.truncate(options.max_width, overflow="crop")  # only on a very narrow console
            line.rstrip()
            line.no_wrap = True
            line.overflow = "ignore"
            yield line


def screen(draw: Callable[Concatenate[Page, _Args], Iterable[Text]]) -> Callable[_Args, Screen]:
    """Turn a renderer into a function that takes its other arguments and returns a Screen."""

    @wraps(draw)
    def made(*args: _Args.args, **kwargs: _Args.kwargs) -> Screen:
        return Screen(lambda page: draw(page, *args, **kwargs))

    return made


def framed(draw: Callable[Concatenate[Page, _Args], Iterable[Text]]) -> Callable[_Args, Screen]:
    """As `screen`, with an empty line above and one below."""

    @wraps(draw)
    def made(*args: _Args.args, **kwargs: _Args.kwargs) -> Screen:
        return Screen(lambda page: [Text(), *draw(page, *args, **kwargs), Text()])

    return made


def amount(points: float) -> str:
    """12.0 as "12", 7.5 as "7.5", a third as "0.33"."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def count(number: float, noun: str = "check") -> str:
    """1 as "1 check", 2 as "2 checks"."""
    return f"{amount(number)} {noun}{'' if number == 1 else 's'}"
