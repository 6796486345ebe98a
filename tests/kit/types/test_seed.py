"""Seeds are named in a few words, however many a class has."""

import pytest

from grader.types.seed import seeds_named


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        ([], ""),
        ([5, 5], "seed 5"),
        ([7, 5], "seeds 5 and 7"),
        (range(5), "seeds 0, 1, 2 and 2 more"),
    ],
)
def test_the_seeds_of_a_class_are_named(seeds: list[int], said: str) -> None:
    assert seeds_named(seeds) == said
