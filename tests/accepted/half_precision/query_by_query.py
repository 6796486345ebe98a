import torch


def one_query(q, k, v, allowed):  # (B, H, d), (B, H, Tk, d), (B, H, Tk, d), (B, H, Tk)
    scores = (k @ q.unsqueeze(-1)).squeeze(-1) * q.shape[-1] ** -0.5
    empty = ~allowed.any(-1, keepdim=True)
    scores = scores.masked_fill(~(allowed | empty), float("-inf"))
    weights = scores.softmax(-1) * ~empty
    return (weights.unsqueeze(-1) * v).sum(-2)


def stable_attention(q, k, v, mask=None):
    B, H, Tq, _ = q.shape
    if mask is None:
        mask = torch.ones(1, dtype=torch.bool, device=q.device)
    allowed = mask.bool().expand(B, H, Tq, k.shape[2])
    wide = torch.promote_types(q.dtype, torch.float32)
    a, b, c = q.to(wide), k.to(wide), v.to(wide)
    rows = [one_query(a[:, :, t], b, c, allowed[:, :, t]) for t in range(Tq)]
    return torch.stack(rows, dim=2).to(v.dtype)
