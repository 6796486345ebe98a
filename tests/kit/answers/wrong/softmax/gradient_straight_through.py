# Wrong: the gradient of the scores is passed on as it comes.
import torch


def attention_weights(scores):
    blocked = torch.isneginf(scores).all(-1, keepdim=True)
    w = torch.softmax(scores.masked_fill(blocked, 0), -1).masked_fill(blocked, 0).detach()
    finite = scores.masked_fill(torch.isneginf(scores), 0)
    return w + finite - finite.detach()
