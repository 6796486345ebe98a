"""Hidden checks of write_the_tests: the tests run on right modules and on wrong ones.

A wrong module is a right one with one mistake. A catch counts only if the tests pass on all right
modules. `test_run` tries all modules at once, in random order, so that the order tells nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from grader.checking import CheckFailed, Submission, Trial

FIXTURE, NAME = "make_attention", "Attention"

# --- right modules -------------------------------------------------------------------------------

BUILTIN = """
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("sizes")
        self.count, self.rate = num_heads, dropout
        for name in ("w_q", "w_k", "w_v", "w_o"):
            layer = nn.Linear(d_model, d_model, bias=bias)
            nn.init.xavier_normal_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)
            self.add_module(name, layer)

    def forward(self, query, key, value, mask=None):
        parts = (self.w_q, self.w_k, self.w_v)
        width = query.shape[-1]
        bias = None if self.w_q.bias is None else torch.cat([part.bias for part in parts])
        blocked = some = None
        if mask is not None:
            allowed = mask.bool().expand(len(query), self.count, query.shape[1], key.shape[1])
            some = allowed.any(3, keepdim=True)
            blocked = (~allowed & some).flatten(0, 1)
        found, shares = F.multi_head_attention_forward(
            query.transpose(0, 1),
            key.transpose(0, 1),
            value.transpose(0, 1),
            width,
            self.count,
            None,
            bias,
            None,
            None,
            False,
            self.rate,
            torch.eye(width, dtype=query.dtype, device=query.device),
            None,
            training=self.training,
            attn_mask=blocked,
            use_separate_proj_weight=True,
            q_proj_weight=parts[0].weight,
            k_proj_weight=parts[1].weight,
            v_proj_weight=parts[2].weight,
            average_attn_weights=False,
        )
        found = found.transpose(0, 1)
        if some is not None:
            apart = found.unflatten(2, (self.count, -1))
            found = (apart * some.transpose(1, 2)).flatten(2)
            shares = shares * some
        return self.w_o(found), shares
"""
PLAIN = """
import math
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model and num_heads do not fit together")
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)

    def split(self, x):
        x = x.view(x.shape[0], x.shape[1], self.num_heads, self.d_k)
        return x.transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q = self.split(self.w_q(query))
        k = self.split(self.w_k(key))
        v = self.split(self.w_v(value))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -math.inf)
        dead = (scores == -math.inf).all(-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(dead, 0.0), dim=-1)
        weights = weights.masked_fill(dead, 0.0)
        weights = self.dropout(weights)
        context = weights @ v
        context = context.transpose(1, 2).contiguous()
        output = self.w_o(context.view(query.shape[0], query.shape[1], -1))
        return output, weights
"""
EINSUM = """
from typing import NamedTuple
import torch
from torch import nn


class Found(NamedTuple):
    output: torch.Tensor
    weights: torch.Tensor


class Attention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        if d_model % num_heads:
            raise ValueError(num_heads)
        nn.Module.__init__(self)
        self._h = num_heads
        self._p = float(dropout)
        for name in "qkvo":
            setattr(self, f"w_{name}", nn.Linear(d_model, d_model, bias))
        with torch.no_grad():
            for number in self.parameters():
                number.zero_() if number.dim() == 1 else number.normal_(0, d_model**-0.5)

    def forward(self, query, key, value, mask=None):
        wide = query.shape[-1] // self._h
        q = self.w_q(query).unflatten(-1, (self._h, wide))
        k = self.w_k(key).unflatten(-1, (self._h, wide))
        v = self.w_v(value).unflatten(-1, (self._h, wide))
        found = torch.einsum("bqhd,bkhd->bhqk", q, k) * wide**-0.5
        weights = self.shares(found, mask)
        weights = nn.functional.dropout(weights, self._p, self.training)
        output = torch.einsum("bhqk,bkhd->bqhd", weights, v)
        return Found(self.w_o(output.flatten(2)), weights)

    def shares(self, found, mask):
        if mask is None:
            return found.softmax(-1)
        allowed = mask.bool().expand_as(found)
        low = torch.finfo(found.dtype).min
        top = torch.where(allowed, found, low).amax(-1, keepdim=True)
        high = torch.where(allowed, found - top, low).exp() * allowed
        return high / high.sum(-1, keepdim=True).clamp_min(1e-20)
