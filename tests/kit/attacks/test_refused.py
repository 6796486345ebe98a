"""What cannot be graded is a report with no points and the reason, in every channel."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from grader.command.main import main
from grader.run.solutions import solution_files
from grader.run.worker.scratch import remove_tree
from tests.kit.classes.folder_class import grade_class, results_of
from tests.kit.support.checkout import TINY
from tests.kit.support.files import a_socket, notebook, write_files
from tests.kit.support.tiny import Capture

RIGHT = solution_files(TINY)
FIRST, SECOND = (stage.file_name for stage in TINY.stages[:2])
CELLS = [data.decode() for data in RIGHT.values()]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no links and pipes")


def file(data: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(data) and None


def folder(change: Callable[[Path], object]) -> Callable[[Path], None]:
    """A folder of right answers with a change."""

    def make(path: Path) -> None:
        change(write_files(path, RIGHT))

    return make


def linked(path: Path) -> None:
    target = path.with_name(f".right{path.suffix}")
    target.write_bytes(notebook(*CELLS).encode() if path.suffix == ".ipynb" else RIGHT[FIRST])
    path.symlink_to(target)


def linked_folder(path: Path) -> None:
    """A link to somebody else's right answers, as a repository may hold one."""
    path.symlink_to(write_files(path.with_name(".neighbour"), RIGHT))


