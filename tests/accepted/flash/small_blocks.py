import torch
from torch.nn.functional import dropout

SIZE = 24


class Rows:
    """What a few queries have seen so far: a weighted mean of the values and its logarithm."""

    def __init__(self, queries, allowed, first, is_causal):
        self.queries = queries / queries.size(-1) ** 0.5
        self.allowed = allowed
        self.numbers = torch.arange(first, first + queries.size(2), device=queries.device)
        self.is_causal = is_causal
        self.log_weight = None
        self.mean = None

    def see(self, keys, values, first, p):
        numbers = torch.arange(first, first + keys.size(2), device=keys.device)
        logits = torch.einsum("bhqd,bhkd->bhqk", self.queries, keys)
        blocked = torch.zeros(logits.shape[2:], dtype=torch.bool, device=logits.device)
        if self.is_causal:
            blocked = self.numbers.unsqueeze(1).lt(numbers)
        if self.allowed is not None:
            blocked = blocked | self.allowed.narrow(-1, first, keys.size(2)).logical_not()
        logits = torch.where(blocked, -1e30 if logits.dtype.itemsize > 2 else -6e4, logits)
        log_weight = logits.logsumexp(-1, keepdim=True)
        share = (logits - log_weight).exp().masked_fill(blocked, 0)
        mean = dropout(share, p) @ values
        if self.mean is None:
            self.log_weight, self.mean = log_weight, mean
        else:
            both = torch.logaddexp(self.log_weight, log_weight)
            old, new = (self.log_weight - both).exp(), (log_weight - both).exp()
            self.log_weight, self.mean = both, old * self.mean + new * mean


def flash_attention(q, k, v, mask=None, causal=False, dropout_p=0.0):
    shape = (*q.shape[:3], k.size(2))
    allowed = None if mask is None else (mask != 0).broadcast_to(shape)
    parts = []
    for start in range(0, q.size(2), SIZE):
        few = q.narrow(2, start, min(SIZE, q.size(2) - start))
        seen = None if allowed is None else allowed.narrow(2, start, few.size(2))
        rows = Rows(few, seen, start, causal)
        last = start + few.size(2) if causal else k.size(2)
        for first in range(0, last, SIZE):
            size = min(SIZE, k.size(2) - first)
            rows.see(k.narrow(2, first, size), v.narrow(2, first, size), first, dropout_p)
        parts.append(rows.mean)
    return torch.cat(parts, dim=2)
