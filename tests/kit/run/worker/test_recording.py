"""A recorded call leaves a copy of every tensor that it makes."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from grader.run.worker.recording import recorder


def made(function: Callable[[Tensor], object], x: Tensor) -> list[Tensor]:
    """What a function makes of a tensor."""
    block, found = recorder(lambda file, number: "mine" if file == __file__ else None)
    with block:
        function(x)
    return [tensor for tensor, _, _ in found]


def contains(found: list[Tensor], tensor: Tensor) -> bool:
    return any(each.shape == tensor.shape and torch.equal(each, tensor) for each in found)


X = torch.arange(6.0).view(2, 3)


def test_layers_operators_and_parts_are_recorded() -> None:
    layer = nn.Linear(3, 3)
    found = made(lambda x: torch.softmax(layer(x) / 2, -1).chunk(3, -1)[1].T, X)
    right = torch.softmax(layer(X) / 2, -1)
    assert all(contains(found, t) for t in (layer(X), layer(X) / 2, right, right[:, 1:2].T))
    assert not any(tensor.requires_grad for tensor in found)


def test_a_tensor_is_recorded_as_it_was_before_it_changed() -> None:
    def changes(x: Tensor) -> None:
        double = 2 * x
        double[0] = 9.0
        double.neg_()

    found = made(changes, X)
    set_in_place = torch.cat([torch.full((1, 3), 9.0), 2 * X[1:]])
    assert all(contains(found, t) for t in (2 * X, set_in_place, -set_in_place))


def test_few_and_small_tensors_of_real_numbers_are_kept() -> None:
    assert made(lambda x: [x > 1, x.long(), x.new_zeros(70, 70)], X) == []
    assert len(made(lambda x: [x + n for n in range(300)], X)) == 300


def test_nothing_is_kept_if_there_are_too_many() -> None:
    assert made(lambda x: [x + n for n in range(301)], X) == []


def test_the_line_is_one_of_the_file_that_was_called_first() -> None:
    block, found = recorder(lambda file, number: "mine" if file == __file__ else None)
    with block:
        nn.Softmax(dim=-1)(X)
    [(_, file, line)] = found
    assert file == __file__
    assert line > 0
