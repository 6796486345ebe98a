# Wrong: the legacy default axis: without dim a 4-D input is normalised over axis 1.
import torch


def attention_weights(scores):
    blocked = torch.isneginf(scores).all(-1, keepdim=True)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return torch.nn.functional.softmax(scores.masked_fill(blocked, 0)).masked_fill(blocked, 0)
