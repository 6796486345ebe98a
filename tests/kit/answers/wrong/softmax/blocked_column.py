# Wrong: a fully blocked key makes the query of that number zero.
import torch


def attention_weights(scores):
    col = torch.isneginf(scores).all(-2)
    T = min(scores.shape[-2:])
    blocked = torch.isneginf(scores).all(-1, keepdim=True)
    w = torch.softmax(scores.masked_fill(blocked, 0), -1).masked_fill(blocked, 0)
    kill = torch.zeros_like(w, dtype=torch.bool)
    kill[..., :T, :] = col[..., :T, None]
    return w.masked_fill(kill, 0)
