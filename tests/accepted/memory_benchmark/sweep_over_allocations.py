import itertools
import weakref

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Diary(TorchDispatchMode):
    """Writes down every coming and going; the peak is found afterwards."""

    def __init__(self):
        super().__init__()
        self.changes = []
        self.there = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs={}):
        result = func(*args, **kwargs)
        for x in result if isinstance(result, (list, tuple)) else (result,):
            if not torch.is_tensor(x):
                continue
            storage = x.untyped_storage()
            place = (storage._cdata, storage.nbytes())
            if place not in self.there:
                self.there.add(place)
                self.changes.append(place[1])
                weakref.finalize(storage, self.leave, place)
        return result

    def leave(self, place):
        self.there.remove(place)
        self.changes.append(-place[1])


def peak_bytes(attention, seq_len, d_model=64, num_heads=4, device="cpu"):
    q, k, v = torch.zeros(3, 1, num_heads, seq_len, d_model // num_heads, device=device)
    diary = Diary()
    with diary:
        attention(q, k, v)
    return max(itertools.accumulate(diary.changes), default=0)


def growth_exponent(seq_lens, sizes):
    table = np.cov(np.log([seq_lens, sizes]))
    return table[0, 1] / table[0, 0]
