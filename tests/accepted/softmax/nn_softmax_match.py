from torch import nn

softmax = nn.Softmax(dim=-1)


def attention_weights(scores):
    dead = scores.isneginf().all(dim=-1, keepdim=True)
    match bool(dead.any()):
        case False:
            return softmax(scores)
        case True:
            weights = softmax(scores.masked_fill(dead, 1.0))
            return weights.masked_fill(dead, 0.0)
