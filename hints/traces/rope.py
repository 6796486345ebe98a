"""The stage's example: the same word four times, told apart by where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.tracing import Heatmap, Step

PLACES = ["t=0", "t=1", "t=2", "t=3"]


def trace(submission: Any) -> Iterator[Step | Heatmap | str]:
    labels = {"T": PLACES, "Tq": PLACES, "Tk": PLACES}
    angles = submission.rope_angles(len(PLACES), 4, base=100.0)
    yield Step(
        "angles",
        angles,
        "T pair",
        says="Two pairs of features, in radians: pair 1 is ten times slower than pair 0.",
        labels=labels,
    )
    word = torch.tensor([3.0, 0.0, 0.0, 2.0]).expand(1, 1, len(PLACES), 4)
    yield Step(
        "q", word, "B H T d_k", says="One head, and the same word everywhere.", labels=labels
    )
    q = submission.apply_rope(word, angles)
    yield Step(
        "turned",
        q,
        "B H T d_k",
        says="`apply_rope`: features 0 and 1 go round quickly, 2 and 3 slowly.",
        labels=labels,
        compare=False,  # turning the other way round is right too
    )
    yield Step(
        "lengths of the pairs",
        q.unflatten(-1, (-1, 2)).norm(dim=-1),
        "B H T pair",
        says="No pair has grown or shrunk.",
        labels=labels,
    )
    scores = submission.scaled_scores(q, q)
    yield Step(
        "scores",
        scores,
        "B H Tq Tk",
        says="Along every diagonal the distance is the same, and so is the score.",
        labels=labels,
    )
    moved = submission.rope_angles(len(PLACES), 4, base=100.0, offset=40)
    far = submission.apply_rope(word, moved)
    yield Step(
        "scores 40 places on",
        submission.scaled_scores(far, far),
        "B H Tq Tk",
        says="Every angle is different, every score is the same.",
        labels=labels,
    )

    module = submission.RotaryMultiHeadAttention(4, 1, bias=False, base=100.0)
    eye = torch.eye(4)
    module.load_state_dict({f"{name}.weight": eye for name in ("w_q", "w_k", "w_v", "w_o")})
    module.eval()
    values = torch.arange(16.0).view(1, 4, 4)
    output, shares = module(word[:, 0], word[:, 0], values)
    yield Step(
        "weights",
        shares,
        "B H Tq Tk",
        says="Your module, with identity layers: each position looks most at itself.",
        labels=labels,
    )
    yield Step(
        "output",
        output,
        "B T D=4",
        says="The values 0 1 2 3, 4 5 6 7 and so on, mixed by these weights. Nothing turns them.",
        labels=labels,
    )
    yield Heatmap("Weights", shares[0], ["head 0"], PLACES, PLACES, "query", "key")
