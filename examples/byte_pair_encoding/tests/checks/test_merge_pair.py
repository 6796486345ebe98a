"""The hidden checks of merge_pair."""

from __future__ import annotations

import pytest

from grader.checking import Submission, expect_equal

Pair = tuple[int, int]


def reference(ids: list[int], pair: Pair, new_id: int) -> list[int]:
    """By looking back: the last number that was written and this one may be the pair."""
    merged: list[int] = []
    for each in ids:
        if merged and (merged[-1], each) == pair:
            merged[-1] = new_id
        else:
            merged.append(each)
    return merged


def expect_merged(submission: Submission, ids: list[int], pair: Pair, new_id: int = 256) -> None:
    """Expect the reference's list."""
    expected = reference(ids, pair, new_id)
    merged = submission.merge_pair(ids, pair, new_id)
    expect_equal(merged, expected, "the list", same_types=True)


@pytest.mark.points(6, hint=2)
@pytest.mark.parametrize("ids", [[1, 2], [1, 2, 3, 1, 2], [3, 1, 2, 1, 3], [2, 1, 2, 2, 1, 1, 2]])
def test_values(submission: Submission, ids: list[int]) -> None:
    """The pair becomes the new token wherever it stands"""
    expect_merged(submission, ids, (1, 2))


@pytest.mark.points(4, hint=1)
@pytest.mark.parametrize("length", [2, 3, 4, 5])
def test_equal_numbers(submission: Submission, length: int) -> None:
    """Of equal numbers in a row, the first two belong together"""
    expect_merged(submission, [9] + [7] * length + [9], (7, 7))


@pytest.mark.points(4, hint=3)
@pytest.mark.parametrize("ids", [[1, 2, 5], [4, 1, 2, 1], [1, 2, 1]])
def test_the_end(submission: Submission, ids: list[int]) -> None:
    """The last number stays if it is in no pair"""
    expect_merged(submission, ids, (1, 2))


@pytest.mark.points(3, hint=3)
@pytest.mark.parametrize("ids", [[], [1], [2, 1], [1, 3, 2]])
def test_nothing_to_merge(submission: Submission, ids: list[int]) -> None:
    """Without the pair, the list comes back as it was"""
    expect_merged(submission, [*ids, 1, 2], (1, 2))
    expect_merged(submission, ids, (1, 2))


# A list that can be read as any other, and says so if it is to be changed.
KEPT = """
class Kept(list):
    def refuse(self, *args, **kwargs):
        raise TypeError("the list that is given must not be changed")

    append = clear = extend = insert = pop = remove = reverse = sort = refuse
    __delitem__ = __iadd__ = __imul__ = __setitem__ = refuse
"""


@pytest.mark.points(3, hint=2)
@pytest.mark.parametrize("ids", [[1, 2, 3, 1, 2], [3, 3, 1]])
def test_input_kept(submission: Submission, ids: list[int]) -> None:
    """The list that is given is not changed"""
    kept = submission.given(KEPT, "Kept", ids)
    result = submission.merge_pair(kept, (1, 2), 256)
    expect_equal(result, reference(ids, (1, 2), 256), "the list")
