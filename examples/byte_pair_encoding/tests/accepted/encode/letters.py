def encode(text, merges):
    """Each token as one letter of a string, which str.replace can merge."""
    letters = text.encode().decode("latin-1")
    for new, (left, right) in enumerate(merges, start=256):
        letters = letters.replace(chr(left) + chr(right), chr(new))
    return [ord(letter) for letter in letters]
