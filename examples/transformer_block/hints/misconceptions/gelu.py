"""Known misconceptions of the stage gelu."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from grader.misconceptions import misconception


@misconception(
    "gelu_by_tanh",
    replaces="gelu",
    says="This is the approximation with tanh, which is off by up to 0.0005. Use the "
    "exact function, with erf.",
    hint=3,
)
def gelu_by_tanh(x: Tensor) -> Tensor:
    return x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


@misconception(
    "gelu_by_sigmoid",
    replaces="gelu",
    says="This is the approximation x * sigmoid(1.702 x). Use the exact function, with erf.",
    hint=3,
)
def gelu_by_sigmoid(x: Tensor) -> Tensor:
    return x * torch.sigmoid(1.702 * x)


@misconception(
    "gelu_is_relu",
    replaces="gelu",
    says="This is ReLU, which cuts off everything below 0. GELU weighs each number softly.",
    hint=1,
)
def gelu_is_relu(x: Tensor) -> Tensor:
    return torch.relu(x)


@misconception(
    "gelu_without_the_root",
    replaces="gelu",
    says="You take erf(x). A standard normal x has to be divided by the root of 2 first.",
    hint=2,
)
def gelu_without_the_root(x: Tensor) -> Tensor:
    return x * (1 + torch.erf(x)) / 2


@misconception(
    "gelu_without_the_half",
    replaces="gelu",
    says="Your share goes up to 2: 1 + erf has to be halved.",
    hint=2,
)
def gelu_without_the_half(x: Tensor) -> Tensor:
    return x * (1 + torch.erf(x / math.sqrt(2)))


@misconception(
    "gelu_without_x",
    replaces="gelu",
    says="You return the share itself. GELU is x times the share.",
    hint=1,
)
def gelu_without_x(x: Tensor) -> Tensor:
    return (1 + torch.erf(x / math.sqrt(2))) / 2
