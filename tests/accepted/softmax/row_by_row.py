import torch


def _row(row):
    if torch.all(row == float("-inf")):
        return torch.zeros_like(row)
    e = torch.exp(row - row.max())
    return e / e.sum()


def attention_weights(scores):
    rows = scores.reshape(-1, scores.shape[-1])
    return torch.stack([_row(row) for row in rows]).view(scores.shape)
