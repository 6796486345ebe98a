class Concat:
    def __call__(self, x):
        return x.swapaxes(-3, -2).flatten(start_dim=-2)


concat_heads = Concat()
