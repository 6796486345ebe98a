"""What the guides in docs/ tell people to type, set and open is there."""

import argparse
import io
import re
import shlex
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.classes.nbgrader.course import configured
from grader.command.main import main, parser_of, with_command
from grader.show.scoreboard import VISIBLE_PASS
from tests.kit.support.checkout import COURSE, ROOT

NAMES = (
    *("instructors.md", "channels.md", "containers.md", "sources.md", "threat-model.md"),
    *("architecture.md", "authoring.md", "first-hour.md", "performance.md", "reference.md"),
)
GUIDES = [ROOT / "docs" / name for name in NAMES]
PAGES = [*GUIDES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
TEXT = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
INSTRUCTORS, CHANNELS = TEXT["instructors.md"], TEXT["channels.md"]
# What else the guides use, to be found on any system.
TOOLS = {"source", "cd", "mkdir", "unzip", "cp", "cat", "git", "python3", ".venv/bin/pip"}
TOOLS |= {"bwrap", "docker"}


def lines(text: str) -> Iterator[list[str]]:
    """The words of each command in a guide's sh blocks, without settings before it."""
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.S | re.M):
        for line in block.splitlines():
            for command in line.split(";"):
                words = shlex.split(command, comments=True)
                while re.match(r"[A-Z_]+=", words[0]):
                    words.pop(0)
                yield words


def spoken(text: str, name: str) -> Iterator[list[str]]:
    """The words of each command `name ...` that stands within a sentence or a table."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    for code in re.findall(rf"`({name} [^`]+)`", prose):
        yield shlex.split(code)


# The commands of authoring.md are one script, run by authoring/new/test_add_a_stage.py.
SCRIPTS = {"authoring.md"}
BLOCKS = [words for name in NAMES if name not in SCRIPTS for words in lines(TEXT[name])]
SPOKEN = {
    name: [words for text in TEXT.values() for words in spoken(text, name)]
    for name in ("grade", "nbgrader")
}


def of(commands: list[list[str]], name: str) -> list[Any]:
    found = [words for words in commands if words[0] == name]
    return [pytest.param(words, id=" ".join(words)) for words in found]


def test_every_command_of_the_guides_is_looked_at() -> None:
    kinds = {words[0] for words in BLOCKS}
    assert {"grade", "nbgrader"} <= kinds
    programs = {kind for kind in kinds if not kind.startswith("/tmp/autograder/")}
    assert programs - {"grade", "nbgrader"} <= TOOLS


# --- ours --------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", of(BLOCKS, "grade"))
def test_a_command_of_ours_is_one(words: list[str]) -> None:
    said = with_command(words[1:])
    parser_of(said).parse_args(said)


def sub_command(words: list[str]) -> argparse.ArgumentParser:
    """The parser of the command that the words name."""
    words = with_command(words)
    parser = parser_of(words)
    for word in words:
        kinds = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        if not kinds or word not in kinds[0].choices:
            break
        parser = kinds[0].choices[word]
    return parser


def test_an_option_of_ours_is_one() -> None:
    spoken = SPOKEN["grade"]
    assert len(spoken) > 100
    for words in spoken:
        known = sub_command(words[1:])._option_string_actions
        assert {word for word in words if word.startswith("-")} <= set(known), words


def test_the_files_are_written_that_the_guides_name(tmp_path: Path) -> None:
    table = re.findall(r"^\| `([^`]+)` \| [^|]*\|$", INSTRUCTORS.split("| file |")[1], re.M)
    target = re.search(r"^grade release nbgrader --course-dir (\S+)$", INSTRUCTORS, re.M)
    assert target is not None and f"`{target[1]}` now has" in INSTRUCTORS
    course = tmp_path / "class"
    assert main(["release", "nbgrader", "--course", str(ROOT), "--course-dir", str(course)]) == 0
    ours = {file.relative_to(course).as_posix() for file in course.rglob("*") if file.is_file()}
    by_nbgrader = {name.replace("source/", "release/") for name in ours if "source/" in name}
    assert set(table) == ours | by_nbgrader | {"gradebook.db"}

    (name,) = (name for name in ours if "source/" in name)
    cells = (course / name).read_text("utf-8")
    for grade_id in re.findall(r"\(grade_id `([^`]+)`\)", INSTRUCTORS):
        assert f'"grade_id": "{grade_id}"' in cells


def test_the_gradescope_zip_has_the_files_that_the_guide_names(tmp_path: Path) -> None:
    out = tmp_path / "autograder.zip"
    assert main(["release", "gradescope", "--course", str(ROOT), "--out", str(out)]) == 0
    with zipfile.ZipFile(io.BytesIO(out.read_bytes())) as archive:
        for name in ("setup.sh", "run_autograder", "constraints.txt"):
            assert name in CHANNELS and name in archive.namelist()


def test_what_students_are_told_is_quoted_rightly() -> None:
    quoted = " ".join(INSTRUCTORS.split())
    assert f'"{VISIBLE_PASS[0].lower()}{VISIBLE_PASS[1:].rstrip(".")}"' in quoted


# --- nbgrader's --------------------------------------------------------------------------------


def app(words: list[str]) -> Any:
    """nbgrader's own program for the command that the words name."""
    apps = pytest.importorskip("nbgrader.apps", reason="nbgrader is not installed")
    found = apps.NbGraderApp()
    for word in words:
        if not found.subcommands:
            break
        assert word in found.subcommands, f"nbgrader has no {word}"
        found = found.subcommands[word][0]()
    return found


