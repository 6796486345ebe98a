"""What pip needs to install a course: its project file, and the kit's own project beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from grader import __version__
from grader.classes.folder.course_files import KIT, read_engine_files
from grader.read.workspace import COURSES
from grader.run.workers import DISTRIBUTION
from grader.types.course import Course
from grader.types.resources import filled

_CPU_BUILDS = "https://download.pytorch.org/whl/cpu"
# Only authors and instructors need these, and what a copy without solutions and points cannot do.
_WITHHELD = (
    *("grader/authoring/", "grader/channels/", "grader/classes/", "grader/diagnosis/comparison/"),
    *("grader/kit/", "grader/learning/certificate/", "grader/nbgrader.py"),
)


def course_project(course: Course, folders: Iterable[str], readme: str = "") -> str:
    """The pyproject.toml that installs course.toml and these folders of a course.

    It does not hold the kit, but needs it. The course's libraries are its `requirements`.
    """
    needed = [f"{DISTRIBUTION}>={__version__}", *course.requirements]
    licenses = [file.name for file in license_files(course)]
    about = {
        "name": course.package,
        "version": course.version or "0",
        "description": course.title,
        "readme": readme,
        "license": course.license,
        "license-files": licenses,
        "authors": [{"name": name} for name in course.authors],
    }
    folder = package_folder(course)
    return filled(
        __package__,
        "templates/course_project.toml",
        about="\n".join(f"{key} = {_toml(value)}" for key, value in about.items() if value),
        needed="".join(f"    {_toml(line)},\n" for line in needed),
        notebook=_toml(f"{DISTRIBUTION}[notebook]"),
        files=_toml(["course.toml", *folders, *licenses]),
        folder=_toml(f"{COURSES}/{folder}"),
    )


def package_folder(course: Course) -> str:
    """The name of an installed course's folder, with which that of its .dist-info begins too."""
    return re.sub(r"[-_.]+", "_", course.package).lower()


def library(requirement: str) -> str:
    """The name of the package in a requirement such as "torch>=2.9"."""
    return re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0].lower()


def install_torch(course: Course, constraints: bytes) -> str:
    """The command for torch's CPU build in its version of `constraints`; "" without torch."""
    if "torch" not in map(library, course.requirements):
        return ""
    found = re.search(rb"^torch==[^\s;]+", constraints, re.MULTILINE)
    package = found[0].decode() if found else "torch"
    return f'pip install "{package}" --index-url {_CPU_BUILDS}'


def license_files(course: Course) -> list[Path]:
    """The files in the course's folder that hold its license."""
    return sorted(file for file in course.root.glob("LICENSE*") if file.is_file())


def kit_project(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The folder kit/, which pip can install, with these files of the engine, grader/..."""
    own = {name: (KIT / name).read_bytes() for name in ("pyproject.toml", "LICENSE")}
    return {f"kit/{name}": data for name, data in {**own, **files}.items()}


def learners_files() -> dict[str, bytes]:
    """The engine's files that a student's copy has: the core, diagnosis and the learning wing."""
    return {name: data for name, data in read_engine_files() if not name.startswith(_WITHHELD)}


def _toml(value: object) -> str:
    """Text, a list of texts or of tables with one text each, as TOML, which is close to JSON."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)
