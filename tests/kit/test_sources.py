"""Every item of the source documents is covered by something that is there."""

import re

import pytest

from grader.read.misconceptions import read_misconceptions
from tests.kit.support.checkout import COURSE, ROOT

TEXT = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| (\d\.\d+) \| .+? \| (.+) \|$", TEXT, re.MULTILINE))
ITEMS = {0: 17, 1: 37, 2: 13, 3: 14, 4: 19}  # how many each document has


def checks() -> set[str]:
    return {
        f"{stage.slug}.{name}"
        for stage in COURSE.stages
        for name in re.findall(r"^def test_(\w+)", stage.check_file.read_text("utf-8"), re.M)
    }


@pytest.fixture(scope="module")
def known() -> set[str]:
    """The stages, the checks and the known mistakes."""
    mistakes = {m.id for stage in COURSE.stages for m in read_misconceptions(stage)}
    return mistakes | checks() | {stage.slug for stage in COURSE.stages}


def test_every_item_has_a_row() -> None:
    wanted = [f"{document}.{n}" for document, count in ITEMS.items() for n in range(1, count + 1)]
    assert list(ROWS) == wanted


def test_every_row_says_where() -> None:
    nowhere = [number for number, where in ROWS.items() if "`" not in where]
    assert nowhere == ["1.16", "1.30"]  # no contract; every stub


def test_what_is_named_is_there(known: set[str]) -> None:
    named = set(re.findall(r"`([^`]+)`", TEXT))
    commands = {name for name in named if name.startswith("grade ")}
    files = {name for name in named if "/" in name} - commands
    others = named - commands - files - {"stage.check"}
    assert sorted(others - known) == []
    assert [name for name in sorted(files) if not (ROOT / name).exists()] == []
    for command in commands:
        slug = command.split()[2:3]
        assert command.split()[1] in ("trace", "heatmap")
        assert not slug or slug[0].startswith("--") or slug[0] in known


def test_every_stage_covers_something() -> None:
    ours = {"grouped_query", "kv_cache"}
    missing = [s.slug for s in COURSE.stages if f"`{s.slug}" not in TEXT and s.slug not in ours]
    assert missing == []
