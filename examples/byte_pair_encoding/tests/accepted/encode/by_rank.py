from merge_pair import merge_pair


def encode(text, merges):
    ids = list(bytes(text, "utf-8"))
    ranks = {pair: i for i, pair in enumerate(merges)}
    while len(ids) >= 2:
        pair = min(zip(ids, ids[1:]), key=lambda p: ranks.get(p, float("inf")))
        if pair not in ranks:
            break
        ids = merge_pair(ids, pair, 256 + ranks[pair])
    return ids
