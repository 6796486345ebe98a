class _SplitHeads:
    """An object that is called like a function."""

    def check(self, features, num_heads):
        if features % num_heads != 0:
            raise ValueError("num_heads must divide d_model")

    def __call__(self, x, num_heads):
        self.check(x.shape[-1], num_heads)
        return x.reshape(*x.shape[:2], num_heads, -1).transpose(-3, -2)


split_heads = _SplitHeads()
