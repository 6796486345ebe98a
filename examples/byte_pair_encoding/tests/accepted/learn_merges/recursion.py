from merge_pair import merge_pair


def learn_merges(ids, num_merges, new_id=256):
    pairs = [(a, b) for a, b in zip(ids, ids[1:])]
    if num_merges == 0 or not pairs:
        return []
    best = max(pairs, key=pairs.count)
    if pairs.count(best) < 2:
        return []
    return [best, *learn_merges(merge_pair(ids, best, new_id), num_merges - 1, new_id + 1)]
