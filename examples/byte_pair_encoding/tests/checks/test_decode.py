"""The hidden checks of decode."""

from __future__ import annotations

import random

import pytest

from grader.checking import Submission, expect_equal, expect_raises

Pair = tuple[int, int]
MERGES = [(97, 98), (256, 256), (99, 257), (195, 169), (226, 130)]  # ab, abab, cabab, é, part of €


def data_of(token: int, merges: list[Pair]) -> bytes:
    """The bytes of a token, from its parts down."""
    if token < 256:
        return bytes([token])
    left, right = merges[token - 256]
    return data_of(left, merges) + data_of(right, merges)


def expect_decoded(submission: Submission, ids: list[int], merges: list[Pair]) -> None:
    """Expect the reference's text."""
    expected = b"".join(data_of(token, merges) for token in ids).decode("utf-8", "replace")
    expect_equal(submission.decode(ids, merges), expected, "the text")


@pytest.mark.points(6, hint=1)
@pytest.mark.parametrize("ids", [[256], [257, 99], [258, 100, 256], [104, 0, 105]])
def test_small_text(submission: Submission, ids: list[int]) -> None:
    """A token stands for the bytes of its two parts"""
    expect_decoded(submission, ids, MERGES)


@pytest.mark.points(5, hint=3)
@pytest.mark.parametrize("ids", [[195, 169], [259, 33], [260, 172], [226, 130, 172], [240, 159]])
def test_characters_of_several_tokens(submission: Submission, ids: list[int]) -> None:
    """The bytes of a character may be spread over tokens"""
    expect_decoded(submission, ids, MERGES)


@pytest.mark.points(3, hint=3)
@pytest.mark.parametrize("ids", [[169], [97, 195], [260, 97], [255, 254, 98]])
def test_no_text(submission: Submission, ids: list[int]) -> None:
    """Bytes that are no UTF-8 are replaced"""
    expect_decoded(submission, ids, MERGES)


@pytest.mark.points(3, hint=4)
@pytest.mark.parametrize("token", [-1, -256, 261, 1000])
def test_unknown_token(submission: Submission, token: int) -> None:
    """A token that does not exist is a ValueError"""
    expect_decoded(submission, [97, 260, 172], MERGES)
    with expect_raises(ValueError, f"There is no token {token} after {len(MERGES)} merges"):
        submission.decode([97, token], MERGES)


@pytest.mark.points(3, hint=2)
@pytest.mark.parametrize("length", [0, 1, 30, pytest.param(50, marks=pytest.mark.random)])
def test_any_tokens(submission: Submission, seed: int, length: int) -> None:
    """Any list of tokens has a text, an empty one too"""
    draw = random.Random(seed)
    expect_decoded(submission, [97], [])
    ids = [draw.choice([97, 98, 195, 169, 256, 257, 258, 259, 260, 172]) for _ in range(length)]
    expect_decoded(submission, ids, MERGES)
