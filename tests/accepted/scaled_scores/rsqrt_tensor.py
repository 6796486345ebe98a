import torch


def scaled_scores(q, k):
    scale = torch.rsqrt(torch.tensor(float(q.shape[-1]), dtype=q.dtype, device=q.device))
    return scale * torch.matmul(q, k.swapaxes(2, 3))
