import torch.nn.functional as F


def attention_weights(scores):
    dead = (scores == float("-inf")).all(-1, keepdim=True)
    safe = scores.where(~dead, 0.0)
    return F.softmax(safe, -1) * (~dead).to(scores.dtype)
