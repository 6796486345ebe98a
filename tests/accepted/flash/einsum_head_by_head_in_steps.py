import torch
from torch import Tensor


def attend(q: Tensor, k: Tensor, v: Tensor, allowed, dropout_p: float) -> Tensor:
    """[B, n, d], [B, Tk, d], [B, Tk, d]"""
    s = torch.einsum("bqd,bkd->bqk", q, k) * q.shape[-1] ** -0.5
    if allowed is not None:
        some = allowed.any(-1, keepdim=True)
        s = torch.where(allowed | ~some, s, torch.finfo(s.dtype).min)
    e = torch.exp(s - s.amax(-1, keepdim=True).detach())
    w = e / e.sum(-1, keepdim=True)
    if allowed is not None:
        w = w * allowed
    if dropout_p > 0:
        w = w * (torch.rand_like(w) > dropout_p) / (1 - dropout_p)
    return torch.einsum("bqk,bkd->bqd", w, v)


def flash_attention(q, k, v, mask=None, causal=False, dropout_p=0.0):
    B, H, Tq, _ = q.shape
    Tk = k.shape[-2]
    full = None if mask is None else mask.to(torch.bool).broadcast_to(B, H, Tq, Tk)
    heads = []
    for h in range(H):
        parts = []
        for t in range(0, Tq, 100):
            end = min(t + 100, Tq)
            allowed = None if full is None else full[:, h, t:end]
            if causal:
                past = torch.ones(end - t, Tk, dtype=torch.bool, device=q.device).tril(t)
                allowed = past.expand(B, -1, -1) if allowed is None else allowed & past
            parts.append(attend(q[:, h, t:end], k[:, h], v[:, h], allowed, dropout_p))
        heads.append(torch.cat(parts, 1))
    return torch.stack(heads, 1)
