from functools import partial

import torch


def _softmax(scores, *, axis):
    if (empty := scores.eq(-torch.inf).all(axis, keepdim=True)).any():
        print("empty rows:", int(empty.sum()))
    shifted = scores - torch.where(empty, 0.0, scores.amax(axis, keepdim=True))
    powers = torch.exp(shifted)
    return torch.divide(powers, powers.sum(axis, keepdim=True) + empty)


attention_weights = partial(_softmax, axis=-1)


if __name__ == "__main__":
    print(attention_weights(torch.tensor([[[[0.0, 1.0], [-torch.inf, -torch.inf]]]])))
