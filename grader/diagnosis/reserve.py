"""What a diagnosis leaves open, in the words that end its text."""

NOT_EVERY_CHECK = " (This does not explain every check that fails.)"
PERHAPS_NOT_EVERY_CHECK = " (This may not explain every check that fails.)"
NOT_EVERYTHING = " (In some edge cases your code does something else.)"


def unreserved(text: str) -> str:
    """What a diagnosis says without what it leaves open."""
    return text.removesuffix(PERHAPS_NOT_EVERY_CHECK).removesuffix(NOT_EVERYTHING)
