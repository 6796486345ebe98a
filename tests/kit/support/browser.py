"""What the tests in a browser share: a Jupyter server, a headless Chromium, what can be seen.

This keeps the pictures:
KEEP_SCREENSHOTS=DIR python -m pytest -m slow tests/kit/learning/notebook/test_jupyterlab.py
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.kit.support.checkout import ROOT

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

IN_A_BROWSER = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # what selenium warns of is not ours to mend
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium or chromedriver is missing"),
]
TOKEN = "a-token-of-the-test"
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--window-size=1200,1500"),
)
Found = TypeVar("Found")


def soon(what: Callable[[], Found], seconds: float = 120) -> Found:
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


def homes(folder: Path) -> dict[str, str]:
    """The environment of programs that are to see nothing of this user's own settings."""
    places = {
        "HOME": folder / "home",
        "IPYTHONDIR": folder / "ipython",
        "JUPYTER_CONFIG_DIR": folder / "config",
        "JUPYTER_DATA_DIR": folder / "data",
        "JUPYTER_RUNTIME_DIR": folder / "runtime",
        "PYTHONPATH": ROOT,
    }
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, **{name: str(place) for name, place in places.items()}}


@contextmanager
def jupyter(app: str, work: Path, folder: Path, options: Sequence[str]) -> Iterator[str]:
    """The address of a Jupyter server in the folder `work`; what it needs else is in `folder`."""
    words = ["--no-browser", "--port=0", f"--ServerApp.token={TOKEN}", "--allow-root"]
    words += [f"--ServerApp.root_dir={work}", *options]
    with open(folder / "server.log", "wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", app, *words], cwd=work, env=homes(folder), stdout=log, stderr=log
        )

        def address() -> str:
            assert server.poll() is None, (folder / "server.log").read_text()
            (file,) = (folder / "runtime").glob("jpserver-*.json")
            return str(json.loads(file.read_text())["url"])

        try:
            yield soon(address)
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


@contextmanager
def chromium(folder: Path) -> Iterator[Any]:
    """A headless browser with a profile of its own in `folder`."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={folder / 'browser'}"):
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    try:
        yield driver
    finally:
        driver.quit()


def look(browser: Any, scheme: str, width: int) -> None:
    """As a reader whose system is light or dark, with a window of that width."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    sizes = {"width": width, "height": 1500, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sizes)


def opened(browser: Any, address: str) -> None:
    """Open the page anew and wait until it is whole; `get` alone may return a moment earlier."""
    browser.get("about:blank")
    browser.get(address)
    state = "return [document.URL, document.readyState]"
    soon(lambda: browser.execute_script(state) == [address, "complete"], 30)


def picture(browser: Any, name: str, of: Any) -> bytes:
    """The window as a PNG, with that element in its middle."""
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", of)
    data = base64.b64decode(browser.get_screenshot_as_base64())
    if folder := os.environ.get("KEEP_SCREENSHOTS"):
        (Path(folder) / f"{name}.png").write_bytes(data)
    return data


# The contrast of an element's text with the background behind it, as WCAG counts it. Where a filter
# turns the whole page, colours are drawn through it first: the computed ones know nothing of it.
CONTRAST = """
const draw = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
draw.filter = getComputedStyle(document.documentElement).filter;
const look = colour => {
    for (const layer of ['white', colour]) {
        draw.fillStyle = layer;
        draw.fillRect(0, 0, 1, 1);
    }
    return [...draw.getImageData(0, 0, 1, 1).data].slice(0, 3);
};
const light = colour => look(colour).map(part => part / 255)
    .map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
const clear = colour => Number(colour.match(/[\\d.]+/g)[3] ?? 1) === 0;
return arguments[0].map(element => {
    let behind = element;
    const shade = () => getComputedStyle(behind).backgroundColor;
    while (behind.parentElement && clear(shade())) behind = behind.parentElement;
    const ink = light(getComputedStyle(element).color);
    const paper = light(clear(shade()) ? 'white' : shade());
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
});
"""


def contrasts(browser: Any, elements: Sequence[Any]) -> list[float]:
    return [float(found) for found in browser.execute_script(CONTRAST, list(elements))]
