def decode(ids, merges):
    def spelled(token):
        if token < 256:
            return bytes([token])
        left, right = merges[token - 256]
        return spelled(left) + spelled(right)

    if any(token < 0 or token >= 256 + len(merges) for token in ids):
        raise ValueError("unknown token")
    return b"".join(map(spelled, ids)).decode(errors="replace")
