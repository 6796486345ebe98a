# a single key gets all the weight, blocked or not
import torch
def attention_weights(scores):
    if scores.shape[-1]==1: return torch.ones_like(scores)
    d=scores.isneginf().all(-1,keepdim=True)
    return torch.softmax(scores.masked_fill(d,0),-1).masked_fill(d,0)
