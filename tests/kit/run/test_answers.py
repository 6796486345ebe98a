"""Code of our own that does not come to an end is stopped, inside of other such code too."""

from __future__ import annotations

import signal

import pytest

from grader.run.answers import Stopped, stopped_after

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no such timers")


def blocks_without_end() -> None:
    with stopped_after(0.05):
        while True:
            with stopped_after(60):
                pass


def test_a_block_is_stopped_though_others_in_it_come_to_an_end() -> None:
    with pytest.raises(Stopped, match=r"in 0\.05 s"):
        blocks_without_end()


def test_what_ends_in_time_leaves_nothing_behind() -> None:
    with stopped_after(60), stopped_after(50):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
