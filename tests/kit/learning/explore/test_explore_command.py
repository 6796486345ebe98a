"""`grade explore`: what it refuses, and the file that it writes."""

from pathlib import Path

import pytest

from tests.kit.support.checkout import TINY
from tests.kit.support.tiny import Typed


@pytest.mark.parametrize(
    "words, said",
    [
        (("--out", "page.txt"), "--out page.txt: end the page's name with .html"),
        (("--port", "70000"), "--port 70000: choose a number from 0 to 65535"),
        (("roughness",), "roughness has no page to explore; stages with one: smooth"),
    ],
)
def test_what_it_refuses(words: tuple[str, ...], said: str, refused: Typed) -> None:
    own = str(TINY.root / "solutions")
    assert (
        refused("explore", *words, "--course", str(TINY.root), "--submission", own)
        == f"grade: {said}\n"
    )


def test_the_page_as_a_file(tmp_path: Path, grade: Typed) -> None:
    page = tmp_path / "page.html"
    own = str(TINY.root / "solutions")
    words = ["explore", "--course", str(TINY.root), "--submission", own, "--out", str(page)]
    assert grade(*words) == f"  written: {page}\n"
    assert "That was all." in page.read_text(encoding="utf-8")


def test_no_file_is_written_of_code_that_stops(tmp_path: Path, refused: Typed) -> None:
    for name in ("moving_average", "smooth"):
        (tmp_path / f"{name}.py").write_text(f"def {name}(*values, **more): 1 / 0\n")
    page = tmp_path / "page.html"
    words = ["explore", "--course", str(TINY.root), "--submission", str(tmp_path)]
    assert "moving_average gave no usable result, so no file" in refused(*words, "--out", str(page))
    assert not page.exists()