"""
LOOP = """
import torch
import torch.nn.functional as F
from torch import nn


def one(q, k, v, open_, rate, training):
    scores = q.matmul(k.mT).div(q.size(-1) ** 0.5)
    if open_ is not None:
        bias = torch.zeros_like(scores).masked_fill(~open_, float("-inf"))
        some = open_.any(-1, keepdim=True)
        scores = scores + torch.where(some, bias, 0.0)
    w = F.softmax(scores, -1)
    if open_ is not None:
        w = w * some
    w = F.dropout(w, rate, training)
    return w.matmul(v), w


class Attention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        self.size, rest = divmod(d_model, num_heads)
        if rest:
            raise ValueError(f"{d_model} / {num_heads}")
        self.rate = dropout
        self.w_q, self.w_k, self.w_v, self.w_o = (self.made(d_model, bias) for _ in range(4))

    @staticmethod
    def made(size, bias):
        layer = nn.Linear(size, size, bias=bias)
        nn.init.xavier_uniform_(layer.weight)
        if bias:
            nn.init.constant_(layer.bias, 0.0)
        return layer

    def forward(self, query, key, value, mask=None):
        qs = self.w_q(query).split(self.size, -1)
        ks = self.w_k(key).split(self.size, -1)
        vs = self.w_v(value).split(self.size, -1)
        found = []
        for h, (q, k, v) in enumerate(zip(qs, ks, vs)):
            open_ = None
            if mask is not None:
                size = (len(query), len(qs), query.shape[1], key.shape[1])
                open_ = (mask != 0).expand(size)[:, h]
            found.append(one(q, k, v, open_, self.rate, self.training))
        outs, maps = zip(*found)
        return self.w_o(torch.cat(outs, -1)), torch.stack(maps, 1)
"""
FOLDED = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model // num_heads * num_heads != d_model:
            raise ValueError("no multiple")
        self.heads = num_heads
        layers = {name: nn.Linear(d_model, d_model, bias) for name in ("w_q", "w_k", "w_v", "w_o")}
        for name, layer in layers.items():
            nn.init.xavier_normal_(layer.weight, gain=1.0)
            if layer.bias is not None:
                layer.bias.data.fill_(0)
            setattr(self, name, layer)
        self.drop = nn.Dropout(dropout) if dropout else nn.Identity()

    def fold(self, x):
        B, T, D = x.shape
        x = x.reshape(B, T, self.heads, D // self.heads).permute(0, 2, 1, 3)
        return x.reshape(B * self.heads, T, -1)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.fold(self.w_q(query)), self.fold(self.w_k(key)), self.fold(self.w_v(value))
        scores = torch.bmm(q, k.permute(0, 2, 1)) * (q.shape[2] ** -0.5)
        B = query.size(0)
        whole = (B, self.heads, query.size(1), key.size(1))
        if mask is None:
            shares = torch.softmax(scores.double(), 2).to(scores.dtype)
        else:
            seen = mask.to(torch.bool).expand(whole).reshape(scores.shape)
            shares = torch.where(seen, scores, float("-inf")).softmax(2)
            shares = torch.where(seen.any(2, keepdim=True), shares, 0.0)
        shares = self.drop(shares)
        mixed = torch.bmm(shares, v).reshape(B, self.heads, query.size(1), -1)
        mixed = mixed.permute(0, 2, 1, 3).reshape(query.shape)
        return self.w_o(mixed), shares.reshape(whole)
"""
FUSED = """
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads > 0:
            raise ValueError("num_heads must divide d_model")
        self.d_model, self.n, self.p = d_model, num_heads, dropout
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.apply(self.begin)

    @torch.no_grad()
    def begin(self, module):
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                module.bias.zero_()

    def deal(self, x):
        return torch.stack(x.chunk(self.n, dim=2), dim=1)

    def forward(self, query, key, value, mask=None):
        q, k, v = map(self.deal, (self.w_q(query), self.w_k(key), self.w_v(value)))
        shares = (q / q.shape[3] ** 0.5) @ k.transpose(2, 3)
        some = bias = None
        if mask is not None:
            seen = (mask > 0).expand(shares.shape)
            some = seen.any(3, keepdim=True)
            bias = shares.new_zeros(shares.shape).masked_fill(~seen & some, -torch.inf)
            shares = shares + bias
        p = self.p if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=p)
        shares = shares.softmax(3)
        if some is not None:
            mixed, shares = mixed * some, shares * some
        return self.w_o(torch.cat(mixed.unbind(1), dim=2)), shares
"""
RIGHT = {
    "a right module": PLAIN,
    "a right module that returns a named tuple": EINSUM,
    "a right module that loops over the heads": LOOP,
    "a right module that folds the heads into the batch": FOLDED,
    "a right module that returns its weights as they were before dropout": FUSED,
}
FIRST = {"a right module, made from PyTorch's own": BUILTIN}


