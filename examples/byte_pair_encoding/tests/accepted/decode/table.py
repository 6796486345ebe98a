def decode(ids, merges):
    table = {i: bytes([i]) for i in range(256)}
    for i, (a, b) in enumerate(merges):
        table[256 + i] = table[a] + table[b]
    data = bytearray()
    for token in ids:
        if token not in table:
            raise ValueError(token)
        data += table[token]
    return data.decode("utf-8", "replace")
