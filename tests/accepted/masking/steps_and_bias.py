import torch


def causal_mask(seq_len: int) -> torch.Tensor:
    steps = torch.arange(seq_len)
    return torch.sub(steps.view(-1, 1), steps).ge(0)[None, None, ...]


def padding_mask(valid_lens: torch.Tensor, seq_len: int) -> torch.Tensor:
    B = valid_lens.numel()
    positions = torch.arange(1, seq_len + 1, device=valid_lens.device).repeat(B, 1)
    return (positions <= valid_lens.unsqueeze(-1)).view(B, 1, 1, seq_len)


def apply_mask(scores: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    if mask is None:
        return scores + 0
    if (mask := mask.to(torch.bool)).all():
        return scores
    bias = scores.new_zeros(()).expand(mask.shape).masked_fill(~mask, float("-inf"))
    return bias + scores


if __name__ == "__main__":
    print(causal_mask(3), padding_mask(torch.tensor([0, 2]), 3))
