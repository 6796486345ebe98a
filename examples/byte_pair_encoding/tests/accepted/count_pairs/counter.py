from collections import Counter


def count_pairs(ids):
    return Counter(zip(ids, ids[1:]))
