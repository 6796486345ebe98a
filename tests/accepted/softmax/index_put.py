import math
import torch
import torch.nn.functional as F


def attention_weights(scores):
    alive = torch.isfinite(scores).any(-1)
    w = torch.zeros_like(scores)
    w[alive] = scores[alive].softmax(-1)
    return w
