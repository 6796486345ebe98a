"""What nbgrader draws of our verdicts, in a browser: formgrader, and the pages students get.

This keeps the pictures:
KEEP_SCREENSHOTS=DIR python -m pytest -m slow tests/kit/classes/nbgrader/test_formgrader.py
"""

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.kit.classes.nbgrader.test_cycle import Notebook, answered, body
from tests.kit.classes.test_grading import scores as points_of
from tests.kit.support.browser import (
    IN_A_BROWSER,
    TOKEN,
    chromium,
    contrasts,
    homes,
    jupyter,
    look,
    opened,
    picture,
    soon,
    webdriver,
)
from tests.kit.support.checkout import ROOT
from tests.kit.support.files import write_files

pytest.importorskip("nbgrader", reason="nbgrader is not installed")

pytestmark = IN_A_BROWSER

NAME = "attention"
TAKEN = "document.title='taken'"
EVIL = f'My notes. <script>{TAKEN}</script><img src=x onerror="{TAKEN}"> [Me](javascript:{TAKEN})'
GONE = "![a picture](attachment:gone.png)"
NOT_SCALED = """print("<b>", "x" * 500)
    return q @ k.transpose(-2, -1)"""
TRANSPOSED = "return x.reshape(x.shape[0], x.shape[2], -1)"


def handed_in(released: Notebook, solved: Notebook) -> dict[str, bytes]:
    """Full marks and a hostile note; some mistakes; an untouched notebook; not a notebook."""
    whole = answered(released, solved)
    partial = body(body(whole, "scaled_scores", NOT_SCALED), "concat_heads", TRANSPOSED)
    note = {"cell_type": "markdown", "id": "note", "metadata": {}, "source": f"{EVIL} {GONE}"}
    whole["cells"].insert(1, note)
    notebooks = {"ann": whole, "bob": partial, "cas": released}
    return {
        **{student: json.dumps(notebook).encode() for student, notebook in notebooks.items()},
        "dan": b"{",
    }


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an nbgrader course that is graded and has feedback."""
    root = tmp_path_factory.mktemp("class")
    course = root / "course"
    course.mkdir()
    (root / "home").mkdir()

    def run(*words: str) -> None:
        environment = {**homes(root), "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(words, cwd=course, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    grade = (sys.executable, "-m", "grader")
    run(*grade, "release", "nbgrader", "--course", str(ROOT))
    run("nbgrader", "generate_assignment", NAME)
    released, solved = (
        json.loads((course / folder / NAME / f"{NAME}.ipynb").read_text("utf-8"))
        for folder in ("release", "source")
    )
    for student, data in handed_in(released, solved).items():
        write_files(course / "submitted" / student / NAME, {f"{NAME}.ipynb": data})
    run(*grade, "class", "--course", str(ROOT), "--nbgrader", ".", NAME)
    run("nbgrader", "generate_feedback", NAME)
    return course


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("browser")) as driver:
        yield driver


def found(browser: Any, css: str, words: str = "") -> Any:
    """The first element of that kind which shows these words."""
    every = browser.find_elements("css selector", css)
    return next(element for element in every if words in element.text)


# --- for teachers ------------------------------------------------------------------------------


def rows(browser: Any) -> list[list[str]]:
    """The texts of a page's table, once its rows are filled."""
    every = browser.find_elements("css selector", "tbody tr")
    texts = [[c.text for c in row.find_elements("css selector", "td")] for row in every]
    return texts if all("/" in " ".join(row) for row in texts) else []


def test_formgrader_shows_scores_and_reasons_and_runs_nothing_of_a_students(
    browser: Any, graded: Path, tmp_path: Path
) -> None:
    due = points_of(graded)
    assert due["ann"] == 100 and 0 < due["bob"] < 100 and due["cas"] == due["dan"] == 0
    look(browser, "light", 1200)
    with jupyter("jupyter_server", graded, tmp_path, []) as address:
        formgrader = f"{address}formgrader"
        browser.get(f"{formgrader}/manage_students?token={TOKEN}")
        shown = {row[1]: row[3] for row in soon(lambda: rows(browser))}
        assert shown == {student: f"{score:g} / 100" for student, score in due.items()}

        browser.get(f"{formgrader}/gradebook/{NAME}/{NAME}")
        scores = [row[2] for row in soon(lambda: rows(browser))]
        assert sorted(scores) == sorted(shown.values())
        picture(browser, "gradebook", found(browser, "table"))

        def opened(student: str) -> None:
            browser.get(f"{formgrader}/manage_students/{student}/{NAME}")
            soon(lambda: found(browser, "tbody a", NAME)).click()
            soon(lambda: found(browser, ".scoreboard"))
            soon(lambda: browser.execute_script("return document.readyState") == "complete")

        opened("bob")
        fields = browser.find_elements("css selector", "input.score")
        soon(lambda: all(field.get_attribute("placeholder") for field in fields))
        points = [float(field.get_attribute("placeholder")) for field in fields]
        assert len(points) == 6 and sum(points) == due["bob"]
        reason = found(browser, "section", "Score the pairs")
        assert "(-2 points)" in reason.text and "Likely: You don't scale." in reason.text
        comment = browser.find_element("id", "scaled_scores-code-comment")
        assert soon(lambda: comment.get_attribute("placeholder")).startswith("2 of 12 points.")
        picture(browser, "formgrader-light", reason)
        look(browser, "dark", 1200)
        picture(browser, "formgrader-dark", reason)
        title = browser.title

        opened("ann")
        note = found(browser, ".text_cell_render", "My notes.")
        assert EVIL in note.text
        assert note.find_elements("css selector", "script, img, a") == []
        assert browser.title == title


