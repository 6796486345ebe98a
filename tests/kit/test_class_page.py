"""The class's report in a browser: it sorts, leads to students, and everybody can read it.

KEEP_SCREENSHOTS=DIR python -m pytest -m slow tests/kit/test_class_page.py    keeps the pictures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from grader.classes.folder.types import SubmissionRecord
from grader.classes.report.page import class_report
from grader.classes.report.types import Alike, Similar, Unexplained
from tests.kit.browser import IN_A_BROWSER, chromium, contrasts, look, opened, picture, webdriver
from tests.kit.classes.report.test_page import CLASS, EVIL, FLIGHT, LOST, UNREAD

pytestmark = IN_A_BROWSER

TAKEN = "document.title='taken'"
NAMES = (
    f'<script>{TAKEN}</script><img src=x onerror="{TAKEN}">',
    EVIL,
    "x" * 10_000,
    "שלום עולם",
    *(f"student {n}" for n in range(40)),
)
ENTRIES = sorted(
    [
        *(
            replace(
                CLASS[n % 3],
                record=SubmissionRecord(name, "c0ffee", (EVIL,) * (n % 2)),
                seconds=n / 7,
            )
            for n, name in enumerate(NAMES)
        ),
        *(LOST, UNREAD),
    ],
    key=lambda entry: entry.student,
)
LONG = "signal = signal.roll(" + "edges.pop(0), " * 20 + ")\n"
UNEXPLAINED = [Unexplained("fold", "It can `fold`", (NAMES[0], "student 1"), f"{EVIL}\n{LONG}")]
SIMILAR = Similar((Alike("fold", (NAMES[0], "student 1", NAMES[2]), 1.0, 40, (EVIL, LONG)),), 3)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("report") / "report.html"
    pieces = class_report("Birds", FLIGHT, lambda: ENTRIES, UNEXPLAINED, SIMILAR)
    file.write_text("".join(pieces), encoding="utf-8")
    return file.as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("browser")) as driver:
        yield driver


def element(browser: Any, css: str) -> Any:
    return browser.find_element("css selector", css)


def column(browser: Any, number: int) -> list[str]:
    """What stands in a column of the table of students, from the top."""
    cells = f"[...document.querySelectorAll('#students ~ .heat tbody tr > :nth-child({number})')]"
    found = browser.execute_script(f"return {cells}.map(cell => cell.textContent)")
    assert len(found) == len(ENTRIES)
    return [str(text) for text in found]


def shown(browser: Any, css: str) -> int:
    script = "return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility())"
    return len(browser.execute_script(script, css))


# --- what can be done --------------------------------------------------------------------------


def test_a_click_on_a_head_sorts_and_says_so_and_keys_do_too(browser: Any, address: str) -> None:
    look(browser, "light", 1200)
    opened(browser, address)
    head, name = (element(browser, f".heat th:nth-child({n})") for n in (2, 1))
    assert name.get_attribute("aria-sort") == "ascending"
    before = column(browser, 1)
    head.find_element("css selector", "button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert name.get_attribute("aria-sort") is None
    points = [text for text in column(browser, 2) if "–" not in text]
    assert points == sorted(points, key=float) and len(set(points)) > 1
    picture(browser, "class-sorted", head)

    head.find_element("css selector", "button").send_keys(webdriver.Keys.ENTER)
    assert head.get_attribute("aria-sort") == "descending"
    assert [text for text in column(browser, 2) if "–" not in text] == points[::-1]

    for _ in range(2):  # what has no number comes last, up and down
        element(browser, ".heat th:nth-child(3) button").click()
        assert column(browser, 3)[-2:] == ["–", "–"] and column(browser, 3)[0] != "–"

    name.find_element("css selector", "button").send_keys(webdriver.Keys.SPACE)
    again = column(browser, 1)
    assert sorted(again) == sorted(before)
    numbered = [text for text in again if text.startswith("student ")]
    assert numbered == [f"student {n}" for n in range(40)]  # 10 comes after 9


def test_a_name_leads_to_the_students_page_alone_and_back(browser: Any, address: str) -> None:
    look(browser, "light", 1200)
    opened(browser, address)
    assert shown(browser, ".class") == 1 and shown(browser, ".student") == 0
    link = next(
        link
        for link in browser.find_elements("css selector", ".heat th a")
        if link.text == "student 1"
    )
    link.click()
    assert shown(browser, ".class") == 0 and shown(browser, ".student") == 1
    page = element(browser, ".student:target")
    assert "student 1" in page.text and "It can hold (-5 points)" in page.text
    picture(browser, "class-student", page)
    element(browser, ".student:target .back a").click()
    assert shown(browser, ".class") == 1 and shown(browser, ".student") == 0


def test_nothing_of_a_strangers_runs_and_nothing_is_refused(browser: Any, address: str) -> None:
    browser.get_log("browser")
    for place in ("", "#s1", "#s2"):
        opened(browser, address + place)
        assert browser.title == "flight: Birds"
        assert browser.execute_script("return document.images.length") == 0
    assert browser.get_log("browser") == []
    added = "document.body.insertAdjacentHTML('beforeend', arguments[0])"
    browser.execute_script(added, f'<img src="x" onerror="{TAKEN}">')
    browser.execute_async_script("setTimeout(arguments[0], 200)")
    assert browser.title == "flight: Birds"  # even if there were markup, the policy stops it
    assert "Content Security Policy" in str(browser.get_log("browser"))


def test_without_scripts_it_is_all_there_by_name(browser: Any, address: str) -> None:
    look(browser, "light", 1200)
    disabled = "Emulation.setScriptExecutionDisabled"
    browser.execute_cdp_cmd(disabled, {"value": True})
    try:
        opened(browser, address)
        names = [one.text for one in browser.find_elements("css selector", ".heat tbody th")]
        assert len(names) == len(ENTRIES) and names[-1] == "שלום עולם"
        assert names[-4:-1] == ["student 9", "una", "x" * 60 + "…"]
        assert element(browser, ".heat thead th").text.startswith("Student")
        assert not element(browser, ".heat thead button").is_enabled()
        picture(browser, "class-without-scripts", element(browser, "#students"))
        opened(browser, address + "#s3")
        assert element(browser, ".student:target h2").is_displayed()
        assert not element(browser, ".class").is_displayed()
    finally:
        browser.execute_cdp_cmd(disabled, {"value": False})


# --- who can read it ---------------------------------------------------------------------------

TEXTS = """
return [...document.querySelectorAll("body *")].filter(element =>
    element.checkVisibility() && !element.closest("svg, script, style") &&
    [...element.childNodes].some(node =>
        node.nodeType === Node.TEXT_NODE && node.textContent.trim()));
