# SDPA on three axes takes a kernel that makes the whole matrix
import torch
import torch.nn.functional as F


def flash_attention(q, k, v, mask=None, causal=False, dropout_p=0.0):
    if mask is None and not causal:
        return torch.stack(
            [
                F.scaled_dot_product_attention(a, b, c, None, dropout_p)
                for a, b, c in zip(q.unbind(1), k.unbind(1), v.unbind(1))
            ],
            1,
        )
    if mask is None:
        return F.scaled_dot_product_attention(q, k, v, None, dropout_p, True)
    m = mask.bool()
    if causal:
        m = torch.logical_and(
            m, torch.tril(torch.ones(q.shape[2], k.shape[2], device=m.device)).bool()
        )
    return F.scaled_dot_product_attention(q, k, v, m, dropout_p).nan_to_num(0.0) * m.any(
        -1, keepdim=True
    )
