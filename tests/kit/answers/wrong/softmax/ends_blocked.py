# a row is taken for blocked where its first and last keys are
import torch
def attention_weights(scores):
    d=(scores[...,-1:]== -torch.inf)&(scores[...,:1]== -torch.inf)
    return torch.softmax(scores.masked_fill(d,0),-1).masked_fill(d,0)
