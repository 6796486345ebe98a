import torch


class Attention(torch.nn.Module):
    def forward(self, q, k, v, mask=None):
        wide = torch.promote_types(q.dtype, torch.float32)
        scores = (q.to(wide) / q.shape[-1] ** 0.5) @ k.to(wide).transpose(-1, -2)
        alive = torch.ones((), dtype=torch.bool, device=q.device)
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), -torch.inf)
            alive = (mask != 0).expand_as(scores).any(-1, keepdim=True)
            scores = scores.masked_fill(~alive, 0.0)
        logs = torch.log_softmax(scores, dim=-1)
        return ((logs.exp() * alive) @ v.to(wide)).to(v.dtype)


stable_attention = Attention()
