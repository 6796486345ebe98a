def merge_pair(ids, pair, new_id):
    out = list(ids)
    i = 0
    while i < len(out) - 1:
        if out[i] == pair[0] and out[i + 1] == pair[1]:
            out[i : i + 2] = [new_id]
        i += 1
    return out
