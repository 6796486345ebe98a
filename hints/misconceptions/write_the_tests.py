"""Known misconceptions of the stage write_the_tests: tests that people really write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from grader.misconceptions import misconception

Make = Callable[..., Any]


def some(*sizes: int) -> torch.Tensor:
    """The same numbers each time."""
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(sum(sizes)))


# Tests that refuse what is right


@misconception(
    "tests_sums_in_training",
    replaces="make_attention",
    says="Your test expects the weights of each query to sum to 1 in training mode, with dropout. "
    "Dropout removes some of them and enlarges the others: call eval() first.",
    hint=2,
)
class SumsInTraining:
    def test_shape(self, make_attention: Make) -> None:
        x = some(2, 10, 64)
        assert make_attention(64, 4, dropout=0.1)(x, x, x)[0].shape == x.shape

    def test_sums(self, make_attention: Make) -> None:
        torch.manual_seed(0)
        x = some(2, 10, 64)
        _, weights = make_attention(64, 4, dropout=0.1)(x, x, x)
        assert torch.allclose(weights.sum(-1), torch.ones(2, 4, 10), atol=1e-5)


@misconception(
    "tests_mask_the_other_way_round",
    replaces="make_attention",
    says="Your test rejects every right module, so it expects what is not promised. If it passes a "
    "mask: True means allowed here, and blocked in nn.MultiheadAttention.",
    hint=2,
)
class MaskTheOtherWayRound:
    def test_causal(self, make_attention: Make) -> None:
        x = some(2, 5, 12)
        blocked = torch.ones(5, 5, dtype=torch.bool).triu(1)
        _, weights = make_attention(12, 3).eval()(x, x, x, blocked)
        assert (weights[..., blocked] == 0).all()


@misconception(
    "tests_attributes",
    replaces="make_attention",
    says="Your tests read attributes that no module needs to have, such as num_heads or d_k. Only "
    "w_q, w_k, w_v and w_o, the call and its results are promised.",
    hint=2,
)
class Attributes:
    def test_sizes(self, make_attention: Make) -> None:
        mha = make_attention(12, 3)
        assert mha.num_heads == 3
        assert mha.d_k == 4


@misconception(
    "tests_type_is_tuple",
    replaces="make_attention",
    says="Your test wants the type of the result to be exactly tuple. A named tuple is one too: "
    "unpack the result, or use isinstance.",
    hint=2,
)
class TypeIsTuple:
    def test_result(self, make_attention: Make) -> None:
        x = some(2, 5, 12)
        result = make_attention(12, 3).eval()(x, x, x)
        assert type(result) is tuple and len(result) == 2


@misconception(
    "tests_uniform_start",
    replaces="make_attention",
    says="Your bounds for the initial weights hold only for Xavier's uniform values. Xavier "
    "normal is right as well: compare the standard deviation with 1 / sqrt(D).",
    hint=4,
)
class UniformStart:
    def test_bound(self, make_attention: Make) -> None:
        mha = make_attention(96, 3)
        assert all(getattr(mha, name).weight.abs().max() <= 0.18 for name in ("w_q", "w_o"))


# Tests that see too little


@misconception(
    "tests_assert_nothing",
    replaces="make_attention",
    says="Your tests pass for every wrong module that raises no error: what they assert about its "
    "results, if anything, holds for all of them. Assert more, and compare numbers.",
    hint=1,
)
class AssertNothing:
    def test_call(self, make_attention: Make) -> None:
        x = some(2, 5, 12)
        make_attention(12, 3)(x, x, x)


@misconception(
    "tests_shapes_alone",
    replaces="make_attention",
    says="You check only shapes. A module that mixes up everything inside can still give the "
    "right shapes: compare numbers.",
    hint=3,
)
class ShapesAlone:
    def test_shapes(self, make_attention: Make) -> None:
        query, source = some(2, 4, 12), some(2, 7, 12)
        output, weights = make_attention(12, 3).eval()(query, source, source)
        assert output.shape == (2, 4, 12) and weights.shape == (2, 3, 4, 7)


@misconception(
    "tests_of_a_blog",
    replaces="make_attention",
    says="You check shapes, row sums and one weight under a causal mask, as most tests of this "
    "module do. Most mistakes show in none of these. Compare the numbers with a slow computation "
    "of your own.",
    hint=5,
)
class OfABlog:
    def test_shape(self, make_attention: Make) -> None:
        x = some(2, 10, 64)
        assert make_attention(64, 4).eval()(x, x, x)[0].shape == x.shape

    def test_sums(self, make_attention: Make) -> None:
        x = some(2, 10, 64)
        _, weights = make_attention(64, 4).eval()(x, x, x)
        assert torch.allclose(weights.sum(-1), torch.ones(2, 4, 10), atol=1e-5)

    def test_causal(self, make_attention: Make) -> None:
        x = some(2, 5, 64)
        _, weights = make_attention(64, 4).eval()(x, x, x, torch.tril(torch.ones(1, 1, 5, 5)))
        assert weights[0, :, 0, 1].max() < 1e-5


def by_hand(mha: Any, query: Any, key: Any, value: Any, mask: Any = None) -> Any:
    """The two results for three heads of four features."""
    q, k, v = (
        layer(x).view(*x.shape[:2], 3, 4).transpose(1, 2)
        for layer, x in ((mha.w_q, query), (mha.w_k, key), (mha.w_v, value))
    )
    shares = torch.exp(q @ k.mT / 2)
    if mask is not None:
        shares = shares * mask
    shares = shares / shares.sum(-1, keepdim=True).clamp(min=1e-30)
    return mha.w_o((shares @ v).transpose(1, 2).flatten(2)), shares


def module(make_attention: Make, **options: Any) -> Any:
    """A module with new random numbers throughout."""
    mha = make_attention(12, 3, **options).eval()
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in mha.parameters():
            parameter.normal_(0, 0.5)
    return mha


class _Much:
    """What a thorough person has; the others leave something out."""

    def test_numbers(self, make_attention: Make) -> None:
        mha = module(make_attention)
        query, key, value = some(3, 4, 12), some(3, 7, 12), some(3, 7, 12).flip(0)
        lengths = torch.tensor([7, 2, 0])
        mask = (torch.arange(7) < lengths[:, None])[:, None, None]
        for given in (None, mask):
            wanted = by_hand(mha, query, key, value, given)
            torch.testing.assert_close(tuple(mha(query, key, value, given)), wanted)

    def test_sizes(self, make_attention: Make) -> None:
        try:
            make_attention(10, 3)
        except ValueError:
            return
        raise AssertionError("sizes that do not fit")

    def test_start(self, make_attention: Make) -> None:
        mha = make_attention(128, 4, bias=False)
        assert sum(parameter.numel() for parameter in mha.parameters()) == 4 * 128 * 128
        assert abs(mha.w_q.weight.std().item() * 128**0.5 - 1) < 0.05

    def test_gradients(self, make_attention: Make) -> None:
        mha, x = module(make_attention), some(3, 5, 12)
        mha(x, x, x)[0].square().sum().backward()
        assert mha.w_q.weight.grad is not None and mha.w_q.weight.grad.abs().max() > 1e-6

    def test_dropout(self, make_attention: Make) -> None:
        mha, x = module(make_attention, dropout=0.5), some(3, 5, 12)
        plain = mha(x, x, x)[0]
        assert torch.equal(mha(x, x, x)[0], plain)
        mha.train()
        copies = x.repeat(100, 1, 1)
        outputs = mha(copies, copies, copies)[0].detach().unflatten(0, (100, 3))
        assert not torch.equal(outputs[0], plain)
        assert (outputs.mean(0) - plain).abs().mean() < 0.25 * plain.abs().mean()


@misconception(
    "tests_one_sequence",
    replaces="make_attention",
    says="Your batches hold a single sequence, so none of your tests can tell whether sequences "
    "stay apart, or whether each has its own mask.",
    hint=4,
)
class OneSequence(_Much):
    def test_numbers(self, make_attention: Make) -> None:
        mha = module(make_attention)
        query, key, value = some(1, 4, 12), some(1, 7, 12), some(1, 7, 12).flip(1)
        for length in (7, 2, 0):
            mask = torch.arange(7) < length
            wanted = by_hand(mha, query, key, value, mask[None, None, None])
            torch.testing.assert_close(
                tuple(mha(query, key, value, mask[None, None, None])), wanted
            )


@misconception(
    "tests_evaluation_alone",
    replaces="make_attention",
    says="All your tests run in evaluation mode, or without dropout. Test what the module "
    "does in training, too.",
    hint=6,
)
class EvaluationAlone(_Much):
    def test_dropout(self, make_attention: Make) -> None:
        mha, x = module(make_attention, dropout=0.5), some(3, 5, 12)
        assert torch.equal(mha(x, x, x)[0], mha(x, x, x)[0])


@misconception(
    "tests_heads_by_the_weights",
    replaces="make_attention",
    says="You compare the heads only by their weights, so you miss what happens to a head on its "
    "way to the output.",
    hint=7,
)
class HeadsByTheWeights(_Much):
    def test_numbers(self, make_attention: Make) -> None:
        mha = module(make_attention)
        query, key, value = some(3, 4, 12), some(3, 7, 12), some(3, 7, 12).flip(0)
        lengths = torch.tensor([7, 2, 0])
        mask = (torch.arange(7) < lengths[:, None])[:, None, None]
        for given in (None, mask):
            output, weights = mha(query, key, value, given)
            assert output.shape == query.shape and output.isfinite().all()
            torch.testing.assert_close(weights, by_hand(mha, query, key, value, given)[1])


@misconception(
    "tests_only_attend_to_itself",
    replaces="make_attention",
    says="Query, key and value are the same tensor in all your tests, so a module may mix them up "
    "and still pass.",
    hint=4,
)
class SelfAttentionAlone(_Much):
    def test_numbers(self, make_attention: Make) -> None:
        mha, x = module(make_attention), some(3, 5, 12)
        lengths = torch.tensor([5, 2, 0])
        mask = (torch.arange(5) < lengths[:, None])[:, None, None]
        for given in (None, mask):
            wanted = by_hand(mha, x, x, x, given)
            torch.testing.assert_close(tuple(mha(x, x, x, given)), wanted)


@misconception(
    "tests_nobody_runs",
    replaces="make_attention",
    says="pytest runs none of your tests to the end. A test that is skipped, or whose name does "
    "not begin with test, catches nothing.",
    hint=1,
)
class NobodyRuns:
    def check_shapes(self, make_attention: Make) -> None:
        x = some(2, 10, 64)
        assert make_attention(64, 4)(x, x, x)[0].shape == x.shape
