from itertools import pairwise


def merge_pair(ids, pair, new_id):
    merged, skip = [], False
    for each in pairwise([*ids, None]):
        if skip:
            skip = False
        elif each == pair:
            merged.append(new_id)
            skip = True
        else:
            merged.append(each[0])
    return merged
