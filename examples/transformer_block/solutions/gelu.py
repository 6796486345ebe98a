"""Stage 3: a step that is smooth.

Without something that is not linear between them, two linear layers are one. ReLU
cuts off what is below 0. GELU cuts softly: it multiplies x by the share of a normal
distribution that lies below x. So -3 is as good as gone, 3 stays, and near 0 the step
is a slope, which is kind to gradients.
"""

import math

import torch


def gelu(x: torch.Tensor) -> torch.Tensor:
    """Each number times the share of a standard normal distribution below it.

        x of any shape  ->  the same shape

        gelu(x) = x * Phi(x)      Phi(x) = (1 + erf(x / sqrt(2))) / 2

    >>> [round(y, 4) for y in gelu(torch.tensor([-3.0, -1.0, 0.0, 1.0, 3.0])).tolist()]
    [-0.004, -0.1587, 0.0, 0.8413, 2.996]

    Use the exact function, not the one with tanh that approximates it. The result
    has the dtype and the device of x, gradients reach x, and x is not changed.
    Large numbers, positive or negative, give no NaN.

    Traps:
    - erf is about a distribution of standard deviation 1 / sqrt(2). Hence the root.
    - Write it out: a function that calls torch's own GELU gets no points.
    """
    ### BEGIN SOLUTION
    below = (1 + torch.erf(x / math.sqrt(2))) / 2
    return x * below
    ### END SOLUTION
