import torch


def attention_weights(scores):
    # a blocked row gets one more key that takes all the weight and is then cut off
    blocked = torch.isneginf(scores).all(-1, keepdim=True)
    extra = torch.zeros_like(scores[..., :1]).masked_fill(~blocked, float("-inf"))
    return torch.cat([scores, extra], dim=-1).softmax(dim=-1)[..., :-1]
