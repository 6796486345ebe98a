"""Traces and heatmaps as HTML: tables that a browser can show and a reader can read."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from grader.show.heatmap import is_light
from grader.show.trace_html import heatmap_html, trace_html
from grader.types.trace import (
    Axis,
    Block,
    Curve,
    Stop,
    Trace,
    TracedCurves,
    TracedHeatmap,
    TracedStep,
)

EVIL = "<script>alert('x')</script>&\x1b[2J"
HEATMAP = TracedHeatmap(
    f"Shares {EVIL}",
    ((f"wing {EVIL}", ((1.0, 0.0), (0.25, float("nan")))),),
    ("the", EVIL),
    ("sat", "down"),
    "looks",
    "is seen",
)
STEP = TracedStep(
    EVIL,
    (Axis("B", 1), Axis("T", 2, ("the", "cat")), Axis("D", 2)),
    (Block((0,), ((True, False), (0.5, float("-inf")))),),
    says=EVIL,
)


def test_a_heatmap_is_a_table_with_headers_and_readable_cells() -> None:
    figure = ElementTree.fromstring(heatmap_html(HEATMAP))
    tables = figure.findall(".//table")
    assert len(tables) == 1
    assert (tables[0].findtext("caption") or "").startswith("wing <script>")
    assert [th.text for th in tables[0].findall(".//th[@scope='col']")] == ["sat", "down"]
    assert len(tables[0].findall(".//th[@scope='row']")) == 2
    cells = tables[0].findall("tbody/tr/td")
    assert [cell.text for cell in cells] == ["1.00", "0.00", "0.25", "nan"]
    for cell in cells[:3]:
        found = re.search(r"background:#(\w{6});color:#(\w{3})", cell.get("style", ""))
        assert found is not None
        parts = [int(found[1][n : n + 2], 16) / 255 for n in (0, 2, 4)]
        assert found[2] == ("000" if is_light(*parts) else "fff")


def test_a_trace_has_its_steps_its_end_and_nothing_unescaped() -> None:
    stop = Stop(EVIL, "fold", False, EVIL)
    shown = trace_html(Trace("fold", EVIL, (STEP, HEATMAP, EVIL), stop, EVIL))
    section = ElementTree.fromstring(shown)
    assert "<script" not in shown and "\x1b" not in shown
    assert len(section.findall(".//table")) == 2
    first = section.find(".//table")
    assert first is not None
    assert [th.text for th in first.findall(".//th")] == ["D 0", "D 1", "the", "cat"]
    assert [td.text for td in first.findall("tbody/tr/td")] == ["yes", "no", "0.50", "-inf"]
    assert "gave no answer to go on with" in shown


def test_curves_are_a_table_of_their_numbers() -> None:
    curves = TracedCurves(EVIL, (1.0, 1024.0), (Curve(EVIL, (5.0, 65536.0)),), (), "n", "bytes")
    shown = trace_html(Trace("fold", "Fold", (curves,)))
    table = ElementTree.fromstring(shown).find(".//table")
    assert table is not None and "<script" not in shown
    assert [th.text for th in table.findall(".//th[@scope='col']")] == ["1", "1024"]
    assert [td.text for td in table.findall("tbody/tr/td")] == ["5", "65.5k"]


def test_a_stub_stops_without_a_message() -> None:
    shown = trace_html(Trace("fold", "Fold", (), Stop("f", "fold", True, "secret")))
    assert "<code>f</code> is not written yet." in shown
    assert "secret" not in shown
