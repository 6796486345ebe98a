import math, torch, weakref
from torch.utils._python_dispatch import TorchDispatchMode


def peak_bytes(attention, seq_len, d_model=64, num_heads=4, device="cpu"):
    d_k = d_model // num_heads
    g = torch.Generator().manual_seed(0)
    q, k, v = [torch.rand(1, num_heads, seq_len, d_k, generator=g).to(device) for _ in "qkv"]
    alive = weakref.WeakKeyDictionary()
    best = 0

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs={}):
            nonlocal best
            out = func(*args, **kwargs)
            for t in out if isinstance(out, (tuple, list)) else (out,):
                if isinstance(t, torch.Tensor):
                    st = t.untyped_storage()
                    alive[st] = st.nbytes()
            best = max(best, sum(alive.values()))
            return out

    with Watch():
        result = attention(q, k, v)
    return best


def growth_exponent(seq_lens, sizes):
    xs = [math.log(t) for t in seq_lens]
    ys = [math.log(s) for s in sizes]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sum((x - mx) ** 2 for x in xs)
