"""The filter's program answers each number as the tables say; test_lock.py tries it for real."""

import errno
import struct

import pytest

from grader.run.worker import seccomp


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("gpu", [False, True])
def test_program(machine: str, gpu: bool) -> None:
    """For every number the program's answer is that of the tables, here for both machines."""
    program = seccomp.Filter.compiled(machine, gpu=gpu)
    assert program is not None
    column, architecture = seccomp._MACHINES[machine]
    allowed = {n for _, n in seccomp._numbers(seccomp._ALLOWED, column)}
    refused = {n for _, n in seccomp._numbers(seccomp._REFUSED, column)}
    checked = {n for _, n in seccomp._numbers(seccomp._CHECKED, column)}
    assert len(allowed | refused | checked) == len(allowed) + len(refused) + len(checked)
    cuda = {n for _, n in seccomp._numbers(seccomp._FOR_CUDA, column)} if gpu else set()
    if gpu:
        refused -= {n for _, n in seccomp._numbers(seccomp._CHECKED_FOR_CUDA, column)}
        checked |= {n for _, n in seccomp._numbers(seccomp._CHECKED_FOR_CUDA, column)}
    for number in [*range(700), 0x40000000, 0x40000001, 0xFFFFFFFF]:
        answer = run_filter(program.code.raw, number, architecture)
        if number in allowed | cuda:
            assert answer == 0x7FFF0000, number
        elif number in refused:
            assert answer == 0x50000 | errno.EPERM, number
        elif number not in checked:
            assert answer == 0x50000 | errno.ENOSYS, number
    assert run_filter(program.code.raw, 0, 0x40000003) == 0x80000000


def test_unknown_machine() -> None:
    """No filter for a machine whose numbers are not known."""
    assert seccomp.Filter.compiled("riscv64", gpu=False) is None


def run_filter(code: bytes, number: int, architecture: int) -> int:
    """Run a classic BPF program as the kernel would, with all-zero arguments."""
    data = struct.pack("=II", number, architecture) + bytes(56)
    at = accumulator = 0
    while True:
        operation, true, false, operand = struct.unpack_from("=HBBI", code, at * 8)
        at += 1
        if operation == 0x06:
            return int(operand)
        if operation == 0x20:
            accumulator = struct.unpack_from("=I", data, operand)[0]
        elif operation == 0x54:
            accumulator &= operand
        elif operation == 0x05:
            at += operand
        else:
            holds = {0x15: accumulator == operand, 0x35: accumulator >= operand}.get(
                operation, bool(accumulator & operand)
            )
            at += true if holds else false
