"""Outputs and attachments are left out wherever the pieces end in which a notebook is read."""

import json

import pytest

from grader.read import outputs
from grader.read.outputs import TooMuchError, without_outputs

ODD = ["]", "[", "{", '"', "\\", '\\"', '"outputs": [', "a\nb", "\x1b[0m", "é"]
DATA = {
    "cells": [
        {"source": ODD, "outputs": [{"text": ODD, "outputs": ODD}, [[]], {}], "id": "outputs"},
        {"outputs": {"a": ODD}, "source": '"outputs":[1]', "last": {"outputs": []}},
        {"outputs": "outputs", "source": [["outputs", [1]]], "metadata": {}},
        {"attachments": {"a.png": {"image/png": "\\"}}, "source": '"attachments":{}'},
    ]
}
LEFT = {
    "cells": [
        {"source": ODD, "outputs": [], "id": "outputs"},
        {"outputs": {}, "source": '"outputs":[1]', "last": {"outputs": []}},
        {"outputs": "outputs", "source": [["outputs", [1]]], "metadata": {}},
        {"attachments": {}, "source": '"attachments":{}'},
    ]
}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
def test_what_is_left_is_everything_but_outputs_and_attachments(
    indent: int | None, size: int
) -> None:
    data = json.dumps(DATA, indent=indent).encode()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert json.loads(without_outputs(pieces, len(data))) == LEFT


def test_what_has_no_outputs_stays_as_it_is() -> None:
    for data in (b"", b"\\", b'"a', b"]]]", b'{"outputs"', json.dumps(LEFT).encode()):
        assert without_outputs([data], 1000) == data


def test_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TooMuchError):
        without_outputs([b"x" * 10, b"x"], 10)
    monkeypatch.setattr(outputs, "_SIGNS_CAP", 100)
    with pytest.raises(TooMuchError):
        without_outputs([b'{"outputs": [' + b"[" * 100], 10_000)
