"""The generated notebook in a real JupyterLab page: the verdict is seen and a hint can be opened.

KEEP_SCREENSHOTS=DIR python -m pytest -m slow tests/kit/test_jupyterlab.py    keeps the pictures.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from grader.read.course_file import read_course
from grader.read.notebook import notebook
from grader.read.predictions import read_predictions
from grader.read.stubs import read_solution, read_stub

pytest.importorskip("jupyterlab", reason="jupyterlab is not installed")
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # what selenium warns of is not ours to mend
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium or chromedriver is missing"),
]

ROOT = Path(__file__).parents[2]
COURSE = read_course(ROOT / "course.toml")
TOKEN = "a-token-of-the-test"
WRONG = """import torch


def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    batch, tokens, d_model = x.shape
    return x.view(batch, num_heads, tokens, d_model // num_heads)
"""
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--window-size=1200,1500"),
)
Found = TypeVar("Found")


def soon(what: Callable[[], Found], seconds: float = 30) -> Found:
    """What `what` gives as soon as it is something; its last exception if it never is."""
    end = time.monotonic() + seconds
    while True:
        try:
            found = what()
            if found or time.monotonic() > end:
                assert found
                return found
        except Exception:
            if time.monotonic() > end:
                raise
        time.sleep(0.2)


@pytest.fixture(params=["JupyterLab Light", "JupyterLab Dark"])
def lab(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a notebook that JupyterLab serves: one mistake, stubs, then a solution."""
    stubs = {stage.slug: read_stub(stage) for stage in COURSE.stages}
    asked = {stage.slug: read_predictions(stage) for stage in COURSE.stages}
    answers = {"split_heads": WRONG, "softmax": read_solution(COURSE.stage("softmax"))}
    data = notebook(COURSE, stubs, {k: v for k, v in asked.items() if v is not None}, answers)
    work = tmp_path / "work"
    work.mkdir()
    (work / "study.ipynb").write_text(json.dumps(data), encoding="utf-8")
    home = {
        "HOME": tmp_path / "home",
        "IPYTHONDIR": tmp_path / "ipython",
        "JUPYTER_CONFIG_DIR": tmp_path / "config",
        "JUPYTER_DATA_DIR": tmp_path / "data",
        "JUPYTER_RUNTIME_DIR": tmp_path / "runtime",
        "PYTHONPATH": ROOT,
    }
    settings = {
        "@jupyterlab/apputils-extension:themes": {"theme": request.param},
        "@jupyterlab/apputils-extension:notification": {"fetchNews": "false"},
    }
    (tmp_path / "config" / "labconfig").mkdir(parents=True)
    overrides = tmp_path / "config" / "labconfig" / "default_setting_overrides.json"
    overrides.write_text(json.dumps(settings), encoding="utf-8")
    words = ["--no-browser", "--port=0", f"--ServerApp.token={TOKEN}", "--allow-root"]
    words += [f"--ServerApp.root_dir={work}", "--LabApp.extension_manager=readonly"]
    with open(tmp_path / "lab.log", "wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *words],
            cwd=work,
            env={**os.environ, **{name: str(value) for name, value in home.items()}},
            stdout=log,
            stderr=log,
        )

        def address() -> str:
            assert server.poll() is None, (tmp_path / "lab.log").read_text()
            (file,) = (tmp_path / "runtime").glob("jpserver-*.json")
            return str(json.loads(file.read_text())["url"])

        try:
            yield f"{soon(address)}lab/tree/study.ipynb?token={TOKEN}"
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'browser'}"):
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


# The contrast of an element's text with the background behind it, as WCAG counts it.
CONTRAST = """
const parts = colour => colour.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map(part => part / 255)
    .map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
return arguments[0].map(element => {
    const ink = light(parts(getComputedStyle(element).color));
    let behind = element;
    const shade = () => parts(getComputedStyle(behind).backgroundColor);
    while (behind.parentElement && shade()[3] === 0) behind = behind.parentElement;
    const paper = light(shade());
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
});
"""


def picture(browser: Any, name: str, of: Any) -> None:
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", of)
    if folder := os.environ.get("KEEP_SCREENSHOTS"):
        browser.save_screenshot(str(Path(folder) / f"{name}.png"))


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


def worst_contrast(browser: Any, of: Any) -> float:
    texts = of.find_elements("css selector", "p, pre, summary, td, th, li, caption")
    return float(min(browser.execute_script(CONTRAST, [t for t in texts if t.is_displayed()])))


def test_a_learner_sees_verdicts_and_opens_a_hint(
    browser: Any, lab: str, request: pytest.FixtureRequest
) -> None:
    theme = request.node.callspec.params["lab"].split()[-1].lower()
    idle = ".jp-Notebook-ExecutionIndicator[data-status=idle]"
    browser.get(lab)
    soon(lambda: len(cells(browser)) > 4, 60)
    soon(lambda: browser.find_element("css selector", idle), 60)
    cells(browser)[0].click()
    browser.switch_to.active_element.send_keys(webdriver.Keys.ESCAPE)
    picture(browser, f"{theme}-1-opened", cells(browser)[0])

    run_cells(browser, 5)  # title, %load_ext, text, questions, the first stage
    failed = soon(lambda: verdict(browser, "failed, "))
    assert "Split into heads" in failed.text and "Likely:" in failed.text
    assert "this cell, line" in failed.text
    hint = opener(failed, "A hint, for this mistake (")
    following = opener(hint.find_element("xpath", ".."), "The next hint (")
    assert not following.is_displayed()
    picture(browser, f"{theme}-2-failed", hint)
    hint.click()
    assert following.is_displayed()
    picture(browser, f"{theme}-3-hint", hint)
    assert worst_contrast(browser, failed) > 4.5

    cell = failed.find_element("xpath", "ancestor::div[contains(@class, 'jp-CodeCell')]")
    cell.find_element("css selector", ".jp-InputPrompt").click()
    run_cells(browser, 13)  # the same once more, and to the fourth stage, in four cells each
    passed = soon(lambda: verdict(browser, "passed, "))
    example = opener(passed, "What your code makes of an example")
    example.click()
    assert passed.find_element("css selector", "table").is_displayed()
    picture(browser, f"{theme}-4-passed", example)
    assert worst_contrast(browser, passed) > 4.5
