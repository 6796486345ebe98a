import math
import torch


def flash_attention(q, k, v, mask=None, causal=False, dropout_p=0.0):
    B, H, Tq, d = q.shape
    Tk = k.shape[2]
    if mask is not None:
        mask = mask.bool().expand(B, H, Tq, Tk)
    step = 1024
    out = []
    for i in range(0, Tq, step):
        qi = q[:, :, i : i + step] * d**-0.5
        n = qi.shape[2]
        m = q.new_full((B, H, n, 1), -math.inf)
        l = torch.zeros_like(m)
        acc = torch.zeros_like(qi)
        for j in range(0, Tk, step):
            if causal and j > i + n - 1:
                break
            s = qi @ k[:, :, j : j + step].mT
            if mask is not None:
                s = s.masked_fill(~mask[:, :, i : i + step, j : j + step], -math.inf)
            if causal:
                a = torch.arange(i, i + n, device=q.device)[:, None]
                b = torch.arange(j, j + s.shape[3], device=q.device)
                s = s.masked_fill(b > a, -math.inf)
            new = torch.maximum(m, s.detach().amax(-1, keepdim=True))
            ref = new.masked_fill(new == -math.inf, 0)
            p = torch.exp(s - ref)
            c = torch.exp(m - ref)
            l = l * c + p.sum(-1, keepdim=True)
            if dropout_p:
                p = torch.nn.functional.dropout(p, dropout_p, True)
            acc = acc * c + p @ v[:, :, j : j + step]
            m = new
        out.append(acc / torch.where(l > 0, l, torch.ones_like(l)))
    return torch.cat(out, 2)
