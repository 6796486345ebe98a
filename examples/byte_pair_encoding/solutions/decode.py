"""Stage 5: turn tokens back into text.

Every token stands for some bytes: a byte for itself, a merged token for those of
its two parts. Put together, they are the text again, whatever it was.
"""


def decode(ids: list[int], merges: list[tuple[int, int]]) -> str:
    """The text of a list of tokens; that of encode(text, merges) is `text` again.

        ids: a list of tokens, merges: pairs as learn_merges returns them  ->  text

    The token 256 + i stands for the bytes of merges[i], its left part first. Join the
    bytes of all tokens, then decode them as UTF-8. Where they are no UTF-8, because a
    model may write any tokens, put the character "�", as errors="replace" does.

    >>> decode([257, 99], [(97, 98), (256, 256)])
    'ababc'
    >>> decode([195, 169], [])
    'é'
    >>> decode([169], [])
    '�'

    Traps:
    - A token may end in the middle of a character. Decode once, at the end.
    - The parts of a token may be merged tokens themselves.

    Raises:
        ValueError: a token is negative, or not one of the 256 + len(merges) that exist.
    """
    ### BEGIN SOLUTION
    # The bytes of each token: first the 256 single ones, then each merge from its parts.
    known = [bytes([byte]) for byte in range(256)]
    for left, right in merges:
        known.append(known[left] + known[right])
    for token in ids:
        if not 0 <= token < len(known):
            raise ValueError(f"there is no token {token}")
    return b"".join(known[token] for token in ids).decode(errors="replace")
    ### END SOLUTION
