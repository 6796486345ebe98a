from functools import reduce

from merge_pair import merge_pair


def encode(text, merges):
    steps = zip(range(256, 256 + len(merges)), merges)
    return reduce(lambda ids, step: merge_pair(ids, step[1], step[0]), steps, [*text.encode()])
