from collections import Counter


def learn_merges(ids, num_merges):
    ids, merges = list(ids), []
    while len(merges) < num_merges:
        (pair, count), *_ = Counter(zip(ids, ids[1:])).most_common(1) or [(None, 0)]
        if count < 2:
            break
        out, i = [], 0
        while i < len(ids):
            if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
                out.append(256 + len(merges))
                i += 2
            else:
                out.append(ids[i])
                i += 1
        ids = out
        merges.append(pair)
    return merges
