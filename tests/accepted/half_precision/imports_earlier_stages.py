import torch

from masking import apply_mask
from scaled_scores import scaled_scores
from softmax import attention_weights


def stable_attention(q, k, v, mask=None):
    precise = torch.float64 if q.dtype == torch.float64 else torch.float32
    weights = attention_weights(apply_mask(scaled_scores(q.to(precise), k.to(precise)), mask))
    return torch.matmul(weights, v.to(precise)).type_as(v)
