"""The learner's tests, run by pytest in this process: what is kept of what came of them."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from grader.run.worker.raised import describe
from grader.run.worker.trying import NAME_CAP, TESTS_CAP, tried, verdict


def run(source: str, given: Callable[..., Any] = lambda *args, **kwargs: (args, kwargs)) -> Any:
    """What comes of the tests in a file that knows the fixture `make_bird`."""
    lines = source.split("\n")
    module = ModuleType("birds")
    exec(compile(source, "birds.py", "exec"), vars(module))

    def line(file: str, number: int) -> str | None:
        return lines[number - 1] if file == "birds.py" else None

    return tried(module, "make_bird", given, lambda error: describe(error, line))


OUTCOMES = {
    "a function": (
        "def test_a(make_bird): assert make_bird(2) == ((2,), {})",
        {"test_a": "passed"},
    ),
    "one that fails": ("def test_a(make_bird): assert 0", {"test_a": "failed"}),
    "parametrized": (
        "import pytest\n@pytest.mark.parametrize('n', [1, 2])\ndef test_a(n): assert n == 1",
        {"test_a[1]": "passed", "test_a[2]": "failed"},
    ),
    "fixtures of one's own": (
        (
            "import pytest\n@pytest.fixture\ndef bird(make_bird): return make_bird(3)\n"
            "def test_a(bird): assert bird == ((3,), {})"
        ),
        {"test_a": "passed"},
    ),
    "a fixture that fails": (
        "import pytest\n@pytest.fixture\ndef bird(): raise ValueError\ndef test_a(bird): pass",
        {"test_a": "errored"},
    ),
    "no such fixture": ("def test_a(make_brid): pass", {"test_a": "errored"}),
    "what fails when it is over": (
        (
            "import pytest\n@pytest.fixture\ndef bird():\n    yield\n    assert 0\n"
            "def test_a(bird): pass"
        ),
        {"test_a": "errored"},
    ),
    "a class": (
        "class TestBird:\n    def test_a(self, make_bird): make_bird()\n    def no(self): pass",
        {"TestBird::test_a": "passed"},
    ),
    "a TestCase": (
        (
            "import unittest\nclass Birds(unittest.TestCase):\n"
            "    def test_a(self): self.skipTest('no')\n"
            "    def test_b(self): self.assertEqual(1, 2)"
        ),
        {"Birds::test_a": "skipped", "Birds::test_b": "failed"},
    ),
    "one after the first that fails": (
        "def test_a(): pass\ndef test_b(): assert 0\ndef test_c(): pass",
        {"test_a": "passed", "test_b": "failed"},
    ),
    "marks": (
        (
            "import pytest\n@pytest.mark.skip\ndef test_a(): pass\n"
            "@pytest.mark.xfail\ndef test_b(): assert 0\n"
            "@pytest.mark.xfail(strict=True)\ndef test_c(): pass"
        ),
        {"test_a": "skipped", "test_b": "skipped", "test_c": "failed"},
    ),
    "skipped on the way": ("import pytest\ndef test_a(): pytest.skip()", {"test_a": "skipped"}),
    "what pytest has": (
        (
            "import pytest, warnings\ndef test_a(tmp_path, monkeypatch, capsys):\n    print(1)\n"
            "    assert capsys.readouterr().out == '1\\n'\n"
            "    assert 0.1 + 0.2 == pytest.approx(0.3)\n"
            "    with pytest.raises(KeyError): {}[1]\n"
            "    with pytest.warns(UserWarning): warnings.warn('x')"
        ),
        {"test_a": "passed"},
    ),
    "an exit": ("import sys\ndef test_a(): sys.exit()", {"test_a": "failed"}),
    "a stub": (
        "def test_a(make_bird): raise NotImplementedError('test_a is not written yet')",
        {"test_a": "unwritten"},
    ),
    "no stub": (
        "def bird(): raise NotImplementedError\ndef test_a(): bird()",
        {"test_a": "failed"},
    ),
    "nothing": ("x = 3", {}),
}


@pytest.mark.parametrize("source, outcomes", OUTCOMES.values(), ids=OUTCOMES)
def test_outcomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, outcomes: dict[str, str]
) -> None:
    # As in the worker. Elsewhere a `tmp_path` of theirs removes what older runs of pytest left.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = run(source)
    assert dict(found["outcomes"]) == outcomes
    assert found["ended"] == ""


def test_the_fixture_hands_on_what_it_is_given_and_counts() -> None:
    seen = []
    source = "def test_a(make_bird):\n    make_bird(3, wings=2)\n    make_bird()"
    found = run(source, lambda *args, **kwargs: seen.append((args, kwargs)))
    assert seen == [((3,), {"wings": 2}), ((), {})]
    assert found["made"] == 2


def test_the_first_that_fails_is_told_with_its_line() -> None:
    found = run("def test_a(): pass\n\ndef test_b(make_bird):\n    assert make_bird() == 2\n")
    first = found["first"]
    assert (first["test"], first["type"]) == ("test_b", "AssertionError")
    assert first["frames"][-1]["text"] == "assert make_bird() == 2"
    assert run("def test_a(): pass")["first"] is None


@pytest.mark.parametrize(
    "source, why",
    [
        ("import pytest\ndef test_a(): pytest.exit('no')", "ended before all tests were run"),
        ("def test_a(): raise KeyboardInterrupt", "ended before all tests were run"),
        (
            "import pytest\n@pytest.mark.parametrize('a, b', [1])\ndef test_a(a, b): pass",
            "cannot collect",
        ),
        (
            "import pytest\n@pytest.mark.parametrize('a', range(1001))\ndef test_a(a): pass",
            "more than 1000 tests",
        ),
    ],
)
def test_a_run_that_ends_before_its_time_says_nothing(source: str, why: str) -> None:
    found = run(source)
    assert why in found["ended"]
    assert found["value"] == "nothing"
    assert len(found["outcomes"]) <= TESTS_CAP


@pytest.mark.filterwarnings("always::pytest.PytestReturnNotNoneWarning")
def test_a_test_that_returns_what_it_should_assert_is_told_unless_another_fails() -> None:
    source = "def test_a():\n    return 1 == 2\n\ndef test_b(): pass\n"
    found = run(source)
    assert (found["value"], found["first"]["test"]) == ("passed", "test_a")
    assert "write assert, not return" in found["first"]["message"]
    assert found["first"]["frames"][-1]["line"] == 1
    assert run(f"{source}\ndef test_c(): assert 0\n")["first"]["test"] == "test_c"


def test_a_long_name_is_cut() -> None:
    found = run(f"def test_{'a' * 300}(): assert 0")
    assert len(found["outcomes"][0][0]) == len(found["first"]["test"]) == NAME_CAP


def test_one_class_of_tests_will_do() -> None:
    class Birds:
        def test_a(self, make_bird: Callable[[], int]) -> None:
            assert make_bird() == 3

    assert tried(Birds, "make_bird", lambda: 3, describe)["value"] == "passed"
    assert tried(Birds, "make_bird", lambda: 4, describe)["value"] == "failed"


@pytest.mark.parametrize(
    "outcomes, value",
    [
        (["passed", "skipped"], "passed"),
        (["passed", "unwritten"], "passed"),
        (["passed", "failed"], "failed"),
        (["errored"], "failed"),
        (["skipped"], "nothing"),
        (["skipped", "unwritten"], "nothing"),
        (["unwritten", "unwritten"], "unwritten"),
        ([], "nothing"),
    ],
)
def test_the_verdict(outcomes: list[str], value: str) -> None:
    named = [(str(number), outcome) for number, outcome in enumerate(outcomes)]
    assert verdict(named, "") == value
    assert verdict(named, "it was too slow") == "nothing"
