import torch


class AttentionWeights:
    def __init__(self, dim):
        self.log_softmax = torch.nn.LogSoftmax(dim=dim)

    def empty_rows(self, scores):
        return scores.amax(dim=-1, keepdim=True).isneginf()

    def __call__(self, scores):
        empty = self.empty_rows(scores)
        logs = self.log_softmax(torch.where(empty, 0.0, scores))
        return torch.where(empty, 0.0, torch.exp(logs))


attention_weights = AttentionWeights(dim=-1)