def unreadable(path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    path.chmod(0)


@dataclass(frozen=True)
class Refused:
    """What is handed in as `name`, and what is said of it."""

    name: str
    make: Callable[[Path], None]
    said: str


REFUSED = {
    "many files": Refused(
        "many", folder(lambda p: [(p / f"n{i}.py").touch() for i in range(300)]), "200 .py files"
    ),
    "many folders": Refused(
        "wide", folder(lambda p: [(p / f"n{i}").mkdir() for i in range(300)]), "too many folders"
    ),
    "deep folders": Refused(
        "deep", folder(lambda p: os.makedirs(p / "/".join("d" * 20))), "too many folders"
    ),
    "a large file": Refused("large", folder(lambda p: os.truncate(p / FIRST, 2 << 20)), "1 MiB"),
    "large files": Refused(
        "sum",
        folder(lambda p: [(p / f"n{i}.py").write_bytes(b"#" * (1 << 20)) for i in range(9)]),
        "8 MiB",
    ),
    "a folder that nobody may read": Refused("closed", folder(unreadable), "cannot be read"),
    "a file that nobody may read": Refused(
        "shut", folder(lambda p: unreadable(p / FIRST)), "cannot be read"
    ),
    "a large script": Refused("huge.py", file(b"#" * (2 << 20)), "1 MiB"),
    "a link to a script": Refused("linked.py", linked, "is a link"),
    "a link to a notebook": Refused("link.ipynb", linked, "is a link"),
    "a link to a folder": Refused("exercises", linked_folder, "is a link"),
    "a link to itself": Refused("loop.py", lambda p: p.symlink_to(p.name), "is a link"),
    "a link to nothing": Refused("lost.ipynb", lambda p: p.symlink_to("absent"), "is a link"),
    "a pipe": Refused("pipe.ipynb", os.mkfifo, "regular file"),
    "a socket": Refused("socket.ipynb", a_socket, "regular file"),
    "an empty notebook": Refused("empty.ipynb", file(b""), "is empty"),
    "half a notebook": Refused(
        "half.ipynb", file(notebook(*CELLS).encode()[:300]), "its end is missing"
    ),
    "a web page": Refused("page.ipynb", file(b"<!DOCTYPE html><p>"), "a web page"),
    "an archive": Refused("zip.ipynb", file(b"PK\x03\x04 and so on"), "a zip file"),
    "NUL bytes": Refused("nul.ipynb", file(b"\0" * 1000), "is empty"),
    "brackets without end": Refused("brackets.ipynb", file(b"[" * 100_000), "is not a notebook"),
    "a table": Refused("table.ipynb", file(b"{}"), "no list of cells"),
    "pieces without end": Refused("bits.ipynb", file(b"[" * 2_000_001), "is not a normal notebook"),
    "many cells": Refused("cells.ipynb", file(notebook(*["1"] * 10_001).encode()), "10000 cells"),
    "much code": Refused("code.ipynb", file(notebook("#" * (2 << 20)).encode()), "1 MiB of code"),
}
# Of these there is only a file or nothing at all, and nobody could mean them.
WRONG_COMMANDS = ["absent", "absent.ipynb", "notes.txt", "notes.txt/it.ipynb", "/dev/zero"]


def handed_in(name: str, place: Path) -> Path:
    path = place / REFUSED[name].name
    REFUSED[name].make(path)
    return path


def grade(path: Path, *words: str) -> int:
    return main(["grade", "--course", str(TINY.root), "--submission", str(path), *words])


def expect_refusal(report: Mapping[str, Any], said: str) -> None:
    """No points of all there are, and in every stage a check that failed and says why."""
    assert report["schema"] == 1 and report["course"] == TINY.name
    assert (report["score"], report["max_score"], report["bonus"]) == (0, 10, 0)
    for stage in report["stages"]:
        (check,) = stage["checks"]
        assert (stage["status"], stage["score"], check["score"]) == ("failed", 0, 0)
        assert stage["max_score"] == check["max_score"] > 0 and check["outcome"] == "failed"
        assert said in check["message"]


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_a_report_as_json_as_text_and_as_junit(
    tmp_path: Path, name: str, capsys: Capture
) -> None:
    path, said = handed_in(name, tmp_path), REFUSED[name].said
    assert grade(path, "--json", "--junit", str(tmp_path / "it.xml")) == 1
    shown = capsys.readouterr()
    assert shown.err == ""
    report = json.loads(shown.out)
    expect_refusal(report, said)
    assert [stage["slug"] for stage in report["stages"]] == [stage.slug for stage in TINY.stages]
    suites = ElementTree.parse(tmp_path / "it.xml").getroot()
    assert (suites.get("failures"), suites.get("errors")) == (str(len(TINY.stages)), "0")
    for words in ((), ("--plain",), ("--all",)):
        assert grade(path, *words) == 1
        shown = capsys.readouterr()
        assert shown.err == "" and "Nothing was graded" in shown.out
        assert said in " ".join(shown.out.split())
    assert grade(path, "--json", FIRST.removesuffix(".py")) == 1
    assert len(json.loads(capsys.readouterr().out)["stages"]) == 1


@pytest.mark.parametrize("name", WRONG_COMMANDS)
def test_a_path_to_no_submission_is_a_wrong_command(
    tmp_path: Path, name: str, capsys: Capture
) -> None:
    (tmp_path / "notes.txt").write_text("no code")
    assert grade(tmp_path / name, "--json") == 2
    shown = capsys.readouterr()
    assert shown.out == "" and len(shown.err.splitlines()) == 1


def test_in_a_class_it_is_a_report_beside_those_of_the_others(
    tmp_path: Path, capsys: Capture
) -> None:
    place, out = tmp_path / "class", tmp_path / "results"
    place.mkdir()
    folder(lambda path: None)(place / "honest")
    reasons = {}
    for name, refused in REFUSED.items():
        if name in ("a pipe", "a socket") or (os.geteuid() == 0 and "nobody may read" in name):
            continue  # the first two are nobody's
        handed_in(name, place)
        reasons[Path(refused.name).stem] = refused.said
    assert grade_class(TINY.root, out, place, "--junit", "--jobs", "1") == 0
    found = {student: line["report"] for student, line in results_of(out).items()}
    assert found.pop("honest")["score"] == 10
    assert found.keys() == reasons.keys()
    for student, said in reasons.items():
        assert found[student]["max_score"] == sum(s.points for s in TINY.assignments[0].stages)
        expect_refusal(found[student], said)
        assert str(tmp_path) not in json.dumps(found[student])
    assert len(list((out / "junit").iterdir())) == len(found) + 1
    assert "nothing to grade" in (out / "scores.csv").read_text("utf-8")
    told = " ".join(capsys.readouterr().out.split())
    assert "its end is missing" in told and "is a link" in told
    remove_tree(str(place))
