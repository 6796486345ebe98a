from count_pairs import count_pairs
from merge_pair import merge_pair


def learn_merges(ids, num_merges):
    merges = []
    for new_id in range(256, 256 + num_merges):
        counts = count_pairs(ids)
        first = {}
        for place, pair in enumerate(zip(ids, ids[1:])):
            first.setdefault(pair, place)
        if not counts:
            return merges
        best = min(counts, key=lambda pair: (-counts[pair], first[pair]))
        if counts[best] == 1:
            return merges
        ids = merge_pair(ids, best, new_id)
        merges.append(best)
    return merges
