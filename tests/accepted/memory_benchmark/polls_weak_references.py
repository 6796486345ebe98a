import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only


def peak_bytes(attention, seq_len, d_model=64, num_heads=4, device="cpu"):
    size = (1, num_heads, seq_len, d_model // num_heads)
    q, k, v = torch.ones(size, device=device), torch.ones(size, device=device), torch.ones(size, device=device)
    inputs = {x.untyped_storage()._cdata for x in (q, k, v)}
    seen = {}
    best = [0]

    class Poll(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            for key in [key for key, (ref, _) in seen.items() if ref.expired()]:
                del seen[key]

            def note(tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in inputs:
                    seen.setdefault(storage._cdata, (StorageWeakRef(storage), storage.nbytes()))
                return tensor

            tree_map_only(torch.Tensor, note, result)
            best[0] = max(best[0], sum(size for _, size in seen.values()))
            return result

    with torch.no_grad(), Poll():
        out = attention(q, k, v)
    del out
    return best[0]


def growth_exponent(seq_lens, sizes):
    x = torch.tensor(seq_lens, dtype=torch.float64).log()
    y = torch.tensor(sizes, dtype=torch.float64).log()
    matrix = torch.stack([x, torch.ones_like(x)], dim=1)
    return torch.linalg.lstsq(matrix, y).solution[0].item()
