"""The phrases that readers stumbled over stay out of everything that a person reads."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.support.checkout import ROOT

# What must not be written, and what to write. CONTRIBUTING.md explains the words.
BETTER = {
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\banew\b": "again, or a verb with re-",
    r"\bre-run": "rerun",
    r"\bso many at a time\b": "at once",
    r"\bprocessor cores?\b": "CPU core",
    r"\bfor want of\b": "because there is no ...",
    r"\bof which it is known\b": "a sentence of its own",
    r"\bis no exception\b": "works for ... too",
    r"\bnobody is graded\b": "grading stopped: ...",
    r"\bin training mode neither\b": "not even in training mode",
    r"\bthe bundle\b": "the student's copy",
    r"\bhand-ins?\b|\bwhat is handed in\b": "the submission",
    r"\bspeaks to (it|the|this|your)\b": "is about",
    r"\bwrit(e|es|ten) over\b": "overwrite, replace",
    r"\bas it was at first\b": "the original stub, unchanged",
    r"\bwhat is said of\b": "a message about",
    r"\b(is|are) told of\b": "reports, is reported",
    r"\b(come|comes|came|coming) to (an|no|its|their) end\b": "end, finish, time out",
    r"\b(have|has|had) done with\b": "close, end",
    r"\bnobody asks\b": "by default",
    r"\b(hand|hands|handed|handing) ((it|them|the \w+|\w+) )?on to\b": "pass on to",
    r"\bwithout a word\b": "silently",
    r"\balone (is|are) looked at\b|\blooked at alone\b": "only ... is checked",
    r"\b(is|are) no mistakes?\b": "is not a mistake",
    r"\bfor what is asked is\b": "because only ... matters",
    r"\bin all other respects\b": "everything else",
    r"\bwhomever\b": "a sentence that names who acts",
    r"\b(hold|held) (\w+ )*against\b": "compare with",
    r"\buntouched stub\b": "original stub, unchanged stub",
    r"\bof which (there|it) (is|are)\b": "a sentence of its own",
    r"\bpoints all the same\b": "still gets its points",
    r"\bwritten so\b(?! far)": "written this way",
    r"\bgives? what (its|their|the) \w+( \w+)? gives?\b": "gives the same result as",
    r"\bso wished\b": "a sentence that says when",
}
ANY = re.compile("|".join(BETTER), re.IGNORECASE)
KINDS = (".py", ".md", ".txt", ".html", ".css", ".js", ".sh", ".yml", ".toml")
FOLDERS = ("examples", "grader", "docs", "hints")
# The words are those of a list of what not to write.
LIST = "| not |"


def readable() -> list[Path]:
    """The files that people read, without other people's code and novels."""
    below = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    files = [path for path in below if path.suffix in KINDS and "__pycache__" not in path.parts]
    files = [path for path in files if path.parent.name != "finale" or path.suffix != ".txt"]
    return sorted([*files, ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


def worse(file: Path) -> Iterator[str]:
    """Where a file uses such a phrase, and what to write."""
    text = file.read_text(encoding="utf-8").partition(LIST)[0]
    place = file.relative_to(ROOT).as_posix()
    some = BETTER if ANY.search(text) else {}
    for phrase, better in some.items():
        for match in re.finditer(phrase, text, re.IGNORECASE):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{place}:{line}: {match[0]!r}: write {better!r}"


def test_no_file_uses_a_phrase_that_has_a_better_one() -> None:
    files = readable()
    assert len(files) > 100
    found = [each for file in files for each in worse(file)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("phrase", ["mended", "Anew", "so many at a time", "processor cores"])
def test_the_phrases_are_found(phrase: str) -> None:
    assert any(re.search(each, phrase, re.IGNORECASE) for each in BETTER)
