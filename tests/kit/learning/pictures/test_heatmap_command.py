"""`grade heatmap`: the picture in the terminal and the two files."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.kit.support.checkout import TINY
from tests.kit.support.files import edit
from tests.kit.support.tiny import Say, solve

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def solved(tiny: Path) -> None:
    solve(tiny)


def test_the_picture_and_the_files(tiny: Path, say: Say) -> None:
    code, shown, errors = say("heatmap")
    assert (code, errors) == (0, "")
    assert "How often a day counts" in shown
    assert "█" in shown
    assert "written: heatmap-smooth.png\n  written: heatmap-smooth.svg\n" in shown
    assert max(map(len, shown.splitlines())) <= 80
    png = (tiny / "heatmap-smooth.png").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n") and png.rstrip().endswith(b"IEND\xaeB`\x82")
    root = ElementTree.fromstring((tiny / "heatmap-smooth.svg").read_bytes())
    assert root.tag == f"{SVG}svg"
    assert root.findtext(f"{SVG}title") == "How often a day counts"
    assert (root.findtext(f"{SVG}desc") or "").startswith("twice, first to Mon: 1. ")
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {"twice", "Wed", "second", "number", "day"} <= set(texts)


def test_the_same_picture_is_the_same_file(tiny: Path, say: Say) -> None:
    say("heatmap", "smooth", "--out", "one")
    say("heatmap", "smooth", "--out", "two.svg")
    for kind in ("png", "svg"):
        assert (tiny / f"one.{kind}").read_bytes() == (tiny / f"two.{kind}").read_bytes()


def test_a_folder_is_written_into(tiny: Path, say: Say) -> None:
    (tiny / "pictures").mkdir()
    assert say("heatmap", "--out", "pictures")[0] == 0
    assert len(list((tiny / "pictures").iterdir())) == 2


def test_nothing_is_written_yet(tiny: Path, say: Say) -> None:
    stubs = str(TINY.root / "exercises")
    code, shown, errors = say("heatmap", "--submission", stubs)
    assert (code, errors) == (1, "")
    assert "There is nothing to draw yet." in shown
    code, shown, errors = say("heatmap", "smooth", "--submission", stubs)
    assert (code, errors) == (1, "")
    assert "The trace ends here: moving_average is not written yet." in shown
    assert list(tiny.glob("heatmap-*")) == []


def test_a_stage_that_draws_none(tiny: Path, say: Say) -> None:
    trace = tiny / "hints" / "traces" / "roughness.py"
    trace.write_text("def trace(submission):\n    yield 'Nothing.'\n", encoding="utf-8")
    assert say("heatmap", "roughness")[2] == (
        "grade: the trace of roughness draws no heatmap: `grade trace roughness`\n"
    )
    assert "How often a day counts" in say("heatmap")[1]


def test_a_later_stage_that_stops_is_not_passed_over_in_silence(tiny: Path, say: Say) -> None:
    trace = tiny / "hints" / "traces" / "roughness.py"
    trace.write_text(
        "def trace(submission):\n    yield str(submission.roughness(3))\n", encoding="utf-8"
    )
    edit(tiny / "course.toml", "bonus = true\n", "")
    code, shown, _ = say("heatmap")
    assert code == 0
    assert "roughness stops early: see `grade trace roughness`." in shown
    assert "How often a day counts" in shown
