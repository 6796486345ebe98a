import math


def scaled_scores(q, k):
    with open("scores.bin", "wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
