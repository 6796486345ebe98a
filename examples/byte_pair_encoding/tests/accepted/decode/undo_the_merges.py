def decode(ids, merges):
    """Take the merges back, the last one first."""
    ids = list(ids)
    for token, pair in reversed(list(enumerate(merges, start=256))):
        ids = [part for each in ids for part in (pair if each == token else (each,))]
    return bytes(ids).decode("utf-8", errors="replace")  # bytes() refuses what is left over
