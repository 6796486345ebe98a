"""An address in an author's text can be clicked where the terminal can, and is text elsewhere."""

import pytest
from rich.text import Text

from grader.show.screen import Page, Screen
from tests.kit.support.drawn import draw

ADDRESS = "https://example.org/abs/1706.03762"


def drawn(page: Page) -> list[Text]:
    return [page.inline(f"See {ADDRESS}.")]


@pytest.mark.parametrize("terminal", [True, False])
def test_an_address_is_a_link_only_in_a_terminal(terminal: bool) -> None:
    text = draw(Screen(drawn), force_terminal=terminal, legacy_windows=False)
    assert (f";{ADDRESS}\x1b\\" in text) is terminal
    assert terminal or text == f"See {ADDRESS}.\n"
