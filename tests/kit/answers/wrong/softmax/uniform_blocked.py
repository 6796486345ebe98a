# Wrong: a blocked row becomes uniform.
import torch


def attention_weights(scores):
    return torch.softmax(scores.masked_fill(torch.isneginf(scores), torch.finfo(scores.dtype).min), -1)
