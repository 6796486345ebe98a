"""The generated notebook in a real JupyterLab page: the verdict is seen and a hint can be opened.

This keeps the pictures:
KEEP_SCREENSHOTS=DIR python -m pytest -m slow tests/kit/learning/notebook/test_jupyterlab.py
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from grader.learning.notebook.builder import notebook
from grader.learning.predict.questions import read_predictions
from grader.read.stubs import read_solution, read_stub
from tests.kit.support.browser import (
    IN_A_BROWSER,
    TOKEN,
    chromium,
    contrasts,
    jupyter,
    picture,
    soon,
    webdriver,
)
from tests.kit.support.checkout import COURSE

pytest.importorskip("jupyterlab", reason="jupyterlab is not installed")
pytestmark = IN_A_BROWSER

WRONG = """import torch


def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    batch, tokens, d_model = x.shape
    return x.view(batch, num_heads, tokens, d_model // num_heads)
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """The address of a notebook that JupyterLab serves: one mistake, stubs, then a solution."""
    stubs = {stage.slug: read_stub(stage) for stage in COURSE.stages}
    asked = {stage.slug: read_predictions(stage) for stage in COURSE.stages}
    answers = {"split_heads": WRONG, "softmax": read_solution(COURSE.stage("softmax"))}
    questions = {k: v for k, v in asked.items() if v is not None}
    with served(tmp_path, notebook(COURSE, stubs, questions, {}, answers)) as found:
        yield found


@contextmanager
def served(tmp_path: Path, data: dict[str, Any]) -> Iterator[str]:
    """The address of a notebook in JupyterLab; its folder is tmp_path / "work"."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "study.ipynb").write_text(json.dumps(data), encoding="utf-8")
    settings = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}
    (tmp_path / "config" / "labconfig").mkdir(parents=True)
    overrides = tmp_path / "config" / "labconfig" / "default_setting_overrides.json"
    overrides.write_text(json.dumps(settings), encoding="utf-8")
    options = ["--LabApp.extension_manager=readonly", "--LabApp.expose_app_in_browser=True"]
    with jupyter("jupyterlab", work, tmp_path, options) as address:
        yield f"{address}lab/tree/study.ipynb?token={TOKEN}"


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    with chromium(tmp_path) as driver:
        yield driver


def cells(browser: Any) -> list[Any]:
    return list(browser.find_elements("css selector", ".jp-Notebook .jp-Cell"))


def verdict(browser: Any, words: str) -> Any:
    """The drawn HTML of the output that holds `words`."""
    found = browser.find_elements("css selector", ".jp-OutputArea-output.jp-RenderedHTMLCommon")
    return next(output for output in found if words in output.text)


def opener(inside: Any, words: str) -> Any:
    """The line that says `words` and can be clicked to open something."""
    found = inside.find_elements("css selector", "summary")
    return next(line for line in found if words in line.get_attribute("textContent"))


def run_cells(browser: Any, number: int) -> None:
    for _ in range(number):
        keys = webdriver.Keys
        browser.switch_to.active_element.send_keys(keys.SHIFT, keys.ENTER)
        time.sleep(0.2)


def can_be_read(browser: Any, name: str, of: Any, shown: Any) -> None:
    """All of it stands out from what is behind it, in the light and in the dark theme."""
    texts = of.find_elements("css selector", "p, pre, summary, td, th, li, caption")

    def theme_is(name: str) -> bool:
        return bool(browser.execute_script("return document.body.dataset.jpThemeName") == name)

    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        browser.execute_script(
            "jupyterapp.commands.execute('apputils:change-theme', {theme: arguments[0]})", theme
        )
        soon(partial(theme_is, theme))
        picture(browser, f"{theme.split()[1].lower()}-{name}", shown)
        assert min(contrasts(browser, [text for text in texts if text.is_displayed()])) > 4.5


def open_notebook(browser: Any, address: str) -> None:
    """Open it, wait for its kernel, and select the first cell."""
    idle = ".jp-Notebook-ExecutionIndicator[data-status=idle]"
    browser.get(address)
    soon(lambda: len(cells(browser)) > 4)
    soon(lambda: browser.find_element("css selector", idle))
    ready = "return jupyterapp.shell.currentWidget.sessionContext.isReady"
    soon(lambda: browser.execute_script(ready))  # what is run before is lost, though it looks idle
    cells(browser)[0].click()
    browser.switch_to.active_element.send_keys(webdriver.Keys.ESCAPE)


def test_a_learner_sees_verdicts_and_opens_a_hint(browser: Any, lab: str) -> None:
    open_notebook(browser, lab)
    picture(browser, "opened", cells(browser)[0])

    run_cells(browser, 5)  # title, %load_ext, text, questions, the first stage
    failed = soon(lambda: verdict(browser, "failed, "))
    assert "Split into heads" in failed.text and "Likely:" in failed.text
    assert "7 more checks fail for the same reason" in failed.text
    hint = opener(failed, "A hint for this failure (")
    inside = hint.find_element("xpath", "..")
    answer, following = opener(inside, "The answer"), opener(inside, "The next hint (")
    assert not answer.is_displayed()
    picture(browser, "failed", hint)
    hint.click()
    assert answer.is_displayed() and not following.is_displayed()
    answer.click()
    assert following.is_displayed()
    can_be_read(browser, "hint", failed, hint)

    cell = failed.find_element("xpath", "ancestor::div[contains(@class, 'jp-CodeCell')]")
    cell.find_element("css selector", ".jp-InputPrompt").click()
    run_cells(browser, 13)  # the same once more, and to the fourth stage, in four cells each
    passed = soon(lambda: verdict(browser, "passed, "))
    example = opener(passed, "Your code on an example")
    example.click()
    assert passed.find_element("css selector", "table").is_displayed()
    can_be_read(browser, "passed", passed, example)


def test_the_finale_trains_the_notebooks_own_module_and_shows_its_pictures(
    browser: Any, tmp_path: Path
) -> None:
    stubs = {stage.slug: read_stub(stage) for stage in COURSE.stages}
    answers = {stage.slug: read_solution(stage) for stage in COURSE.stages}
    whole = notebook(COURSE, stubs, {}, {}, answers, has_finale=True)
    core = {f"{stage.slug}-code" for stage in COURSE.stages if not stage.bonus}
    kept = [cell for cell in whole["cells"] if cell["id"] in {"start", "finale", *core}]
    kept[-1]["source"] = "%finale copying"
    with served(tmp_path, {**whole, "cells": kept}) as address:
        open_notebook(browser, address)
        browser.switch_to.active_element.send_keys(webdriver.Keys.CONTROL, "a")
        browser.switch_to.active_element.send_keys(webdriver.Keys.CONTROL, webdriver.Keys.ENTER)

        def pictures() -> list[Any]:
            found = browser.find_elements("css selector", ".jp-OutputArea-output img")
            return found if len(found) == 2 else []

        loss, heatmap = soon(pictures)
        picture(browser, "finale", heatmap)
        for each in (loss, heatmap):
            assert 200 < each.rect["width"] <= cells(browser)[-1].rect["width"]
        told = cells(browser)[-1].text
        assert "lamp -> lamp" in told and "Trained for" in told
    assert (tmp_path / "work" / "finale" / "copying-heatmap.svg").is_file()
