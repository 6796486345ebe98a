import torch


def scaled_scores(q, k):
    d_k = torch.tensor(k.size(-1), dtype=torch.float32)
    return q @ k.transpose(2, 3) / torch.sqrt(d_k)
