"""The page's HTML: its own policy, and the results that a file holds."""

import base64
import hashlib
import json
import re
from typing import Any

from grader.learning.explore.example import read_explore
from grader.learning.explore.page import About, live_page, planned_runs, whole_page
from tests.kit.support.checkout import TINY

EVIL = "</script><script>alert(1)</script>"
SWAPS = [{"id": "one", "function": "smooth", "label": "one", "says": EVIL}]
ABOUT = About(TINY.title, "Smooth", read_explore(TINY.stage("smooth")).controls, SWAPS, source=EVIL)


def data(page: str) -> Any:
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(text)


def test_the_policy_allows_its_own_style_and_script_alone() -> None:
    page = live_page(ABOUT)
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; ")
    for tag in ("style", "script"):
        [text] = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.search(r"https?://|@import|url\(|eval|innerHTML", page)


def test_no_text_ends_the_data() -> None:
    found = data(live_page(ABOUT))
    assert (found["source"], found["swaps"]) == (EVIL, SWAPS)


def test_a_file_holds_every_combination_and_each_swap() -> None:
    def run(settings: list[Any], swap: str) -> dict[str, Any]:
        return {"parts": ["the same", f"{settings} {swap}"]}

    found = data(whole_page(ABOUT, run))
    assert len(found["runs"]) == len(list(planned_runs(ABOUT))) == 2 * 2 * 2 + 1
    parts = [found["parts"][n] for n in found["runs"]['[[1,0,1],""]']["parts"]]
    assert parts == ["the same", "['4 4 4 4', 0, 1] "]
    assert '[[0,1,0],"one"]' in found["runs"]
    assert found["parts"].count("the same") == 1