# --- wrong ones ----------------------------------------------------------------------------------


def spoilt(source: str, *changes: tuple[str, str]) -> str:
    """The source with these changes, each of a piece that is there once."""
    for old, new in changes:
        if source.count(old) != 1:
            raise ValueError(f"{source.count(old)} times in the source: {old}")
        source = source.replace(old, new)
    return source


SHAPES = {
    "one that returns a single map of weights for all heads": spoilt(
        BUILTIN, ("average_attn_weights=False", "average_attn_weights=True")
    ),
    "one that never looks at more keys than there are queries": spoilt(
        BUILTIN,
        ("        width = query.shape[-1]\n", "        most, width = query.shape[1:]\n"),
        ("            key.transpose(0, 1)", "            key[:, :most].transpose(0, 1)"),
        ("query.shape[1], key.shape[1])", "query.shape[1], min(key.shape[1], most))"),
        ("            value.transpose(0, 1)", "            value[:, :most].transpose(0, 1)"),
    ),
}
SCALE = {
    "one whose weights are much too sharp": spoilt(PLAIN, (" / math.sqrt(self.d_k)", "")),
    "one whose weights are too flat": spoilt(LOOP, ("q.size(-1) ** 0.5", "q.size(-1)")),
}
SHARES = {
    "one whose weights sum to 1 over the queries, not over the keys": spoilt(
        FUSED,
        ("shares.softmax(3)", "shares.softmax(2)"),
        ("mixed = F.", "unused = F."),
        (
            "        if some is not None:\n",
            "        mixed = shares @ v\n        if some is not None:\n",
        ),
    )
}
MASK = {
    "one that reads its mask the wrong way round": spoilt(EINSUM, ("mask.bool()", "~mask.bool()")),
    "one that ignores its mask": spoilt(
        FOLDED, ("if mask is None:", "if mask is None or mask.dim() > 0:")
    ),
    "one that masks after the softmax": spoilt(
        PLAIN,
        ("scores = scores.masked_fill(mask == 0, -math.inf)", "hidden = mask == 0"),
        (
            "        dead = ",
            "        else:\n            hidden = scores > math.inf\n        dead = ",
        ),
        ("weights.masked_fill(dead, 0.0)", "weights.masked_fill(hidden, 0.0)"),
    ),
    "one that uses the first sequence's mask for all": spoilt(
        LOOP, ("(mask != 0).expand(size)[:, h]", "(mask != 0).expand(size)[:1, h]")
    ),
}
BLOCKED = {
    "one that gives NaN where a query may see nothing": spoilt(
        PLAIN,
        ("scores.masked_fill(dead, 0.0)", "scores"),
        ("weights.masked_fill(dead, 0.0)", "weights"),
    ),
    "one in which a query that may see nothing sees everything": spoilt(
        LOOP, ("        w = w * some\n", "        w = w * 1\n")
    ),
}
APART = {
    "one whose heads mix the features of several tokens": spoilt(
        FOLDED,
        (
            "x.reshape(B, T, self.heads, D // self.heads).permute(0, 2, 1, 3)",
            "x.reshape(B, self.heads, T, D // self.heads)",
        ),
    ),
    "one that joins the heads in another order than it split them": spoilt(
        PLAIN, ("context.transpose(1, 2).contiguous()", "context.contiguous()")
    ),
    "one whose sequences look at each other": spoilt(
        EINSUM,
        (
            "v = self.w_v(value).unflatten(-1, (self._h, wide))",
            "v = self.w_v(value).unflatten(-1, (self._h, wide)).flip(0)",
        ),
    ),
}
UNEQUAL = {
    "one that scales the scores of each head differently": spoilt(
        LOOP, ("append(one(q, ", "append(one(q * (1 + 0.3 * h), ")
    ),
    "one that ignores its last head": spoilt(
        FUSED,
        (
            "torch.cat(mixed.unbind(1), dim=2)",
            "torch.cat([*mixed.unbind(1)[:-1], mixed[:, -1] * 0], dim=2)",
        ),
    ),
}
ROLES = {
    "one that uses the keys as values": spoilt(
        FOLDED, ("self.fold(self.w_v(value))", "self.fold(self.w_v(key))")
    ),
    "one that never uses one of its layers": spoilt(EINSUM, ("self.w_q(query)", "self.w_k(query)")),
    "one that leaves out the last layer": spoilt(
        LOOP, ("self.w_o(torch.cat(outs, -1))", "torch.cat(outs, -1)")
    ),
}
LAYERS = {
    "one that keeps a bias with bias=False": spoilt(
        PLAIN,
        (
            "self.w_k = nn.Linear(d_model, d_model, bias=bias)",
            "self.w_k = nn.Linear(*2 * [d_model])",
        ),
        ("            if bias:", "            if layer.bias is not None:"),
    ),
    "one that starts with weights that are too small": spoilt(
        LOOP, ("        nn.init.xavier_uniform_(layer.weight)\n", "")
    ),
}
SIZES = {
    "one that accepts sizes that do not divide": spoilt(
        FOLDED, ("d_model // num_heads * num_heads != d_model", "num_heads < 1")
    )
}
DROPOUT = {
    "one that still drops weights after eval()": spoilt(
        FUSED, ("self.p if self.training else 0.0", "self.p")
    ),
    "one that ignores dropout": spoilt(PLAIN, ("nn.Dropout(dropout)", "nn.Dropout(0.0)")),
}
AVERAGE = {
    "one whose dropout does not scale up the weights that it keeps": spoilt(
        EINSUM,
        (
            "nn.functional.dropout(weights, self._p, self.training)",
            "weights * (torch.rand_like(weights) >= self._p * self.training)",
        ),
    )
}
GRADIENTS = {
    "one that passes no gradient back through its weights": spoilt(
        PLAIN, ("context = weights @ v", "context = weights.detach() @ v")
    )
}
WRONG = {
    **SHAPES,
    **SCALE,
    **SHARES,
    **MASK,
    **BLOCKED,
    **APART,
    **UNEQUAL,
    **ROLES,
    **LAYERS,
    **SIZES,
    **DROPOUT,
    **AVERAGE,
    **GRADIENTS,
}


