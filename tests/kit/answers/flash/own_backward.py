import math
import torch
import torch.nn.functional as F
from torch import Tensor


class _Flash(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, mask, causal, BQ, BK):
        B, H, Tq, d = q.shape
        Tk = k.shape[2]
        scale = 1 / math.sqrt(d)
        O = torch.zeros_like(q)
        L = torch.zeros(B, H, Tq, dtype=q.dtype, device=q.device)
        for i in range(0, Tq, BQ):
            qi = q[:, :, i:i+BQ]
            n = qi.shape[2]
            o = torch.zeros_like(qi)
            l = torch.zeros(B, H, n, dtype=q.dtype, device=q.device)
            m = torch.full((B, H, n), -float("inf"), dtype=q.dtype, device=q.device)
            for j in range(0, Tk, BK):
                S = _scores(qi, k[:, :, j:j+BK], mask, causal, i, j, scale)
                mn = torch.maximum(m, S.amax(-1))
                ms = torch.where(mn == -float("inf"), torch.zeros_like(mn), mn)
                P = torch.exp(S - ms[..., None])
                c = torch.exp(m - ms)
                l = c * l + P.sum(-1)
                o = c[..., None] * o + P @ v[:, :, j:j+BK]
                m = mn
            safe = torch.where(l == 0, torch.ones_like(l), l)
            O[:, :, i:i+BQ] = o / safe[..., None]
            L[:, :, i:i+BQ] = torch.where(l == 0, torch.full_like(l, float("inf")), m + torch.log(safe))
        ctx.save_for_backward(q, k, v, O, L, mask if mask is not None else torch.empty(0))
        ctx.has_mask, ctx.causal, ctx.BQ, ctx.BK = mask is not None, causal, BQ, BK
        return O

    @staticmethod
    def backward(ctx, dO):
        q, k, v, O, L, mask = ctx.saved_tensors
        mask = mask if ctx.has_mask else None
        causal, BQ, BK = ctx.causal, ctx.BQ, ctx.BK
        d = q.shape[-1]
        scale = 1 / math.sqrt(d)
        D = (dO * O).sum(-1)
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        Tq, Tk = q.shape[2], k.shape[2]
        for j in range(0, Tk, BK):
            kj, vj = k[:, :, j:j+BK], v[:, :, j:j+BK]
            for i in range(0, Tq, BQ):
                qi = q[:, :, i:i+BQ]
                S = _scores(qi, kj, mask, causal, i, j, scale)
                P = torch.exp(S - L[:, :, i:i+BQ, None])
                do = dO[:, :, i:i+BQ]
                dv[:, :, j:j+BK] += P.transpose(-2, -1) @ do
                dP = do @ vj.transpose(-2, -1)
                dS = P * (dP - D[:, :, i:i+BQ, None])
                dq[:, :, i:i+BQ] += dS @ kj * scale
                dk[:, :, j:j+BK] += dS.transpose(-2, -1) @ qi * scale
        return dq, dk, dv, None, None, None, None


def _scores(qi, kj, mask, causal, i, j, scale):
    S = qi @ kj.transpose(-2, -1) * scale
    n, m = S.shape[-2:]
    if mask is not None:
        S = S.masked_fill(~mask[:, :, i:i+n, j:j+m], -float("inf"))
    if causal:
        rows = torch.arange(i, i + n, device=S.device)[:, None]
        cols = torch.arange(j, j + m, device=S.device)
        S = S.masked_fill(cols > rows, -float("inf"))
    return S


def flash_attention(q, k, v, mask=None, causal=False, dropout_p=0.0):
    B, H, Tq, _ = q.shape
    if mask is not None:
        mask = mask.bool().expand(B, H, Tq, k.shape[2])
    if dropout_p > 0:
        allowed = torch.ones(Tq, k.shape[2], dtype=torch.bool, device=q.device)
        if causal:
            allowed = allowed.tril()
        allowed = allowed.expand(B, H, -1, -1) if mask is None else mask & allowed
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=dropout_p)
    dtype = q.dtype
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    return _Flash.apply(q.to(wide), k.to(wide), v.to(wide), mask, causal, 64, 64).to(dtype)
