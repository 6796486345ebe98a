"""The rooms of grader/: imports point one way along them, and none knows what is taught."""

import re
from pathlib import Path

from tests.kit.support.checkout import COURSE, ROOT
from tests.kit.test_architecture import FILES, imports_of

# A module may import from its own room and those before it: first the core, then the wings.
ROOMS = (
    *("types", "misconceptions", "tracing", "checking"),
    *("read", "run", "judge", "diagnosis", "show", "engine", "command"),
    *("learning", "classes", "channels", "authoring"),
    *("nbgrader", "notebook", "__main__"),
)


def room(module: str) -> str:
    return module.split(".")[1]


def backwards(file: Path) -> list[str]:
    """What a module imports from rooms behind its own."""
    here = file.relative_to(ROOT).with_suffix("").parts
    before = ROOMS[: ROOMS.index(here[1]) + 1]
    return [
        name
        for name in imports_of(file)
        if name.startswith("grader.") and name != "grader.__version__" and room(name) not in before
    ]


def test_imports_point_one_way() -> None:
    files = [file for file in FILES if file != ROOT / "grader" / "__init__.py"]
    assert len(files) > 100
    assert {file: wrong for file in files if (wrong := backwards(file))} == {}


# What the judge may use: data, text and no more. So its tests need no interpreter and no torch.
PURE = {
    *("grader.types", "grader.judge", "grader.run.facts", "grader.run.sources"),
    *("__future__", "collections", "dataclasses", "re", "typing"),
}


def test_the_judge_is_pure() -> None:
    def is_pure(name: str) -> bool:
        return any(name == pure or name.startswith(f"{pure}.") for pure in PURE)

    files = [file for file in FILES if file.parent.name == "judge"]
    assert len(files) > 2
    assert [(file, name) for file in files for name in imports_of(file) if not is_pure(name)] == []


# --- the picture of them ---------------------------------------------------------------------

PICTURE = re.compile(r"^```mermaid\ngraph TD\n(.*?)^```$", re.S | re.M)


def drawn() -> tuple[set[str], set[tuple[str, str]]]:
    """The rooms and arrows of the diagram: lines `a --> b & c`, or a room alone."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    [picture] = PICTURE.findall(page)
    rooms: set[str] = set()
    arrows: set[tuple[str, str]] = set()
    for line in picture.splitlines():
        start, *ends = [name.strip() for name in re.split("-->|&", line)]
        rooms |= {start, *ends}
        arrows |= {(start, end) for end in ends}
    return rooms, arrows


def place(module: str) -> str:
    """The room of a module as the picture has it: what a worker is sent is one of its own."""
    return "worker" if module.split(".")[2:3] == ["worker"] else room(module)


def imports() -> tuple[set[str], set[tuple[str, str]]]:
    """The rooms that there are, and which imports which."""
    rooms: set[str] = set()
    arrows: set[tuple[str, str]] = set()
    for file in FILES:
        if file == ROOT / "grader" / "__init__.py":
            continue
        here = place(".".join(file.relative_to(ROOT).with_suffix("").parts))
        rooms.add(here)
        for name in imports_of(file):
            if name.startswith("grader.") and name != "grader.__version__" and place(name) != here:
                arrows.add((here, place(name)))
    return rooms, arrows


def reached(arrows: set[tuple[str, str]], start: str) -> set[str]:
    """Where the arrows lead from a room, directly or not."""
    found: set[str] = set()
    while new := {end for at, end in arrows if at in {start, *found}} - found:
        found |= new
    return found


def test_the_picture_has_every_room() -> None:
    assert drawn()[0] == imports()[0]


def test_the_picture_has_every_arrow_and_none_that_others_make_up_for() -> None:
    _, real = imports()
    needed = {(at, end) for at, end in real if end not in reached(real - {(at, end)}, at)}
    assert drawn()[1] == needed


def test_the_engine_does_not_know_what_is_taught() -> None:
    slugs = {stage.slug for stage in COURSE.stages}
    functions = {entry.name for stage in COURSE.stages for entry in stage.entry_points}
    taught = re.compile(rf"\b({'|'.join(slugs - {'softmax'} | functions)}|attention)\b")
    for file in FILES:
        assert taught.search(file.read_text(encoding="utf-8")) is None, file
