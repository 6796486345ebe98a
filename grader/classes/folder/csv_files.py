"""Tables as CSV: reads those that people and other programs write, and makes our own."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grader.read.submission import regular_bytes
from grader.types.errors import KitError

_TABLE_CAP = 32 << 20  # bytes of a CSV file
_START = 100_000  # characters in which its first row ends


def read_text(path: Path) -> str:
    """The text of a table in UTF-8, with its byte order mark if any; or in UTF-16 with one.

    Raises KitError.
    """
    data = regular_bytes(path, _TABLE_CAP)
    is_wide = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    try:
        return data.decode("utf-16" if is_wide else "utf-8")
    except UnicodeDecodeError:
        raise KitError(f"{path}: is not UTF-8: export it as CSV in UTF-8") from None


class Row(list[str]):
    """The cells of a row, which ends on this line of the file."""

    def __init__(self, cells: Sequence[str], line: int) -> None:
        super().__init__(cells)
        self.line = line


def parse_table(text: str, place: str) -> tuple[list[Row], str]:
    """The rows of a CSV file's text, and the separator of its cells: "," or ";" or a tab.

    A cell may be as long as the file: students write some of them. `place` is the file's name in
    errors. Raises KitError, also if a quote is open at the end.
    """
    csv.field_size_limit(_TABLE_CAP)
    start = re.sub(r'"[^"]*"', "", text[:_START])  # a title may hold any sign
    first = start.split("\n", 1)[0]
    between = max(",;\t", key=first.count)
    lines = io.StringIO(text.removeprefix("\ufeff"), newline="")
    rows = csv.reader(lines, delimiter=between, strict=True)
    try:
        return [Row(row, rows.line_num) for row in rows if row], between
    except csv.Error as error:
        raise KitError(f"{place}:{rows.line_num}: is not CSV: {error}") from None


def csv_text(
    rows: Sequence[Sequence[str]], delimiter: str = ",", *, quotes_all: bool = False
) -> str:
    """The rows as a CSV file's text.

    With `quotes_all`, a cell stays whole in spreadsheets that split at other signs too.
    """
    text = io.StringIO()
    quoting: Any = csv.QUOTE_ALL if quotes_all else csv.QUOTE_MINIMAL
    csv.writer(text, delimiter=delimiter, lineterminator="\n", quoting=quoting).writerows(rows)
    return text.getvalue()
