"""A first Ctrl-C that waits, and handlers that stay as they were."""

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from grader.run.stopping import first_interrupt


def test_the_first_ctrl_c_asks_to_stop_and_the_second_one_stops() -> None:
    before = signal.getsignal(signal.SIGINT)
    with first_interrupt() as is_over:
        assert not is_over()
        signal.raise_signal(signal.SIGINT)
        assert is_over()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_process_that_ctrl_c_has_ended_too_is_no_error_of_its_own() -> None:
    def speak(is_pressed: bool) -> None:
        with first_interrupt():
            if is_pressed:
                signal.raise_signal(signal.SIGINT)
            raise BrokenPipeError

    for is_pressed, raised in ((False, BrokenPipeError), (True, KeyboardInterrupt)):
        with pytest.raises(raised):
            speak(is_pressed)


def test_a_ctrl_c_that_is_handled_otherwise_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with first_interrupt() as is_over:
            signal.raise_signal(signal.SIGINT)
            assert not is_over()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_changes_nothing() -> None:
    def handler() -> object:
        with first_interrupt():
            return signal.getsignal(signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(handler).result() is signal.getsignal(signal.SIGINT)
