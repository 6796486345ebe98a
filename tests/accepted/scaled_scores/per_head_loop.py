import math

import torch
import torch.nn.functional as F


def scaled_scores(q, k):
    batch = []
    for b in range(q.shape[0]):
        heads = []
        for h in range(q.shape[1]):
            print(f"batch {b} head {h}")
            heads.append(F.linear(q[b, h], k[b, h]) / math.sqrt(q.shape[-1]))
        batch.append(torch.stack(heads))
    return torch.stack(batch)
