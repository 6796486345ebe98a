"""Python environments far from a checkout, with wheels and nothing but what these need."""

import importlib.metadata as metadata
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.requirements import Requirement

from grader.classes.folder.course_files import KIT
from tests.kit.support.checkout import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# What the kit needs when it is installed without a course: no torch.
KITS_NEEDS: list[str] = tomllib.loads((KIT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]["dependencies"]


def environment(root: Path, needs: Iterable[str]) -> Path:
    """The site-packages of a new environment with the libraries of this one that are needed.

    They are linked file by file: a worker may read its own environment's site-packages alone.
    """
    venv.create(root, symlinks=os.name != "nt")
    (site,) = root.rglob("site-packages")
    for name in _closure(needs):
        found = metadata.distribution(name)
        for file in found.files or ():
            source, target = Path(str(file.locate())), site / file
            if file.parts[0] != ".." and source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                _link(source, target)
        for command in found.entry_points:
            if command.group == "console_scripts" and os.name != "nt":
                _write_command(python(site), command)
    return site


def install(site: Path, *projects: Path) -> None:
    """Let pip install wheels or folders into an environment, as they are and from no index."""
    install = ["-m", "pip", "--python", str(python(site)), "install", "--quiet", "--no-deps"]
    offline = ["--no-index", "--no-compile", "--no-build-isolation"]
    command = [sys.executable, *install, *offline, *map(str, projects)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PIP_USER": "0"}
    )
    assert done.returncode == 0, done.stderr


def grade(site: Path, folder: Path, *words: str, code: int = 0) -> str:
    """What `grade ...` prints in `folder`."""
    return run(site, folder, "grade", *words, code=code)


def run(site: Path, folder: Path, name: str, *words: str, code: int = 0) -> str:
    """What a command of an environment prints, with nothing around that leads to the checkout."""
    unwanted = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONSTARTUP")
    surroundings = {key: value for key, value in os.environ.items() if key not in unwanted}
    command = python(site).with_name(f"{name}.exe" if os.name == "nt" else name)
    path = os.pathsep.join([str(command.parent), surroundings.get("PATH", "")])
    done = subprocess.run(
        [command, *words],
        cwd=folder,
        env={**surroundings, "PATH": path, "COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert str(ROOT) not in done.stdout + done.stderr
    return done.stdout if code != 2 else done.stderr


def wheel_of(project: Path, folder: Path) -> Path:
    """The wheel that a project's folder builds."""
    build = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    command = [sys.executable, "-c", build]
    done = subprocess.run(command, cwd=project, check=True, capture_output=True, text=True)
    return folder / done.stdout.split()[-1]


def python(site: Path) -> Path:
    """The interpreter of an environment."""
    found = (site.parents[1] / "Scripts/python.exe", site.parents[2] / "bin/python")
    return next(file for file in found if file.exists())


def _closure(needs: Iterable[str]) -> Iterator[str]:
    """The distributions that meet these requirements, directly or not."""
    found: set[str] = set()
    waiting = [(Requirement(line), "") for line in needs]
    while waiting:
        wanted, extra = waiting.pop()
        if wanted.name in found or (wanted.marker and not wanted.marker.evaluate({"extra": extra})):
            continue
        found.add(wanted.name)
        lines = [Requirement(line) for line in metadata.requires(wanted.name) or ()]
        waiting += [(line, each) for line in lines for each in (*wanted.extras, "")]
        yield wanted.name


def _write_command(python: Path, command: metadata.EntryPoint) -> None:
    module, _, name = command.value.partition("[")[0].strip().partition(":")
    file = python.with_name(command.name)
    lines = [f"#!{python}", f"import sys, {module}", f"sys.exit({module}.{name}())", ""]
    file.write_text("\n".join(lines), encoding="utf-8")
    file.chmod(0o755)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileExistsError:  # two distributions may list one file
        pass
    except OSError:  # another disk
        shutil.copy2(source, target)
