"""`grade explore` in a browser: its numbers are those of the learner's own module.

This keeps the pictures:
KEEP_SCREENSHOTS=DIR python -m pytest -m slow tests/kit/learning/explore/test_in_browser.py
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.read.faults import author_module
from grader.read.misconceptions import read_misconceptions
from grader.run.solutions import at_hand, solution_files
from tests.kit.support.browser import (
    IN_A_BROWSER,
    chromium,
    contrasts,
    look,
    opened,
    picture,
    soon,
    webdriver,
)
from tests.kit.support.checkout import COURSE, ROOT
from tests.kit.support.files import write_files

pytestmark = IN_A_BROWSER

MODULE = COURSE.stage("multi_head_attention")
EXAMPLE = author_module(MODULE, MODULE.explore_file)
SENTENCE = EXAMPLE.CONTROLS[0].values[0]
# The learner's own: one function is wrong, so that no number is the solution's.
NOT_SCALED = b"def scaled_scores(q, k):\n    return q @ k.transpose(-2, -1) / 2.5\n"
FILES = solution_files(COURSE) | {"scaled_scores.py": NOT_SCALED}
LOOPS = "def concat_heads(x):\n    while True:\n        pass\n"
RAISES = "def concat_heads(x):\n    print('<b>here</b>')\n    return x + nothing\n"

Tables = list[list[list[float]]]


def grade(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "grader", "explore", *map(str, words)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The learner's files."""
    return write_files(tmp_path_factory.mktemp("mine"), FILES)


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    words = grade("--no-browser", "--submission", folder)
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", server.stdout.readline())
        assert found
        yield found[0]
        server.send_signal(signal.SIGINT)
        assert "The page has ended." in server.stdout.read()
        assert server.wait() == 0


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("browser")) as driver:
        yield driver


@pytest.fixture
def page(chrome: Any, address: str) -> Any:
    look(chrome, "light", 1200)
    opened(chrome, address)
    settle(chrome)
    return chrome


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Path:
    """The page as a file."""
    place = tmp_path_factory.mktemp("page") / "lecture.html"
    words = grade("--submission", folder, "--out", place)
    subprocess.run(words, cwd=ROOT, check=True, timeout=500, stdout=subprocess.DEVNULL)
    return place


# --- what can be done on the page ------------------------------------------------------------


def settle(page: Any) -> None:
    """Wait until the page shows the result for its controls."""
    soon(lambda: page.execute_script("return shown !== '' && !busy"), 60)


def one(page: Any, css: str) -> Any:
    return page.find_element("css selector", css)


def choose(page: Any, name: str, text: str) -> None:
    field = one(page, "#swap" if name == "swap" else f"#control-{name}")
    # Selenium's own Select is as good, but slow with hundreds of options.
    script = """
    const [field, text] = arguments;
    field.selectedIndex = [...field.options].findIndex(option => option.text === text);
    field.dispatchEvent(new Event('input', {bubbles: true}));
    """
    page.execute_script(script, field, text)
    settle(page)


def type_in(page: Any, text: str) -> None:
    field = one(page, "#control-sentence")
    field.clear()
    field.send_keys(text)
    settle(page)


def press(page: Any, css: str, *keys: str) -> None:
    one(page, css).send_keys(*keys)
    settle(page)


def told(page: Any) -> str:
    return str(one(page, "#result").text)


def cells(page: Any, step: str) -> list[Any]:
    """For each table of a step, its rows of texts."""
    script = """
    const section = [...document.querySelectorAll('section')]
        .find(each => each.querySelector('h2')?.firstChild.textContent.trim() === arguments[0]);
    return [...section.querySelectorAll('table')].map(table => [...table.tBodies[0].rows]
        .map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent)));
    """
    return list(page.execute_script(script, step))


def tables(page: Any, step: str) -> Tables:
    return [
        [[float(text.removeprefix("≠ ")) for text in row] for row in table]
        for table in cells(page, step)
    ]


def is_close(shown: Tables, right: torch.Tensor) -> None:
    """The page has two decimals."""
    torch.testing.assert_close(torch.tensor(shown), right.detach(), atol=0.00501, rtol=0)


