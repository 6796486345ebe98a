"""The class's report in a browser: it sorts, leads to students, and everybody can read it.

This keeps the pictures:
KEEP_SCREENSHOTS=DIR python -m pytest -m slow tests/kit/classes/report/test_in_browser.py
"""

import base64
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.classes.folder.types import SubmissionRecord
from grader.classes.report.moved import moved
from grader.classes.report.page import class_report
from grader.classes.report.types import Alike, Similar, Unexplained
from grader.types.course import Assignment, Stage
from grader.types.report import CheckResult, Diagnosis, Outcome, Report, StageResult, Status
from tests.kit.classes.report.test_page import CLASS, EVIL, FLIGHT, LOST, UNREAD
from tests.kit.support.browser import (
    IN_A_BROWSER,
    chromium,
    contrasts,
    look,
    opened,
    picture,
    webdriver,
)

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


# --- on paper ----------------------------------------------------------------------------------


def test_the_class_takes_one_printed_page_however_much_is_wrong(
    browser: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stages = tuple(
        Stage(f"stage_{n}", f"A stage with a long title, number {n}", 10, n > 5, (), (), Path())
        for n in range(20)
    )
    said = "The output is wrong (120 of 120 values)\n" + "  call  f([B=2, T=5, D=12])\n" * 30

    def verdict(student: int, of: Stage) -> StageResult:
        why = Diagnosis(f"mistake-{student % 4}", "You do it in a long and winding way. " * 5, 1)
        checks = tuple(
            CheckResult(f"{of.slug}.{n}", f"Check {n}: {'long ' * 12}", Outcome.FAILED, 0, 1, said)
            for n in range(student % 3)
        )
        last = CheckResult(f"{of.slug}.x", "It holds", Outcome.FAILED, 0, 1, said, why)
        return StageResult(of.slug, of.title, Status.FAILED, student, 10, of.bonus, (*checks, last))

    entries = []
    for n in range(30):
        results = tuple(verdict(n, stage) for stage in stages)
        report = Report("Birds", f"s{n}", "cpu", 6 * n / 30, 60, 0, results, ("seed 7",))
        entries.append(replace(CLASS[0], record=SubmissionRecord(f"s{n}", "c"), report=report))
    hints = {stage.slug: ["What is a hint with a long heading about?"] for stage in stages}
    change = moved("the assignment before", entries, entries)
    assignment = Assignment("many", stages)
    pieces = class_report("Birds", assignment, lambda: entries, hints=hints, moved=change)
    file = tmp_path_factory.mktemp("printed") / "report.html"
    file.write_text("".join(pieces), encoding="utf-8")
    browser.get(file.as_uri())
    assert pages(browser, 8.27, 11.69) == 1  # A4
    assert pages(browser, 8.5, 11) == 1  # Letter
    browser.get(f"{file.as_uri()}#s1")
    assert pages(browser, 8.27, 11.69) > 1  # a student's page is printed whole


def pages(browser: Any, width: float, height: float) -> int:
    """How many pages of this size in inches the page takes."""
    sizes = {"paperWidth": width, "paperHeight": height}
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", sizes)["data"])
    return len(re.findall(rb"/Type\s*/Page[^s]", printed))


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


def test_no_number_runs_out_of_its_cell(browser: Any, address: str) -> None:
    look(browser, "light", 500)
    opened(browser, address)
    script = """
        return [...document.querySelectorAll('td:has(.bar)')].filter(cell => {
            const text = document.createRange();
            text.selectNodeContents(cell);
            const right = cell.getBoundingClientRect().right;
            return [...text.getClientRects()].some(part => part.right > right);
        }).map(cell => cell.textContent)"""
    assert browser.execute_script(script) == []


def test_a_screen_reader_finds_its_way(browser: Any, address: str) -> None:
    opened(browser, address)
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree]
    known = {role for role, _ in roles}
    assert {"main", "navigation", "banner", "table", "rowheader", "columnheader"} <= known
    headings = [name for role, name in roles if role == "heading"]
    assert headings[:3] == ["Birds", "Summary", "What to teach next"]
    assert all(name for role, name in roles if role in ("table", "region", "image", "button"))
    cells = [name for role, name in roles if role in ("cell", "gridcell")]
    assert "failed because of an earlier stage, 0" in cells and "passed, 10" in cells
