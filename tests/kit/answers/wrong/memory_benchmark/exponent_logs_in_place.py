# The logarithms are written into the lists that were given
import math
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Watch(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.alive = {}
        self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for x in tree_leaves(out):
            if isinstance(x, torch.Tensor):
                self.see(x)
        self.peak = max(self.peak, sum(self.alive.values()))
        return out

    def see(self, x):
        storage = x.untyped_storage()
        if storage._cdata not in self.alive:
            self.alive[storage._cdata] = storage.nbytes()
            weakref.finalize(storage, self.alive.pop, storage._cdata, None)


def peak_bytes(attention, seq_len, d_model=64, num_heads=4, device="cpu"):
    d_k = d_model // num_heads
    q = torch.randn(1, num_heads, seq_len, d_k, device=device)
    k = torch.randn(1, num_heads, seq_len, d_k, device=device)
    v = torch.randn(1, num_heads, seq_len, d_k, device=device)
    with Watch() as watch:
        attention(q, k, v)
    return watch.peak


def growth_exponent(seq_lens, sizes):
    x, y = seq_lens, sizes
    for i in range(len(x)):
        x[i], y[i] = math.log(x[i]), math.log(y[i])
    mx, my = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mx) * (b - my) for a, b in zip(x, y)) / sum((a - mx) ** 2 for a in x)
