import torch


def scaled_scores(q, k):
    scores = torch.matmul(q, k.transpose(-1, -2))
    return scores.div_(pow(q.shape[-1], 0.5))


if __name__ == "__main__":
    print(scaled_scores(torch.randn(1, 1, 2, 4), torch.randn(1, 1, 3, 4)))
