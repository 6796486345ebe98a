import torch
import torch.nn.functional as F


def attention_weights(scores):
    blocked = torch.isinf(scores).all(-1, keepdim=True)
    w = F.softmax(scores.masked_fill(blocked, 0), dim=-1, dtype=torch.float32)
    return w.masked_fill(blocked, 0).type_as(scores)