# --- what is said --------------------------------------------------------------------------------


def expect_passed(what: str, trial: Trial) -> None:
    """Expect that the tests pass on a right module."""
    if trial.ended:
        raise CheckFailed(f"Your tests did not finish on {what}\n  because   {trial.ended}")
    if not trial.count("passed", "failed", "errored"):
        raise CheckFailed("None of your tests ran to the end" + counted(trial))
    if trial.verdict == "failed":
        raise CheckFailed(f"Your tests fail on {what}\n  first     {trial.said}")
    if not trial.made:
        raise CheckFailed(
            "Your tests never call make_attention(...)\n"
            "  expected  tests that take the fixture make_attention, and no fixture\n"
            "            of that name in your file, which would hide the given one"
        )


def counted(trial: Trial) -> str:
    """How many tests there are, and what became of them."""
    words = ("passed", "failed", "errored", "skipped", "unwritten")
    found = [f"{trial.count(word)} {word}" for word in words if trial.count(word)]
    return f"\n  of them   {', '.join(found) or 'there are none'}"


def expect_caught(
    submission: Submission, wrong: Mapping[str, str], right: Mapping[str, str]
) -> None:
    """Expect that the tests fail on each of these, although they pass on the right ones."""
    trials = submission.tried(FIXTURE, {**right, **wrong}, NAME)
    for what in right:
        if trials[what].verdict != "passed":
            raise CheckFailed(
                "Your tests fail on a right module, so no catch counts"
                if trials[what].verdict == "failed"
                else "None of your tests ran to the end, so nothing is caught"
            )
    missed = [what for what in wrong if trials[what].verdict != "failed"]
    if not missed:
        return
    lines = [f"Your tests miss {len(missed)} of {len(wrong)} wrong modules of this kind"]
    for what in missed:
        ended = trials[what].ended
        lines.append(f"  missed    {what}" + (f": {ended}" if ended else ""))
    # If no test failed, this is about one that returns what it should assert.
    said = next((trials[what].said for what in missed if trials[what].verdict == "passed"), "")
    if said:
        lines.append(f"  look at   {said}")
    raise CheckFailed("\n".join(lines))


