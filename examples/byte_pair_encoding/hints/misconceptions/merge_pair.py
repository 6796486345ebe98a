"""Known misconceptions of the stage merge_pair."""

from __future__ import annotations

from grader.misconceptions import misconception

Pair = tuple[int, int]


@misconception(
    "merge_keeps_the_right_one",
    replaces="merge_pair",
    says="After a merge you take one step, so the right number of the pair is left over. "
    "Continue after both.",
    hint=2,
)
def merge_keeps_the_right_one(ids: list[int], pair: Pair, new_id: int) -> list[int]:
    return [new_id if tuple(ids[i : i + 2]) == pair else ids[i] for i in range(len(ids))]


@misconception(
    "merge_loses_the_last",
    replaces="merge_pair",
    says="The last number gets lost when it is in no pair: you stop one place too early.",
    hint=3,
)
def merge_loses_the_last(ids: list[int], pair: Pair, new_id: int) -> list[int]:
    merged, place = [], 0
    while place < len(ids) - 1:
        found = (ids[place], ids[place + 1]) == pair
        merged.append(new_id if found else ids[place])
        place += 2 if found else 1
    return merged


@misconception(
    "merge_only_the_first",
    replaces="merge_pair",
    says="You merge the first place only. The pair becomes one token wherever it stands.",
    hint=2,
)
def merge_only_the_first(ids: list[int], pair: Pair, new_id: int) -> list[int]:
    for place in range(len(ids) - 1):
        if (ids[place], ids[place + 1]) == pair:
            return [*ids[:place], new_id, *ids[place + 2 :]]
    return list(ids)


@misconception(
    "merge_from_the_right",
    replaces="merge_pair",
    says="You merge from right to left. In a row of equal numbers the first two belong together.",
    hint=1,
)
def merge_from_the_right(ids: list[int], pair: Pair, new_id: int) -> list[int]:
    merged, place = [], len(ids) - 1
    while place >= 0:
        found = place > 0 and (ids[place - 1], ids[place]) == pair
        merged.insert(0, new_id if found else ids[place])
        place -= 2 if found else 1
    return merged


@misconception(
    "merge_either_order",
    replaces="merge_pair",
    says="You also merge the pair the other way round. (2, 1) is not (1, 2).",
    hint=1,
)
def merge_either_order(ids: list[int], pair: Pair, new_id: int) -> list[int]:
    merged, place = [], 0
    while place < len(ids):
        found = sorted(ids[place : place + 2]) == sorted(pair)
        merged.append(new_id if found else ids[place])
        place += 2 if found else 1
    return merged


@misconception(
    "merge_in_place",
    replaces="merge_pair",
    says="You change the list that was given. Build a new one: whoever called you still needs "
    "theirs.",
    hint=2,
)
def merge_in_place(ids: list[int], pair: Pair, new_id: int) -> list[int]:
    for place in range(len(ids)):
        if tuple(ids[place : place + 2]) == pair:
            ids[place : place + 2] = [new_id]
    return ids
