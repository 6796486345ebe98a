"""A stage whose entry point is a class without torch: its objects and their methods are called."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.support.files import edit, write_files
from tests.kit.support.tiny import Say, Typed

SOLUTION = '''"""A counter."""


class Counter:
    """Counts words."""

    def __init__(self, words: list) -> None:
        """Count these words."""
        ### BEGIN SOLUTION
        self.counts = {}
        self.add(words)
        ### END SOLUTION

    def __call__(self, word: str) -> int:
        """How often the word was counted."""
        ### BEGIN SOLUTION
        return self.counts.get(word, 0)
        ### END SOLUTION

    def add(self, words: list):
        """Count these words too. Returns the counter itself."""
        ### BEGIN SOLUTION
        for word in words:
            self.counts[word] = self(word) + 1
        return self
        ### END SOLUTION

    def most(self, least: int) -> list:
        """The words that occur at least so often."""
        ### BEGIN SOLUTION
        return [word for word, count in self.counts.items() if count >= least]
        ### END SOLUTION
'''
CHECKS = """from __future__ import annotations

import pytest

from grader.checking import expect_equal


@pytest.mark.points(5)
def test_counts(submission):
    \"\"\"Each word is counted\"\"\"
    counter = submission.Counter(["a", "b", "a"])
    expect_equal([counter("a"), counter("b"), counter("c")], [2, 1, 0], "the counts")


@pytest.mark.points(5)
def test_most(submission):
    \"\"\"Words that were added later count too\"\"\"
    counter = submission.Counter(["a", "b"]).add(["b", "c"])
    expect_equal(counter.most(2), ["b"], "the words")
"""
MISTAKE = """from grader.misconceptions import misconception


@misconception("more_than", replaces="Counter", says="You leave out the words at the limit.")
class MoreThan:
    def __init__(self, words):
        self.counts = {}
        self.add(words)

    def __call__(self, word):
        return self.counts.get(word, 0)

    def add(self, words):
        for word in words:
            self.counts[word] = self(word) + 1
        return self

    def most(self, least):
        return [word for word, count in self.counts.items() if count > least]
"""


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grade: Typed) -> Path:
    """A course of one stage with a class, written with `grade new --class`."""
    monkeypatch.chdir(tmp_path)
    grade("new", "--course", "words", "--title", "Words", "--library", "python")
    root = tmp_path / "words"
    monkeypatch.chdir(root)
    signature = "Counter(words: list)(word: str) -> int"
    grade("new", "counter", "--title", "A counter", "--class", signature)
    assert 'Counter = "object -> number"' in (root / "course.toml").read_text(encoding="utf-8")
    edit(root / "course.toml", 'visible = ["edges"]', "visible = []")
    edit(root / "course.toml", "schema = 1", "schema = 1\naccepted_answers = 0")
    (root / "tests" / "accepted" / "counter" / "another.py").unlink()
    hint = "## {0}. Part {0}\nThink of a small case.\n\n"
    write_files(
        root,
        {
            "solutions/counter.py": SOLUTION,
            "tests/checks/test_counter.py": CHECKS,
            "hints/misconceptions/counter.py": MISTAKE,
            "hints/counter.md": "# A counter\n\n" + "".join(map(hint.format, range(1, 5))),
        },
    )
    grade("stubs", "--force")
    return root


def test_it_is_proven_and_its_mistakes_are_named(stage: Path, say: Say, tmp_path: Path) -> None:
    code, shown, _ = say("verify")
    assert code == 0, shown
    wrong = SOLUTION.replace("count >= least", "least < count")
    write_files(tmp_path / "mine", {"counter.py": wrong})
    mine = ("--submission", str(tmp_path / "mine"))
    code, shown, _ = say("counter", *mine)
    assert code == 1
    assert "You leave out the words at the limit." in shown
    assert "Counter(['a', 'b']).most(2)" in shown
    _, lines, _ = say("repro", *mine, "counter.most")
    assert "torch" not in lines and "made.most(2)" in lines
    write_files(tmp_path / "mine", {"lines.py": lines})
    done = subprocess.run(
        [sys.executable, "lines.py"], cwd=tmp_path / "mine", capture_output=True, text=True
    )
    assert done.stdout == "[]\n"


def test_constant_methods_are_tried(stage: Path, say: Say) -> None:
    checks = stage / "tests" / "checks" / "test_counter.py"
    edit(checks, 'expect_equal(counter.most(2), ["b"], "the words")', "counter.most(2)")
    code, shown, _ = say("verify")
    assert code == 1
    assert "counter.most passes for any answer" in " ".join(shown.split()), shown


@pytest.mark.parametrize(
    "answer, said",
    [
        ("def Counter(words): pass", "Counter(...) made None expected an object: is a `return`"),
        ("def Counter(words): return 3", "made int 3 expected an object: does it say `class Cou"),
        ("class Counter:\n    def __init__(self, words): pass", "'Counter' object is not callable"),
    ],
)
def test_what_makes_no_such_object_is_told(
    stage: Path, say: Say, tmp_path: Path, answer: str, said: str
) -> None:
    write_files(tmp_path / "mine", {"counter.py": answer})
    assert said in " ".join(say("counter", "--submission", str(tmp_path / "mine"))[1].split())
