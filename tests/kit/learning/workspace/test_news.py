"""A learner sees what has changed in a course since the version that they know."""

from pathlib import Path

import pytest

from grader.learning.workspace.news import news, read_news

CHANGES = """# What is new

## Unreleased

- Not yet.

## [1.10] - 2026-10-01

- Ten.

### For teachers

- More of ten.

## v1.9.1

- Nine.

## 1.9

- First.
"""


@pytest.mark.parametrize(
    ("seen", "present", "words"),
    [
        ("1.9", "1.10", ["Ten.", "More of ten.", "Nine."]),
        ("1.9.0", "1.10", ["Ten.", "More of ten.", "Nine."]),
        ("1.9.1", "1.10", ["Ten.", "More of ten."]),
        ("1.9", "1.9.1", ["Nine."]),
        ("", "1.10", ["Ten.", "More of ten."]),  # an older kit did not note what was seen
        ("2", "1.9", ["First."]),  # back to an older course
        ("1.10", "2", []),
        ("", "3", []),
    ],
)
def test_the_sections_since_then(seen: str, present: str, words: list[str]) -> None:
    found = news(CHANGES, seen, present)
    assert [line[2:] for line in found.splitlines() if line.startswith("- ")] == words


def test_no_file_no_version_and_nothing_new_say_nothing(tmp_path: Path) -> None:
    file = tmp_path / "CHANGES.md"
    assert read_news(file, "", "1.9") == ""
    file.write_text(CHANGES, encoding="utf-8")
    assert read_news(file, "", "1.9").startswith("## 1.9")
    assert read_news(file, "1.9", "1.9") == read_news(file, "1.9", "") == ""
    file.write_bytes(b"\xff")
    assert read_news(file, "", "1.9") == ""
