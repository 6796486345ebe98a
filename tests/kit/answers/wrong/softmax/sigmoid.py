# Wrong: a sigmoid for each score.
import torch


def attention_weights(scores):
    return torch.sigmoid(scores)
