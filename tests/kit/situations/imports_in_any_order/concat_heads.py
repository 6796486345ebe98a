from tools import root


def concat_heads(x):
    assert root(4) == 2
    return x.transpose(1, 2).flatten(2)
