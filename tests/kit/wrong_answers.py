"""The wrong answers of the corpus: mistakes put into right code, a file for each stage.

answers/<slug>.diff has an entry for each. It begins "<base>.<name>: ", then what is wrong with it,
then, if the report explains it, " -> " and the ids of its diagnoses; "?" if these vary
(see explained.py).
<base> is the right answer that it starts from: answers/<slug>/<base>.py,
tests/accepted/<slug>/<name>.py or "solution", or "whole" for an answer that shares nothing with
one. The rest is the mistake, a diff without line numbers: "-" lines give way to "+" lines, lines
that begin with a space only say where, and "@@" stands between two places. "! old => new" changes
part of a line and needs no "@@" before it. Each place must occur once in the base;
"!! old => new" changes all of several.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from grader.read.stubs import read_solution
from tests.kit.support.checkout import COURSE, ROOT

ANSWERS = Path(__file__).parent / "answers"
HEADING = re.compile(r"^([\w/]+)\.(\w+): (.+?)(?: -> (.+))?\n", re.MULTILINE)


@dataclass(frozen=True)
class WrongAnswer:
    """One wrong answer to a stage: its name, what is `wrong` with it, and its source.

    `told` are the ids of the reasons that its author is given, None if they vary.
    """

    slug: str
    name: str
    wrong: str
    source: str
    told: tuple[str, ...] | None = None


@cache
def wrong_answers(slug: str) -> tuple[WrongAnswer, ...]:
    """Every wrong answer to a stage. Raises ValueError for an edit that does not fit its base."""
    _, *parts = HEADING.split(table_file(slug).read_text(encoding="utf-8"))
    return tuple(
        WrongAnswer(slug, name, wrong, _edited(slug, name, base, edit.rstrip("\n")), _ids(told))
        for base, name, wrong, told, edit in zip(*[iter(parts)] * 5, strict=True)
    )


def table_file(slug: str) -> Path:
    """The file of a stage's wrong answers."""
    return ANSWERS / f"{slug}.diff"


def wrong_source(slug: str, name: str) -> str:
    """The source of one wrong answer. Raises StopIteration if there is none of that name."""
    return next(answer.source for answer in wrong_answers(slug) if answer.name == name)


def base_files(slug: str) -> list[Path]:
    """The right answers of a stage that stand beside its table."""
    return sorted((ANSWERS / slug).glob("*.py"))


def _ids(told: str | None) -> tuple[str, ...] | None:
    if told == "?":
        return None
    return tuple(told.split(", ")) if told else ()


def _edited(slug: str, name: str, base: str, edit: str) -> str:
    text = "\n" + _base(slug, base)
    for place in re.split(r"\n@@\n|\n(?=!!? )", edit):
        if place.startswith("!"):
            old, new = place.partition(" ")[2].split(" => ")
        else:
            old, new = (_without(sign, place) for sign in "+-")
        count = text.count(old)
        if count == 0 or (count > 1) != place.startswith("!! "):
            raise ValueError(f"{table_file(slug).name}, {name}: {count} in {base} of:\n{old}")
        text = text.replace(old, new)
    return text[1:]


def _base(slug: str, base: str) -> str:
    if base == "whole":
        return ""
    if base == "solution":
        return read_solution(COURSE.stage(slug))
    folder, _, base = base.rpartition("/")
    file = (ROOT / "tests" / folder if folder else ANSWERS) / slug / f"{base}.py"
    return file.read_text(encoding="utf-8")


def _without(sign: str, place: str) -> str:
    """The lines of a place but for those of a sign: without "+" as they are in the base."""
    return "\n".join(["", *(line[1:] for line in place.split("\n") if line[:1] != sign), ""])
