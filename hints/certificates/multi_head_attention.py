"""What the learner's own module shows when every core stage passes: parity, time, memory, weights.

Time and memory are those of a forward pass without gradients in evaluation mode, batch 1, on one
thread, in the learner's process. nn.MultiheadAttention without weights takes torch's fused kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from grader.tracing import Curves, Heatmap

LENGTHS = [128, 256, 512, 1024]
D, H = 64, 4
CASES = ((24, 4, 5, False), (32, 8, 12, True), (64, 4, 33, True))  # d_model, heads, tokens, causal
LAYERS = ("w_q", "w_k", "w_v", "w_o")
WORDS = ["the", "cat", "sat", "down", "and", "slept"]
KINDS = ("yours", "nn.MultiheadAttention", "fused, no weights")
TIMED = """
import time

import torch
from torch import nn


class Timed(nn.Module):
    def __init__(self, kind, d_model, num_heads, times):
        super().__init__()
        self.times = times
        self.options = {}
        if kind == "yours":
            from multi_head_attention import MultiHeadAttention

            self.of = MultiHeadAttention(d_model, num_heads)
        else:
            self.of = nn.MultiheadAttention(d_model, num_heads, batch_first=True)
            needed = not kind.startswith("fused")
            self.options = {"need_weights": needed, "average_attn_weights": False}
        self.of.eval()

    def forward(self, tokens):
        best = float("inf")
        for _ in range(self.times):
            start = time.perf_counter()
            self.of(tokens, tokens, tokens, **self.options)
            best = min(best, time.perf_counter() - start)
        return torch.tensor(best)
"""


def trace(submission: Any) -> Iterator[Curves | Heatmap | str]:
    output, gradient = parity(submission)
    yield (
        "With the same weights, your module and `nn.MultiheadAttention` differ by at most "
        f"**{output:.1e}** in the output and by **{gradient:.1e}** in any gradient. Such small "
        "differences come from rounding in float32."
    )
    seconds: dict[str, list[float]] = {}
    peaks: dict[str, list[float]] = {}
    with torch.no_grad():
        for kind in KINDS:
            timed = submission.given(TIMED, "Timed", kind, D, H, 5)
            once = submission.given(TIMED, "Timed", kind, D, H, 1)
            for T in LENGTHS:
                x = torch.randn(1, T, D)
                seconds.setdefault(kind, []).append(float(timed(x)) * 1000)
                with submission.measured() as usage:
                    once(x)
                peaks.setdefault(kind, []).append(max(1, usage.peak))
    yield f"A forward pass with {D} features and {H} heads, for more and more tokens:"
    yield Curves("Time", LENGTHS, seconds, "tokens", "ms")
    yield Curves("Memory beyond the input", LENGTHS, peaks, "tokens", "bytes")
    yield (
        "Without the weights torch uses a fused kernel that never stores the T x T matrix. The "
        "bonus stage `flash` is about that."
    )
    yield weights(submission)
    yield (
        "The bonus stages are about speed: `fused_qkv`, `flash`, `grouped_query`, `kv_cache`; "
        "language models: `causal_self_attention`, `rope`, `kv_cache`; numbers and memory: "
        "`half_precision`, `memory_benchmark`, `need_weights`; other codebases: `valid_lens`; "
        "and tests: `write_the_tests`."
    )


def parity(submission: Any) -> tuple[float, float]:
    """The largest differences of outputs and weights, and of gradients."""
    outputs, gradients = [0.0], [0.0]
    generator = torch.Generator().manual_seed(6)
    for d_model, heads, tokens, is_causal in CASES:
        mine = submission.MultiHeadAttention(d_model, heads).eval()
        parameters = dict(mine.named_parameters())
        x = torch.randn(2, tokens, d_model, generator=generator, requires_grad=True)
        allowed = torch.ones(tokens, tokens, dtype=torch.bool)
        allowed = allowed.tril() if is_causal else allowed
        results = mine(x, x, x, allowed), builtin(parameters, heads, x, ~allowed)
        leaves = [x, *parameters.values()]
        slope = torch.randn(2, tokens, d_model, generator=generator)
        found = [torch.autograd.grad((output * slope).sum(), leaves) for output, _ in results]
        outputs += [largest(one, other) for one, other in zip(*results, strict=True)]
        gradients += [largest(one, other) for one, other in zip(*found, strict=True)]
    return max(outputs), max(gradients)


def builtin(parameters: dict[str, Tensor], heads: int, x: Tensor, blocked: Tensor) -> Any:
    layer = nn.MultiheadAttention(x.shape[-1], heads, batch_first=True).eval()
    packed = {
        "in_proj_weight": torch.cat([parameters[f"{name}.weight"] for name in LAYERS[:3]]),
        "in_proj_bias": torch.cat([parameters[f"{name}.bias"] for name in LAYERS[:3]]),
        "out_proj.weight": parameters["w_o.weight"],
        "out_proj.bias": parameters["w_o.bias"],
    }
    options = {"average_attn_weights": False, "attn_mask": blocked}
    return torch.func.functional_call(layer, packed, (x, x, x), options)


def largest(one: Tensor, other: Tensor) -> float:
    return float((one - other).detach().abs().max())


def weights(submission: Any) -> Heatmap:
    """The weights of a module with drawn parameters: each word sees itself and those before it."""
    T = len(WORDS)
    generator = torch.Generator().manual_seed(7)
    module = submission.MultiHeadAttention(8, 2).eval()
    state = {
        name: torch.randn(value.shape, generator=generator) * 0.5
        for name, value in module.state_dict().items()
    }
    module.load_state_dict(state)
    x = torch.randn(1, T, 8, generator=generator)
    with torch.no_grad():
        _, shares = module(x, x, x, submission.causal_mask(T))
    heads = ["head 0", "head 1"]
    return Heatmap(
        "Your attention weights", shares[0], heads, WORDS, WORDS, "query word", "key word"
    )
