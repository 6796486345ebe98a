import functools
import operator


def _split(x, num_heads, *, axis):
    if operator.mod(x.shape[axis], num_heads):
        raise ValueError("num_heads")
    return x.unflatten(axis, (num_heads, x.shape[axis] // num_heads)).transpose(1, 2)


split_heads = functools.partial(_split, axis=2)
