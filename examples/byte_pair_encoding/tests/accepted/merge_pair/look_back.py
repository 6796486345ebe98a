def merge_pair(ids, pair, new_id):
    out = []
    for x in ids:
        if out and (out[-1], x) == tuple(pair):
            out[-1] = new_id
        else:
            out.append(x)
    return out
