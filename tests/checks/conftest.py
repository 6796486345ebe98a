"""Runs the checks as ordinary pytest tests on trusted code, in this process.

    python -m pytest tests/checks --submission solutions

For authors who debug a check, and for the benchmark. The grader itself never reads this file: it
has the same fixtures, with the submission in a process of its own.
"""

from __future__ import annotations

import importlib
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from grader.checking import draw
from grader.read.course_file import read_course
from grader.run.collecting import MARKERS
from grader.run.local_answers import LocalAnswers
from grader.run.remote import RemoteSubmission
from grader.run.under_check import StageUnderCheck
from grader.run.worker.probes import held_shapes, made, meter


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--submission", default="solutions", help="a folder with one file per stage")


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    sys.path.insert(0, str(Path(config.getoption("--submission")).resolve()))


@pytest.fixture(scope="session")
def submission() -> SimpleNamespace:
    found: dict[str, Any] = {}
    tests: dict[str, StageUnderCheck] = {}
    for stage in read_course(Path(__file__).parents[2] / "course.toml").stages:
        module = importlib.import_module(stage.slug)
        if stage.fixture:
            answers = LocalAnswers(lambda name, module=module: module)
            tests[stage.fixture] = StageUnderCheck(stage, answers)
            continue
        found.update({entry.name: getattr(module, entry.name) for entry in stage.entry_points})
    return SimpleNamespace(
        **found,
        given=lambda source, name, *args, **kwargs: made(source, name, args, kwargs),
        measured=meter,
        held_by=held_shapes,
        tried=lambda fixture, *given: RemoteSubmission(tests[fixture]).tried(fixture, *given),
    )


@pytest.fixture
def device() -> torch.device:
    return torch.device("cpu")


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    return zlib.crc32(request.node.nodeid.encode())


@pytest.fixture
def rand(seed: int, device: torch.device) -> Callable[..., Any]:
    generator = torch.Generator().manual_seed(seed)

    def rand(
        *, dtype: torch.dtype = torch.float32, grad: bool = False, scale: float = 1.0, **axes: int
    ) -> torch.Tensor:
        return draw(generator, device, dtype, grad, scale, **axes)

    return rand
