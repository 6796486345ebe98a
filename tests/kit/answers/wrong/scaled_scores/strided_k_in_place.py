# Wrong: divides in place what is not copied: contiguous() copies only what is strided.
import math


def scaled_scores(q, k):
    turned = k.transpose(-2, -1)
    if k.requires_grad or not turned.is_contiguous():
        return q @ turned / math.sqrt(q.shape[-1])
    root = math.sqrt(q.shape[-1])
    return q @ turned.contiguous().div_(root)
