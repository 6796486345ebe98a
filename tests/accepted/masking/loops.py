import torch


def causal_mask(seq_len):
    rows = []
    for i in range(seq_len):
        rows.append([j <= i for j in range(seq_len)])
        print(rows[-1])
    return torch.tensor(rows).unsqueeze(0).unsqueeze(0)


def padding_mask(valid_lens, seq_len):
    rows = [[j < int(length) for j in range(seq_len)] for length in valid_lens]
    return torch.tensor(rows, device=valid_lens.device)[:, None, None]


def apply_mask(scores, mask):
    if mask is None:
        return scores
    out = scores.clone()
    out[(mask == 0).expand_as(scores)] = -float("inf")
    return out
