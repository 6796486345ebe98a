"""The pictures in docs/first-hour.md are what the commands show today."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.support.checkout import ROOT

SCREENS = ROOT / "docs" / "screens"
_SECONDS = re.compile(r"\d+\.\d\d&#160;s")


def words(picture: Path) -> str:
    """The picture, but for how long something took."""
    return _SECONDS.sub("#.##&#160;s", picture.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_screens_of_the_walkthrough_are_true(tmp_path: Path) -> None:
    """`python tests/screens.py` draws them anew; look at the difference before you commit it."""
    subprocess.run([sys.executable, str(ROOT / "tests" / "screens.py"), str(tmp_path)], check=True)
    drawn = {picture.name: words(picture) for picture in tmp_path.iterdir()}
    kept = {picture.name: words(picture) for picture in SCREENS.glob("*.svg")}
    assert drawn.keys() == kept.keys()
    assert [name for name, picture in drawn.items() if picture != kept[name]] == []


def test_the_walkthrough_shows_every_screen_and_describes_it() -> None:
    text = (ROOT / "docs" / "first-hour.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[([^\]]*)\]\(screens/([^)]+)\)", text)
    assert {name for _, name in shown} == {picture.name for picture in SCREENS.iterdir()}
    assert all(len(description) > 40 for description, _ in shown)
