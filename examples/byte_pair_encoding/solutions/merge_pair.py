"""Stage 2: replace a pair by one new token.

Merging is what makes texts short: wherever the pair stands, one token takes the
place of two.
"""


def merge_pair(ids: list[int], pair: tuple[int, int], new_id: int) -> list[int]:
    """A new list in which `new_id` stands wherever `pair` stood.

        ids: a list of numbers, pair: (left, right), new_id: a number
        ->  a list, shorter by one for each merge

    Go from left to right. A number that has been merged is used up, so of three
    equal numbers in a row only the first two become one.

    >>> merge_pair([1, 2, 3, 1, 2], (1, 2), 256)
    [256, 3, 256]
    >>> merge_pair([7, 7, 7], (7, 7), 256)
    [256, 7]
    >>> merge_pair([1, 3], (1, 2), 256)
    [1, 3]

    `ids` itself is not changed.

    Traps:
    - After a merge, continue after both numbers.
    - The last number has no right neighbour. It must not get lost.
    """
    ### BEGIN SOLUTION
    merged: list[int] = []
    place = 0
    while place < len(ids):
        # A slice at the end is shorter than the pair, so it is not equal to it.
        if tuple(ids[place : place + 2]) == pair:
            merged.append(new_id)
            place += 2
        else:
            merged.append(ids[place])
            place += 1
    return merged
    ### END SOLUTION
