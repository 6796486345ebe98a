r'''The language of the hidden checks: all that a course author may expect of an answer.

Each `expect_...` is silent when the answer is right, else it raises CheckFailed with a message for
the learner. A check is a pytest test of these lines; each name has an example here.

Fixtures. `rand` draws inputs, `submission` holds the learner's functions and classes:

>>> def test_values(submission: Submission, rand: Rand) -> None:
...     """Every number is doubled"""
...     x = rand(B=2, T=3)
...     expect_close(submission.double(x), 2 * x, axes="B T")

Results. `axes` names the axes, so that the message can say where a value is wrong:

>>> x = torch.arange(6.0).reshape(2, 3)
>>> expect_shape(x, B=2, T=3)
>>> expect_shape(x, "the output", B=2, T=3)
>>> expect_dtype(x, torch.float32)
>>> expect_device(x, torch.device("cpu"))
>>> expect_close(x + x, 2 * x, axes="B T")
>>> expect_results((x, x + x), (x, 2 * x), {"the output": "B T", "the weights": "B T"})
>>> expect_within(x + 0.1, x, 0.2, axes="B T")
>>> expect_equal(x.numel(), 6, "the number of values")
>>> expect_equal({(1, 2): [3]}, {(1, 2): (3,)}, "the pairs")
>>> expect_equal(["b", "a"], ["a", "b"], "the tokens", same_types=True, ordered=False)
>>> expect_no_constant(x + 1, x=x)
>>> expect_all_different({"w_q": x, "w_k": x + 1}, "Two layers start with the same weights")
>>> assert are_close(x, x + 1e-6, rtol=0, atol=1e-5).all(), "for an `assert` of your own"
>>> assert is_between(0.51, 0.4, 0.6), "the share is wrong"

Errors, arguments and gradients:

>>> with expect_raises(ValueError, "7 features cannot be split into 2 heads"):
...     raise ValueError
>>> with expect_unchanged(x=x):
...     y = x + 1
>>> leaf = torch.ones(3, requires_grad=True)
>>> expect_gradients_close(leaf * 2, leaf + leaf, {"leaf": leaf}, axes={"leaf": "D"})
>>> skip_unless_supported(torch.float64, torch.device("cpu"))
>>> def on_a_gpu(device: torch.device) -> None:
...     y = x.to(gpu_or_skip(device))
>>> def own() -> None:
...     raise CheckFailed("What is wrong, in one line\n  expected  this\n  got       that")

Modules. A state holds parameters by name:

>>> shapes = linear_shapes({"w_q": (200, 100), "w_o": (200, 100)}, bias=True)
>>> state = draw_state(rand, shapes)
>>> module = with_state(made(), state)
>>> expect_parameters(module.state_dict(), shapes, where="state_dict()")
>>> sorted(named_parameters(module)) == sorted(trained_parameters(module, state))
True
>>> expect_start(state["w_q.weight"], 100**-0.5, "w_q.weight")
>>> def test_start(submission: Submission) -> None:
...     """Every layer starts as it should"""
...     one, other = submission.Attention(200), submission.Attention(200)
...     expect_xavier_start(one.state_dict(), other.state_dict(), shapes)

Truths at random, and dropout of the result itself, or of weights that are read off the output in
two places:

>>> mask = draw_truths(rand, 1, B=2, T=5)
>>> weights = rand(B=20, T=50).abs() + 0.1
>>> kept = torch.nn.functional.dropout(weights, 0.5)
>>> along = {"B": "sequences", "T": "tokens"}
>>> expect_dropped(kept, None, weights, 0.5, axes=along, what="number")
>>> expect_dropped(kept, kept, weights, 0.5, axes=along, returned=weights)
>>> expect_new_draws(kept, torch.nn.functional.dropout(weights, 0.5), " with a mask")

The types Module, Usage and Trial say what `submission` gives back.
'''

from grader.checking.comparing import (
    are_close,
    comparisons,
    expect_all_different,
    expect_close,
    expect_device,
    expect_dtype,
    expect_equal,
    expect_gradients_close,
    expect_no_constant,
    expect_raises,
    expect_results,
    expect_shape,
    expect_unchanged,
    expect_within,
    is_between,
    is_watched,
)
from grader.checking.fixtures import Module, Rand, Submission, Trial, Usage
from grader.checking.inputs import draw, draw_array, gpu_or_skip, skip_unless_supported
from grader.checking.modules import (
    draw_state,
    draw_truths,
    expect_dropped,
    expect_new_draws,
    expect_parameters,
    expect_start,
    expect_xavier_start,
    linear_shapes,
    named_parameters,
    trained_parameters,
    with_state,
)
from grader.checking.wording import CheckFailed

__all__ = [
    "CheckFailed",
    "Module",
    "Rand",
    "Submission",
    "Trial",
    "Usage",
    "are_close",
    "comparisons",
    "draw",
    "draw_array",
    "draw_state",
    "draw_truths",
    "expect_all_different",
    "expect_close",
    "expect_device",
    "expect_dropped",
    "expect_dtype",
    "expect_equal",
    "expect_gradients_close",
    "expect_new_draws",
    "expect_no_constant",
    "expect_parameters",
    "expect_raises",
    "expect_results",
    "expect_shape",
    "expect_start",
    "expect_unchanged",
    "expect_within",
    "expect_xavier_start",
    "gpu_or_skip",
    "is_between",
    "is_watched",
    "linear_shapes",
    "named_parameters",
    "skip_unless_supported",
    "trained_parameters",
    "with_state",
]
