import torch


def stable_attention(q, k, v, mask=None):
    """float32 up to the differences of the scores, which are small where they matter."""
    wide = torch.promote_types(q.dtype, torch.float32)
    scores = q.to(wide) @ k.to(wide).transpose(2, 3) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    empty = scores.isneginf().all(-1, keepdim=True)
    scores = scores.masked_fill(empty, 0.0)
    scores = (scores - scores.detach().amax(-1, keepdim=True)).to(q.dtype)
    return torch.softmax(scores, -1).masked_fill(empty, 0.0) @ v
