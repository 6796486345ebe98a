"""A file is written whole or not at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.read.files import write_pieces


@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, error: BaseException
) -> None:
    file = tmp_path / "marks.csv"
    file.write_text("old")

    def pieces() -> Iterator[str]:
        yield "new"
        raise error

    with pytest.raises(type(error)):
        write_pieces(file, pieces())
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("marks.csv", "old")]
