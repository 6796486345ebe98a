"""Stage 3: learn which pairs become tokens.

The whole of the training is a loop: count the pairs, merge the most frequent one
everywhere, and count again, because the merge has made new neighbours. A merged
pair can be part of the next pair, so tokens grow: t h, th e, the.
"""

from itertools import pairwise

from count_pairs import count_pairs
from merge_pair import merge_pair


def learn_merges(ids: list[int], num_merges: int) -> list[tuple[int, int]]:
    """The pairs that are merged, in the order in which they are learnt.

        ids: a list of bytes (0 to 255), num_merges: the most merges to make
        ->  a list of pairs

    The first pair becomes the token 256, the second 257, and so on. In each round
    the pair with the highest count is merged. If several have it, take the one that
    stands first in the sequence, as it is in that round. Stop early if no pair
    occurs twice: merging it would save nothing anywhere else.

    >>> learn_merges(list(b"abababcab"), 2)
    [(97, 98), (256, 256)]
    >>> learn_merges(list(b"abcd"), 5)
    []

    `ids` is not changed.

    Traps:
    - Count again after each merge: old counts know nothing of the new token.
    - Merge in the sequence that the last merge has left, not in the original one.
    """
    raise NotImplementedError("learn_merges is not written yet")
