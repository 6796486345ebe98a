# Wrong: view fails for a non-contiguous q or k.
import torch

def scaled_scores(q, k):
    B, H, Tq, d_k = q.shape
    s = torch.bmm(q.view(B * H, Tq, d_k), k.view(B * H, -1, d_k).transpose(1, 2))
    return s.view(B, H, Tq, -1) / d_k ** 0.5
