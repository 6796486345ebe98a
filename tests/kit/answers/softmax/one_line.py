import torch


def attention_weights(scores):
    return torch._safe_softmax(scores, -1)
