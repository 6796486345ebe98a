import ctypes


def scaled_scores(q, k):
    return ctypes.string_at(0)