def own(
    sentence: str, mask: str, heads: int, scale: float = 1.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output [T, D] and weights [H, Tq, Tk] of the learner's own module."""
    words = sentence.split()
    x = torch.stack([EXAMPLE.drawn(word, 8) for word in words])[None]
    layers = {f"w_{name}.weight": EXAMPLE.drawn(f"layer {name}", 8, 8) * 0.5 for name in "qkvo"}
    layers["w_q.weight"] = layers["w_q.weight"] * scale
    allowed = torch.ones(len(words), len(words), dtype=torch.bool)
    if "causal" in mask:
        allowed = allowed.tril()
    if "padding" in mask:
        allowed[:, -1] = False
    with at_hand(FILES, MODULE) as found:
        module = found("MultiHeadAttention")(8, heads, bias=False)
        module.load_state_dict(layers)
        output, weights = module(x, x, x, allowed)
    return output[0], weights[0]


def compare(page: Any, sentence: str, mask: str, heads: int, scale: float = 1.0) -> None:
    output, weights = own(sentence, mask, heads, scale)
    is_close(tables(page, "output"), output[None])
    is_close(tables(page, "output of the module"), output[None])
    is_close(tables(page, "weights"), weights)


def swapped(sentence: str) -> torch.Tensor:
    """The weights [H, Tq, Tk] of the misconception `softmax_over_queries` without a mask."""
    words = sentence.split()
    x = torch.stack([EXAMPLE.drawn(word, 8) for word in words])
    q, k = (x @ (EXAMPLE.drawn(f"layer {name}", 8, 8) * 0.5).T for name in "qk")
    q, k = (each.view(1, len(words), 2, 4).transpose(1, 2) for each in (q, k))
    [mistake] = [
        each
        for each in read_misconceptions(COURSE.stage("softmax"))
        if each.id == "softmax_over_queries"
    ]
    weights: torch.Tensor = mistake.implementation(q @ k.transpose(-2, -1) / 2.5)[0]
    return weights


# --- live --------------------------------------------------------------------------------------


def test_every_control_changes_the_numbers_to_those_of_the_learners_module(page: Any) -> None:
    compare(page, SENTENCE, "causal", 2)
    type_in(page, "a bird is a bird")
    compare(page, "a bird is a bird", "causal", 2)
    assert one(page, "section tbody th").text == "a"
    choose(page, "mask", "causal and padding")
    compare(page, "a bird is a bird", "causal and padding", 2)
    choose(page, "mask", "none")
    choose(page, "heads", "4")
    compare(page, "a bird is a bird", "none", 4)
    assert "outputs that differ by at most" in told(page) and "nn.MultiheadAttention" in told(page)
    one(page, "button").click()
    settle(page)
    compare(page, SENTENCE, "causal", 2)


def test_the_slider_makes_the_softmax_saturate_and_its_gradient_vanish(page: Any) -> None:
    def sizes() -> tuple[float, float]:
        numbers = torch.tensor(tables(page, "gradient")).abs().sum().item()
        return numbers, max(max(row) for row in tables(page, "weights")[1][1:])

    before, _ = sizes()
    press(page, "#control-scale", webdriver.Keys.END)
    after, largest = sizes()
    assert one(page, "output").text == one(page, "#control-scale").get_attribute("aria-valuetext")
    assert one(page, "output").text == "32"
    compare(page, SENTENCE, "causal", 2, scale=32)
    assert after < before / 4 and largest > 0.99


def test_a_known_mistake_is_swapped_in_and_its_effect_is_marked(page: Any) -> None:
    choose(page, "mask", "none")
    choose(page, "swap", "softmax over queries")
    weights = swapped(SENTENCE)
    assert not torch.allclose(weights, own(SENTENCE, "none", 2)[1])
    is_close(tables(page, "weights"), weights)
    assert "softmax over queries" in told(page) and 'first "weights"' in told(page)
    assert all(text.startswith("≠ ") for text in cells(page, "weights")[0][0])
    assert not any(text.startswith("≠") for text in cells(page, "scores")[0][0])
    choose(page, "swap", "padding inverted")
    assert "`" not in told(page)
    assert "padding_mask is not called, so the swap changes nothing." in told(page)
    choose(page, "swap", "split no transpose")  # the learner's own concat_heads cannot join that
    assert "The steps end here: concat_heads" in told(page)
    assert "grade hint" not in one(page, "#steps").text
    choose(page, "swap", "nothing")
    compare(page, SENTENCE, "none", 2)


def test_a_weight_shows_the_two_vectors_behind_it(page: Any) -> None:
    grid = one(page, "table[role=grid][aria-label^='weights, head 1']")
    cell = grid.find_element("css selector", "tbody tr:nth-child(3) td:nth-of-type(2)")
    webdriver.ActionChains(page).move_to_element(cell).perform()
    panel = one(page, "#behind")
    soon(lambda: "weights: H head 1, Tq sing, Tk birds" in panel.text, 10)
    q, k, products = [
        [float(text) for text in page.execute_script(
            "return [...arguments[0].cells].slice(1).map(cell => cell.textContent)", row
        )]
        for row in panel.find_elements("css selector", "tbody tr")
    ]  # fmt: skip
    assert q == tables(page, "q heads")[1][2] and k == tables(page, "k heads")[1][1]
    total = float(re.search(r"add up to (-?[\d.]+)\.", panel.text)[1])
    assert sum(products) == pytest.approx(total, abs=0.03)
    assert total / 2.5 == pytest.approx(tables(page, "scores")[1][2][1], abs=0.011)
    picture(page, "explore-behind", grid)


def test_the_keyboard_reaches_every_number(page: Any) -> None:
    grids = page.find_elements("css selector", "table[role=grid]")
    assert len(grids) == 8
    for grid in grids:
        assert len(grid.find_elements("css selector", "td[tabindex='0']")) == 1
    first = grids[0].find_element("css selector", "td[tabindex='0']")
    first.send_keys(webdriver.Keys.ARROW_DOWN)
    page.switch_to.active_element.send_keys(webdriver.Keys.ARROW_RIGHT)
    assert "scores: H head 0, Tq birds, Tk birds" in one(page, "#behind").text
    page.switch_to.active_element.send_keys(webdriver.Keys.ARROW_LEFT, webdriver.Keys.ARROW_LEFT)
    assert "Tk the" in one(page, "#behind").text
    # It stays while a control changes.
    choose(page, "mask", "none")
    assert "scores: H head 0, Tq birds, Tk the" in one(page, "#behind").text


def test_a_saved_file_is_picked_up_and_its_failure_told_kindly(page: Any, folder: Path) -> None:
    file = folder / "concat_heads.py"

    def save(text: str) -> str:
        file.write_text(text, encoding="utf-8")
        page.execute_script("window.dispatchEvent(new Event('focus'))")
        settle(page)
        return str(one(page, "#steps").text)

    try:
        shown = save(RAISES)
        assert "The steps end here: concat_heads gave no usable result." in told(page)
        assert "name 'nothing' is not defined" in shown and "concat_heads.py, line 3" in shown
        assert "Traceback" not in shown and "<b>here</b>" in shown
        assert "grade hint concat_heads" in shown
        assert "3 s" in save(LOOPS)
        save('def concat_heads(x):\n    raise NotImplementedError("write me")\n')
        assert "Not written yet, so the course's own: concat_heads." in one(page, "#whose").text
    finally:
        file.write_bytes(FILES["concat_heads.py"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_it(page: Any, scheme: str) -> None:
    choose(page, "swap", "scores no scale")
    look(page, scheme, 1200)
    texts = page.find_elements("css selector", "h1, h2, p, label, caption, th, td, select, button")
    assert min(contrasts(page, texts)) >= 4.5
    picture(page, f"explore-{scheme}", one(page, "#controls"))
    fields = page.find_elements("css selector", "input, select")
    names = [field.accessible_name for field in fields]
    assert len(names) == 5 and all(names)
    assert page.find_elements("css selector", "th:not([scope])") == []
    look(page, scheme, 320)
    width = page.execute_script("return document.documentElement.scrollWidth")
    assert width <= 320
    picture(page, f"explore-{scheme}-narrow", one(page, "#result"))


def test_it_asks_nobody_else(page: Any, address: str) -> None:
    script = "return performance.getEntriesByType('resource').map(entry => entry.name)"
    home = address.partition("?")[0]
    assert set(page.execute_script(script)) <= {f"{home}compute"}
    assert page.get_log("browser") == []


# --- the file ----------------------------------------------------------------------------------


def test_the_file_does_the_same_without_a_server(chrome: Any, file: Path) -> None:
    look(chrome, "light", 1200)
    opened(chrome, file.as_uri())
    settle(chrome)
    compare(chrome, SENTENCE, "causal", 2)
    assert "Computed beforehand" in one(chrome, "header").text
    choose(chrome, "sentence", EXAMPLE.CONTROLS[0].values[1])
    choose(chrome, "mask", "padding: the last word")
    choose(chrome, "heads", "4")
    press(chrome, "#control-scale", webdriver.Keys.HOME)
    compare(chrome, EXAMPLE.CONTROLS[0].values[1], "padding", 4, scale=0.25)
    choose(chrome, "swap", "apply zero")
    assert "only with the other controls as they start" in told(chrome)
    assert one(chrome, "output").text == "1"
    blocked = torch.tensor(tables(chrome, "weights")[0])[0, 1:]
    assert (blocked > 0).any(), "a score of 0 is not blocked"
    assert cells(chrome, "masked")[0][0][1].startswith("≠ ")
    assert chrome.get_log("browser") == []
    assert os.stat(file).st_size < 4_000_000
