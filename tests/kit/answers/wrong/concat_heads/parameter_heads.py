# Wrong: the parameter is called heads.
def concat_heads(heads):
    return heads.transpose(1, 2).flatten(2)