@pytest.mark.parametrize("words", of([*BLOCKS, *SPOKEN["nbgrader"]], "nbgrader"))
def test_a_command_of_nbgraders_is_one_and_knows_its_options(words: list[str]) -> None:
    found = app(words[1:])
    known = {f"--{name}" for names in (found.flags, found.aliases) for name in flat(names)}
    assert {word.partition("=")[0] for word in words if word.startswith("-")} <= known


def flat(names: Any) -> Iterator[str]:
    """Names of options; one option may have several."""
    for name in names:
        yield from (name,) if isinstance(name, str) else name


def settings(text: str) -> set[tuple[str, str]]:
    return set(re.findall(r"(?:\bc\.|--)([A-Z]\w+)\.(\w+)", text))


@pytest.mark.parametrize("name", ["instructors.md", "what grade release nbgrader writes"])
def test_a_setting_is_one_of_nbgraders(name: str) -> None:
    apps = pytest.importorskip("nbgrader.apps", reason="nbgrader is not installed")
    both = [configured("", COURSE, kernel=kernel) for kernel in (False, True)]
    named = settings(TEXT.get(name) or "\n".join(both))
    assert len(named) >= 4
    exchange = pytest.importorskip("nbgrader.exchange.default")  # which nbgrader's list leaves out
    ours = pytest.importorskip("grader.nbgrader").AnyNotebook
    classes = [*apps.NbGraderApp().all_configurable_classes(), exchange.Exchange, ours]
    known = {(kind.__name__, trait) for kind in classes for trait in kind.class_traits(config=True)}
    assert named <= known


def test_the_guide_knows_the_id_of_the_course_and_the_columns_of_a_student() -> None:
    api = pytest.importorskip("nbgrader.api", reason="nbgrader is not installed")
    assert f"c.CourseDirectory.course_id = '{COURSE.name}'" in INSTRUCTORS
    (columns,) = re.findall(r"\(columns ([\w,\s]+)\)", INSTRUCTORS)
    known = {column.name for column in api.Student.__table__.columns}
    assert set(re.split(r",\s+", columns)) <= known


def test_the_install_line_installs_nbgrader() -> None:
    assert '-e ".[instructor]"' in INSTRUCTORS
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (needed,) = re.findall(r"^instructor = \[(.*)\]$", project, re.M)
    assert "nbgrader" in needed


# --- links -------------------------------------------------------------------------------------


def anchors(text: str) -> set[str]:
    """The names that headings have in a page."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_of_ours_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", TEXT[page.name]):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(file.read_text(encoding="utf-8")), f"{page.name}: {target}"


def test_the_readme_leads_to_every_guide() -> None:
    guides = {guide.name for guide in (ROOT / "docs").glob("*.md")}
    assert guides == {g.name for g in GUIDES} | {"threat-model.md"}
    for name in guides:
        assert f"(docs/{name})" in TEXT["README.md"]


def test_every_test_that_the_threat_model_names_is_there() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", text)
    assert len(named) > 30
    for file, name in named:
        source = (ROOT / "tests" / "kit" / file).read_text(encoding="utf-8")
        assert f"\ndef {name}(" in source, (file, name)
    rows = re.findall(r"`(\w+/[\w/]+\.py)\[", text)
    assert {*rows} == {"attacks/test_attacks.py"}  # which holds that each row is there
    for file in re.findall(r"`(grader/[\w/]+\.py)`", text):
        assert (ROOT / file).is_file(), file
