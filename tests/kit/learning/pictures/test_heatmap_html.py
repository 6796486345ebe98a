"""A heatmap as HTML: tables that a browser can show and a reader can read."""

import re
from xml.etree import ElementTree

from grader.learning.pictures.heatmap import is_light
from grader.learning.pictures.heatmap_html import heatmap_html
from grader.learning.pictures.types import TracedHeatmap

EVIL = "<script>alert('x')</script>&\x1b[2J"
HEATMAP = TracedHeatmap(
    f"Shares {EVIL}",
    ((f"wing {EVIL}", ((1.0, 0.0), (0.25, float("nan")))),),
    ("the", EVIL),
    ("sat", "down"),
    "looks",
    "is seen",
)


def test_a_heatmap_is_a_table_with_headers_and_readable_cells() -> None:
    figure = ElementTree.fromstring(heatmap_html(HEATMAP))
    assert not list(figure.iter("script"))
    tables = figure.findall(".//table")
    assert len(tables) == 1
    assert (tables[0].findtext("caption") or "").startswith("wing <script>")
    assert [th.text for th in tables[0].findall(".//th[@scope='col']")] == ["sat", "down"]
    assert len(tables[0].findall(".//th[@scope='row']")) == 2
    cells = tables[0].findall("tbody/tr/td")
    assert [cell.text for cell in cells] == ["1.00", "0.00", "0.25", "nan"]
    for cell in cells[:3]:
        found = re.search(r"background:#(\w{6});color:#(\w{3})", cell.get("style", ""))
        parts = [int(found[1][n : n + 2], 16) / 255 for n in (0, 2, 4)]
        assert found[2] == ("000" if is_light(*parts) else "fff")
