"""What only a machine with an NVIDIA GPU can show, typed by somebody who has one."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kit.support.checkout import COURSE, ROOT
from tests.kit.wrong_answers import wrong_answers

HAS_GPU = os.path.exists("/dev/nvidiactl")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU on this machine"),
]


def report(submission: Path, *stages: str, device: str = "cuda") -> Any:
    words = [*stages, "--submission", str(submission), "--device", device, "--json"]
    env = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    command = [sys.executable, "-m", "grader", "grade", *words]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def checks_on_both(submission: Path, stage: str) -> list[dict[str, Any]]:
    """The checks of a stage by their ids, on a GPU and on the CPU."""
    found = [report(submission, stage, device=device)["stages"][0] for device in ("cuda", "cpu")]
    return [{check["id"]: check for check in stage["checks"]} for stage in found]


@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_the_solutions_get_everything_and_no_check_is_skipped(device: str) -> None:
    found = report(COURSE.root / "solutions", device=device)
    assert found["device"] == "cuda"
    assert all(stage["score"] == stage["max_score"] for stage in found["stages"])
    outcomes = {check["outcome"] for stage in found["stages"] for check in stage["checks"]}
    assert outcomes == {"passed"}


def test_a_tensor_left_on_the_cpu_is_told_in_plain_words(tmp_path: Path) -> None:
    for file in (COURSE.root / "solutions").glob("*.py"):
        text = file.read_text(encoding="utf-8").replace(", device=valid_lens.device", "")
        (tmp_path / file.name).write_text(text, encoding="utf-8")
    [stage] = report(tmp_path, "masking")["stages"]
    assert stage["status"] == "failed"
    said = " ".join(check["message"] for check in stage["checks"])
    assert "some of these tensors are on the CPU and some on the GPU" in " ".join(said.split())
    [stage] = report(tmp_path, "masking", device="cpu")["stages"]
    assert stage["status"] == "passed"


def test_an_expanded_input_stays_expanded_on_the_gpu(tmp_path: Path) -> None:
    for file in (COURSE.root / "solutions").glob("*.py"):
        shutil.copy(file, tmp_path)
    needs_contiguous = (
        "def split_heads(x, num_heads):\n"
        "    batch, tokens, d_model = x.shape\n"
        "    rows = x.view(batch * tokens, num_heads, -1)\n"
        "    return rows.unflatten(0, (batch, tokens)).transpose(1, 2)\n"
    )
    (tmp_path / "split_heads.py").write_text(needs_contiguous, encoding="utf-8")
    on_gpu, on_cpu = (
        {id: check["outcome"] for id, check in checks.items()}
        for checks in checks_on_both(tmp_path, "split_heads")
    )
    assert "failed" in on_cpu.values()
    assert on_gpu == on_cpu


def test_a_mistake_is_named_though_another_known_one_has_an_index_that_is_too_large(
    tmp_path: Path,
) -> None:
    [wrong] = [each for each in wrong_answers("grouped_query") if each.name == "weights_averaged"]
    (tmp_path / "grouped_query.py").write_text(wrong.source, encoding="utf-8")
    on_gpu, on_cpu = (
        {id: check["diagnosis"] for id, check in checks.items() if check["outcome"] == "failed"}
        for checks in checks_on_both(tmp_path, "grouped_query")
    )
    assert on_cpu["grouped_query.shapes"]["id"] == "gqa_weights_averaged"
    assert {id: on_gpu.get(id) for id in on_cpu} == on_cpu


def test_an_index_that_is_too_large_is_told_and_costs_no_other_check(tmp_path: Path) -> None:
    ones_head = "    if num_heads == 1:\n        x = x[:, torch.arange(x.shape[1]) + 1]\n"
    source = (COURSE.root / "solutions/split_heads.py").read_text(encoding="utf-8")
    begin = "    ### BEGIN SOLUTION\n"
    (tmp_path / "split_heads.py").write_text(
        source.replace(begin, begin + ones_head), encoding="utf-8"
    )
    on_gpu, on_cpu = checks_on_both(tmp_path, "split_heads")
    failed = {id for id, check in on_cpu.items() if check["outcome"] == "failed"}
    assert 0 < len(failed) < len(on_cpu)
    assert failed == {id for id, check in on_gpu.items() if check["outcome"] == "failed"}
    assert any("an index is too large" in on_gpu[id]["message"] for id in failed)
