import torch
import torch.nn.functional as F


def stable_attention(q, k, v, mask=None):
    """As many large models have it: scores and softmax in float32, the rest in the inputs' dtype."""
    dtype = torch.promote_types(q.dtype, torch.float32)
    scores = torch.einsum("bhqd,bhkd->bhqk", q.to(dtype), k.to(dtype)) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = torch.where(mask.bool(), scores, float("-inf"))
    dead = scores.isneginf().all(-1, keepdim=True)
    weights = F.softmax(scores.where(~dead, 0.0), dim=-1).where(~dead, 0.0).type_as(v)
    return torch.einsum("bhqk,bhkd->bhqd", weights, v)