# --- the checks ----------------------------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.pays("failing", because="it asks that tests run, whatever they say")
def test_run(submission: Submission) -> None:
    """Some tests run, and they make modules with make_attention"""
    trials = submission.tried(FIXTURE, {**RIGHT, **FIRST, **WRONG}, NAME)
    for what in (*FIRST, *RIGHT):
        if trials[what].verdict != "failed":
            expect_passed(what, trials[what])


@pytest.mark.points(1)
def test_first(submission: Submission) -> None:
    """The tests pass on a right module"""
    trials = submission.tried(FIXTURE, FIRST, NAME)
    for what in FIRST:
        expect_passed(what, trials[what])


@pytest.mark.points(1)
@pytest.mark.parametrize("what", RIGHT, ids=range(len(RIGHT)))
def test_right(submission: Submission, what: str) -> None:
    """The tests pass on every right module, however it is written"""
    trials = submission.tried(FIXTURE, {**FIRST, what: RIGHT[what]}, NAME)
    if any(trials[first].verdict == "nothing" for first in FIRST):
        raise CheckFailed("None of your tests ran to the end, so none passed")
    expect_passed(what, trials[what])


@pytest.mark.points(1)
def test_shapes(submission: Submission) -> None:
    """The tests catch a module whose results have wrong shapes"""
    expect_caught(submission, SHAPES, FIRST)


@pytest.mark.points(1)
def test_scale(submission: Submission) -> None:
    """The tests catch a module with a wrong scale"""
    expect_caught(submission, SCALE, {**FIRST, **RIGHT})


@pytest.mark.points(1)
def test_shares(submission: Submission) -> None:
    """The tests catch a module whose weights do not sum to 1 over the keys"""
    expect_caught(submission, SHARES, {**FIRST, **RIGHT})


@pytest.mark.points(3)
def test_mask(submission: Submission) -> None:
    """The tests catch a module that ignores or misreads its mask"""
    expect_caught(submission, MASK, {**FIRST, **RIGHT})


@pytest.mark.points(1)
def test_blocked(submission: Submission) -> None:
    """The tests catch a module that fails where a query may see nothing"""
    expect_caught(submission, BLOCKED, {**FIRST, **RIGHT})


@pytest.mark.points(1)
def test_apart(submission: Submission) -> None:
    """The tests catch a module that mixes up heads, tokens or sequences"""
    expect_caught(submission, APART, {**FIRST, **RIGHT})


@pytest.mark.points(2)
def test_unequal(submission: Submission) -> None:
    """The tests catch a module that treats its heads unequally"""
    expect_caught(submission, UNEQUAL, {**FIRST, **RIGHT})


@pytest.mark.points(2)
def test_roles(submission: Submission) -> None:
    """The tests catch a module that uses a wrong layer or leaves one out"""
    expect_caught(submission, ROLES, {**FIRST, **RIGHT})


@pytest.mark.points(1)
def test_layers(submission: Submission) -> None:
    """The tests catch a module with wrong biases or starting weights"""
    expect_caught(submission, LAYERS, {**FIRST, **RIGHT})


@pytest.mark.points(1)
def test_sizes(submission: Submission) -> None:
    """The tests catch a module that accepts sizes that do not divide"""
    expect_caught(submission, SIZES, {**FIRST, **RIGHT})


@pytest.mark.points(1)
def test_dropout(submission: Submission) -> None:
    """The tests catch a module whose dropout is always on, or never"""
    expect_caught(submission, DROPOUT, {**FIRST, **RIGHT})


@pytest.mark.points(1)
def test_average(submission: Submission) -> None:
    """The tests catch a module whose dropout changes the result on average"""
    expect_caught(submission, AVERAGE, {**FIRST, **RIGHT})


@pytest.mark.points(1)
def test_gradients(submission: Submission) -> None:
    """The tests catch a module with a gradient missing"""
    expect_caught(submission, GRADIENTS, {**FIRST, **RIGHT})
