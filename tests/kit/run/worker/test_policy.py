"""What a worker may read is what Python needs, and nothing else."""

import os
import sys
from pathlib import Path

import pytest

from grader.run.worker import policy


def test_python_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard library and site-packages; not a project's folder that is on sys.path."""
    packages = tmp_path / "site-packages"
    packages.mkdir()
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path, str(packages)])
    paths = policy.python_environment()
    assert str(packages.resolve()) in paths
    assert str(tmp_path.resolve()) not in paths
    assert any(os.path.realpath(os.__file__).startswith(path + "/") for path in paths)
    assert not {"/", "/etc", "/etc/passwd"} & set(paths)
