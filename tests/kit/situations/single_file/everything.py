"""Everything in one file."""

import math

import torch
from torch import nn


def split_heads(x, num_heads):
    batch, tokens, d_model = x.shape
    if d_model % num_heads:
        raise ValueError(f"{d_model} features, {num_heads} heads")
    return x.view(batch, tokens, num_heads, -1).transpose(1, 2)


def scaled_scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def concat_heads(x):
    return x.transpose(1, 2).flatten(2)


if __name__ == "__main__":
    raise RuntimeError("this must not run")