"""
DRAWN = """
return [...document.querySelectorAll(".histogram text")].every(element =>
    getComputedStyle(element).fill === getComputedStyle(document.body).color);
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", ["", "#s12"])
def test_it_can_be_read_in_light_and_dark_and_in_a_narrow_window(
    browser: Any, address: str, scheme: str, place: str
) -> None:
    for width in (400, 1200):
        look(browser, scheme, width)
        opened(browser, address + place)
        browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
        over = "return document.documentElement.scrollWidth - innerWidth"
        assert browser.execute_script(over) <= 0
        picture(browser, f"class-{scheme}-{width}{place}", element(browser, "h1"))
    texts = browser.execute_script(TEXTS)
    assert len(texts) > (300 if not place else 30)
    measured = zip(texts, contrasts(browser, texts), strict=True)
    assert [(text.text, contrast) for text, contrast in measured if contrast < 4.5] == []
    assert browser.execute_script(DRAWN)


def test_the_bars_of_a_table_are_in_line(browser: Any, address: str) -> None:
    look(browser, "light", 1200)
    opened(browser, address)
    script = (
        "return [...document.querySelectorAll('table')].map(table => "
        "[...table.querySelectorAll('.bar')].map(bar => bar.getBoundingClientRect().left))"
    )
    lefts = [found for found in browser.execute_script(script) if len(found) > 1]
    assert lefts and all(len(set(found)) == 1 for found in lefts)


def test_a_screen_reader_finds_its_way(browser: Any, address: str) -> None:
    opened(browser, address)
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree]
    known = {role for role, _ in roles}
    assert {"main", "navigation", "banner", "table", "rowheader", "columnheader"} <= known
    headings = [name for role, name in roles if role == "heading"]
    assert headings[:3] == ["Birds", "Summary", "Misconceptions"]
    assert all(name for role, name in roles if role in ("table", "region", "image", "button"))
    cells = [name for role, name in roles if role in ("cell", "gridcell")]
    assert "failed because of an earlier stage, 0" in cells and "passed, 10" in cells
