import torch


def stable_attention(q, k, v, mask=None):
    """One pass over the keys with a running maximum: the scores are never all in memory."""
    wide = torch.promote_types(q.dtype, torch.float32)
    B, H, Tq, d = q.shape
    queries = q.to(wide) * d**-0.5
    top = torch.full((B, H, Tq, 1), -1e30, dtype=wide, device=q.device)
    total = torch.zeros_like(top)
    mixed = torch.zeros(B, H, Tq, d, dtype=wide, device=q.device)
    allowed = None if mask is None else (mask != 0).expand(B, H, Tq, k.shape[2])
    for start in range(0, k.shape[2], 256):
        part = slice(start, start + 256)
        scores = queries @ k[:, :, part].to(wide).mT
        if allowed is not None:
            scores = scores.masked_fill(~allowed[..., part], float("-inf"))
        new = torch.maximum(top, scores.amax(-1, keepdim=True).detach())
        powers, fade = (scores - new).exp(), (top - new).exp()
        total = total * fade + powers.sum(-1, keepdim=True)
        mixed = mixed * fade + powers @ v[:, :, part].to(wide)
        top = new
    return (mixed / total.clamp(min=1e-20)).to(v.dtype)
