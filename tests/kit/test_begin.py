"""The ways to begin without typing the README's commands install what these do."""

import json
import re

from grader.classes.folder.course_files import read_constraints
from tests.kit.support.checkout import COURSE, ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_dev_container_runs_the_commands_of_the_readme() -> None:
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
    commands = json.loads(text)["postCreateCommand"].split(" && ")
    assert commands[0] == "python3 -m venv .venv"
    assert commands[1] in README
    assert commands[2].replace("'.[notebook]'", ".") in README


def test_binder_takes_the_pinned_packages_and_the_cpu_build_that_the_readme_names() -> None:
    lines = (ROOT / ".binder" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    index = next(line.split()[1] for line in lines if line.startswith("--extra-index-url"))
    assert f"--index-url {index}" in README
    (constraints,) = [line.split()[1] for line in lines if line.startswith("-c ")]
    pins = read_constraints(COURSE).decode()
    assert (ROOT / ".binder" / constraints).resolve() == ROOT / "constraints.txt"
    torch = re.search(r"^torch==\S+$", pins, re.MULTILINE)
    assert torch is not None and torch[0] in README
