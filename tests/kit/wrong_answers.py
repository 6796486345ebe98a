"""The wrong answers of the corpus: mistakes put into right code, a table for each stage.

answers/<slug>.toml has a table [<base>.<name>] for each. `wrong` says what is wrong with it, and
`told` which reasons its author is given (see explained.py). <base> is the right answer that it
starts from: answers/<slug>/<base>.py or tests/accepted/<slug>/<name>.py. `edit` is the mistake, a
diff without line numbers: "-" lines give way to "+" lines, lines that begin with a space only say
where, and "@@" stands between two places. Each place must occur once in the base. An answer that
shares nothing with a base, [whole.<name>], has its whole `code` instead.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from grader.read.course_file import read_course

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
ANSWERS = Path(__file__).parent / "answers"
COURSE = read_course(ROOT / "course.toml")


@dataclass(frozen=True)
class WrongAnswer:
    """One wrong answer to a stage: its name, what is `wrong` with it, and its source.

    `told` are the ids of the reasons that its author is given, None if nobody has noted them.
    """

    slug: str
    name: str
    wrong: str
    source: str
    told: tuple[str, ...] | None = None


@cache
def wrong_answers(slug: str) -> tuple[WrongAnswer, ...]:
    """Every wrong answer to a stage. Raises ValueError for an edit that does not fit its base."""
    table = tomllib.loads((ANSWERS / f"{slug}.toml").read_text(encoding="utf-8"))
    return tuple(
        WrongAnswer(
            slug,
            name,
            entry["wrong"],
            entry.get("code") or _edited(slug, name, base, entry["edit"]),
            tuple(entry["told"]) if "told" in entry else None,
        )
        for base, entries in table.items()
        for name, entry in entries.items()
    )


def wrong_source(slug: str, name: str) -> str:
    """The source of one wrong answer. Raises StopIteration if there is none of that name."""
    return next(answer.source for answer in wrong_answers(slug) if answer.name == name)


def base_files(slug: str) -> list[Path]:
    """The right answers of a stage that stand beside its table."""
    return sorted((ANSWERS / slug).glob("*.py"))


def _edited(slug: str, name: str, base: str, edit: str) -> str:
    folder, _, base = base.rpartition("/")
    file = (ROOT / "tests" / folder if folder else ANSWERS) / slug / f"{base}.py"
    text = "\n" + file.read_text(encoding="utf-8")
    for place in edit.split("\n@@\n"):
        lines = place.removesuffix("\n").split("\n")
        old, new = ("".join(f"{li[1:]}\n" for li in lines if li[:1] != drop) for drop in "+-")
        if text.count(f"\n{old}") != 1:
            raise ValueError(f"{slug}.toml, {name}: not once in {file.name}:\n{old}")
        text = text.replace(f"\n{old}", f"\n{new}")
    return text[1:]