# --- for students ------------------------------------------------------------------------------

# What is ours on a page of nbgrader's: text cells, reasons and comments. Each piece of their text.
TEXTS = """
const parts = document.querySelectorAll(".text_cell_render, .output_html, .panel-footer");
return [...parts].flatMap(part => [...part.querySelectorAll("*")]).filter(element =>
    element.checkVisibility() && [...element.childNodes].some(node =>
        node.nodeType === Node.TEXT_NODE && node.textContent.trim()));
"""


def feedback(browser: Any, graded: Path, student: str) -> None:
    opened(browser, (graded / "feedback" / student / NAME / f"{NAME}.html").as_uri())


def is_dark(png: bytes) -> bool:
    """Whether the left edge of the picture is dark; it is either dark or light all the way."""
    edge = Image.open(io.BytesIO(png)).convert("L")
    darkest, lightest = edge.crop((0, 0, 1, edge.height)).getextrema()
    assert lightest < 60 or darkest > 220
    return bool(lightest < 60)


@pytest.mark.parametrize("student", ["bob", "cas", "dan"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_student_can_read_the_feedback_in_light_and_dark_and_in_a_narrow_window(
    browser: Any, graded: Path, scheme: str, student: str
) -> None:
    feedback(browser, graded, student)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    for width in (400, 1000):
        look(browser, scheme, width)
        for place, css in (("top", ".panel-heading"), ("reason", ".output_html")):
            name = f"feedback-{student}-{scheme}-{width}-{place}"
            seen = picture(browser, name, browser.find_elements("css selector", css)[-1])
            assert is_dark(seen) == (scheme == "dark")
        page = "return document.documentElement.scrollWidth - innerWidth"
        assert browser.execute_script(page) <= 0
    texts = browser.execute_script(TEXTS)
    assert len(texts) > 100
    measured = zip(texts, contrasts(browser, texts), strict=True)
    assert [(text.text, contrast) for text, contrast in measured if contrast < 4.5] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_can_be_opened_shows_it_and_opens_by_keyboard(
    browser: Any, graded: Path, scheme: str
) -> None:
    keys = webdriver.Keys
    look(browser, scheme, 1000)
    feedback(browser, graded, "bob")
    marks = browser.execute_script(
        "return [...document.querySelectorAll('summary')].map(line => getComputedStyle(line))"
        ".map(style => `${style.display} ${style.listStyleType}`)"
    )
    assert set(marks) == {"list-item disclosure-closed"}

    line = found(browser, "section summary", "more checks fail")
    details = line.find_element("xpath", "..")
    before = line.find_element("xpath", "preceding::a[@href][1]")
    unlike = picture(browser, f"keyboard-{scheme}-1", line)
    browser.execute_script("arguments[0].focus()", before)
    before.send_keys(keys.TAB)
    assert browser.switch_to.active_element == line
    assert (
        browser.execute_script("return getComputedStyle(arguments[0]).outlineWidth", line) == "2px"
    )
    assert picture(browser, f"keyboard-{scheme}-2", line) != unlike
    line.send_keys(keys.ENTER)
    assert details.get_attribute("open") is not None
    picture(browser, f"keyboard-{scheme}-3", line)
    line.send_keys(keys.SPACE)
    assert details.get_attribute("open") is None


def test_the_scoreboard_leads_to_each_stage(browser: Any, graded: Path) -> None:
    look(browser, "light", 1000)
    feedback(browser, graded, "bob")
    links = browser.find_elements("css selector", ".scoreboard a")
    assert len(links) == 6
    links[1].click()
    place = "return document.getElementsByName('scaled_scores')[0].getBoundingClientRect().top"
    assert abs(browser.execute_script(place)) < 5
