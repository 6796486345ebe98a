# nur lebende Zeilen ✓
import torch


def attention_weights(scores):
    alive = (scores > float("-inf")).any(-1)  # (B, H, Tq)
    out = torch.zeros_like(scores)
    out[alive] = torch.softmax(scores[alive], dim=-1)
    return out
