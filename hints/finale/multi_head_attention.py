"""The finale: a small transformer around the learner's own module learns two things.

`grade finale` runs this file beside the learner's code. All attention in it is theirs. The text is
the beginning of Jane Austen's "Pride and Prejudice" (1813), which is in the public domain, as
Project Gutenberg (no. 1342) and the R package janeaustenr have it.
"""

import math
import re
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from masking import causal_mask
from multi_head_attention import MultiHeadAttention

PROGRAMS = {
    "copying": {
        "class": "Copying",
        "title": "Copy a word",
        "about": (
            'Four different letters, drawn at random, then the same four again: after "king k" '
            'comes "i". Nobody can guess the first word, but the second one can be copied. For '
            "that, each letter of the second word should look at the letter after its own first "
            "occurrence: a diagonal line in the heatmap, three columns to the left."
        ),
        "steps": 300,
        "without": {
            "mask": (
                "The mask hides the answer. Without it each letter looks at the next one, which is "
                "the one to guess. So the model gets even the first word right, which nobody can "
                "guess: a loss below the least possible shows that it saw the answer. `novel` "
                "shows what such a model writes."
            ),
            "scaling": (
                "The scale keeps the softmax soft at the start, so that every letter gets some "
                "weight and some gradient. Without it a few letters take nearly all of a row from "
                "the first step on. This task is so easy that the model learns it all the same; in "
                "`novel` it falls behind."
            ),
            "heads": (
                "With several heads a letter can look at several others at once. One head copies "
                "too, but it has only one look per letter and nothing left for anything else: the "
                "loss of the second word stays several times as high."
            ),
        },
    },
    "novel": {
        "class": "Novel",
        "title": "Write like Jane Austen",
        "about": (
            "The next letter, from up to 64 letters before it, in the first chapters of Pride "
            "and Prejudice. A model that knows only how often each letter follows another cannot "
            "get below the dotted line."
        ),
        "steps": 1200,
        "without": {
            "mask": (
                "The mask hides the answer. Without it each letter looks at the next one, which is "
                "the one to guess: the loss falls to almost nothing. But when the model writes, "
                "there is no next letter to look at, and it has learnt nothing else: see its "
                "sample."
            ),
            "scaling": (
                "The scale keeps the softmax soft at the start, so that every letter gets some "
                "weight and some gradient. Without it a few letters take most of a row from the "
                "first step on, so the model learns more slowly and falls behind."
            ),
            "heads": (
                "Here one head does about as well as four: the layers have the same size either "
                "way, and a model this small mostly looks at the last few letters. `copying` shows "
                "what several heads are for."
            ),
        },
    },
}

TEXT = ""  # `grade finale` puts the text here that stands beside this file
D_MODEL, HEADS = 64, 4


class Block(nn.Module):
    """Attention, then perhaps a small network for each token; each adds to what was there."""

    def __init__(self, without: str, *, has_network: bool) -> None:
        super().__init__()
        heads = 1 if without == "heads" else HEADS
        self.attention = MultiHeadAttention(D_MODEL, heads, bias=False)
        self.is_masked = without != "mask"
        # The module divides by sqrt(d_k). Without biases, longer queries undo exactly that.
        self.length = math.sqrt(D_MODEL // heads) if without == "scaling" else 1.0
        self.normed = nn.LayerNorm(D_MODEL)
        self.network = None
        if has_network:
            self.network = nn.Sequential(
                nn.LayerNorm(D_MODEL),
                nn.Linear(D_MODEL, 4 * D_MODEL),
                nn.GELU(),
                nn.Linear(4 * D_MODEL, D_MODEL),
            )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """From x (B, T, D)  ->  output (B, T, D), weights (B, H, T, T)"""
        y = self.normed(x)
        mask = causal_mask(x.shape[1]).to(x.device) if self.is_masked else None
        output, weights = self.attention(y * self.length, y, y, mask)
        x = x + output
        return x if self.network is None else x + self.network(x), weights


class Transformer(nn.Module):
    """Letters in, scores of the next letter out."""

    def __init__(self, letters: int, places: int, layers: int, without: str) -> None:
        super().__init__()
        self.letter, self.place = nn.Embedding(letters, D_MODEL), nn.Embedding(places, D_MODEL)
        for table in (self.letter, self.place):
            nn.init.normal_(table.weight, std=0.5)
        has_network = layers > 1
        self.blocks = nn.ModuleList(Block(without, has_network=has_network) for _ in range(layers))
        self.last, self.scores = nn.LayerNorm(D_MODEL), nn.Linear(D_MODEL, letters)

    def forward(self, letters: Tensor) -> tuple[Tensor, Tensor]:
        """From letters (B, T)  ->  scores (B, T, letters), the last weights (B, H, T, T)"""
        x = self.letter(letters) + self.place.weight[: letters.shape[1]]
        weights = x
        for block in self.blocks:
            x, weights = block(x)
        return self.scores(self.last(x)), weights


class Program:
    """What both programs share; `grade finale` calls the methods without an underscore."""

    STEPS, RATE, LAYERS = 0, 3e-3, 1

    def __init__(self, seed: int, without: str, device: str) -> None:
        self._draw = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)
        self._device = device
        letters, places = self._prepare()
        self._model = Transformer(letters, places, self.LAYERS, without).to(device)
        self._optimizer = torch.optim.AdamW(self._model.parameters(), weight_decay=0.01)
        self._done = 0
        with torch.no_grad():
            weights = self._model(self._batch()[:, :-1])[1]
        self._sharpness = weights.amax(-1).mean().item()

    def steps(self, number: int) -> list[float]:
        """Train so many steps; returns the loss of each."""
        losses = []
        for _ in range(number):
            warm = min(1.0, (self._done + 1) / 50)
            falling = 0.525 + 0.475 * math.cos(math.pi * self._done / self.STEPS)
            for group in self._optimizer.param_groups:
                group["lr"] = self.RATE * warm * falling
            loss = self._losses(self._batch()).mean()
            self._optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
            self._optimizer.step()
            self._done += 1
            losses.append(loss.item())
        return losses

    def heatmap(self) -> dict[str, Any] | None:
        """No picture, unless a program has one."""
        return None

    def _losses(self, letters: Tensor) -> Tensor:
        """From letters (B, T + 1)  ->  the loss of each guess (B, T)"""
        scores, _ = self._model(letters[:, :-1])
        return F.cross_entropy(scores.transpose(1, 2), letters[:, 1:], reduction="none")

    def _prepare(self) -> tuple[int, int]:
        """Get the data ready; returns the number of letters and of places."""
        raise NotImplementedError

    def _batch(self) -> Tensor:
        """Letters (B, T + 1) to learn from."""
        raise NotImplementedError


class Copying(Program):
    """A word of four letters, twice."""

    STEPS = PROGRAMS["copying"]["steps"]
    WORDS, SHOWN, LENGTH = ("lamp", "bird", "step"), "king", 4

    def _prepare(self) -> tuple[int, int]:
        return 26, 2 * self.LENGTH - 1

    def _batch(self, size: int = 16) -> Tensor:
        order = torch.rand(size, 26, generator=self._draw).argsort(-1)  # no letter twice
        word = order[:, : self.LENGTH]
        return torch.cat([word, word], 1).to(self._device)

    def guides(self) -> dict[str, float]:
        """The least mean loss that is possible: the first word is any of the letters left."""
        unknown = [math.log(26 - place) for place in range(1, self.LENGTH)]
        return {"least possible": sum(unknown) / (2 * self.LENGTH - 1)}

    @torch.no_grad()
    def scores(self) -> dict[str, float]:
        """What a broken variant is compared by."""
        losses = self._losses(self._batch(500)).mean(0)
        return {
            "loss in the first word": losses[: self.LENGTH - 1].mean().item(),
            "loss in the second word": losses[self.LENGTH - 1 :].mean().item(),
            "largest weight of a row at the start": self._sharpness,
        }

    @torch.no_grad()
    def sample(self) -> str:
        """A few words and what the model writes after them."""
        return "\n".join(f"{word} -> {self._continued(word)}" for word in self.WORDS)

    @torch.no_grad()
    def heatmap(self) -> dict[str, Any]:
        """The weights of each head on one word twice; `fit`: how much lies where it should."""
        letters = [f"{letter}{word}" for word in (1, 2) for letter in self.SHOWN][:-1]
        weights = self._model(self._numbers(self.SHOWN * 2)[:, :-1])[1][0].cpu()  # (H, T, T)
        return {
            "title": "Where each letter looks",
            "tensor": weights,
            "panels": [f"head {number}" for number in range(len(weights))],
            "rows": letters,
            "columns": letters,
            "row_axis": "letter that looks",
            "column_axis": "letter that is looked at",
            "fit": weights.diagonal(1 - self.LENGTH, -2, -1).mean(-1).tolist(),
        }

    def _continued(self, word: str) -> str:
        letters = self._numbers(word)
        for _ in range(self.LENGTH):
            guess = self._model(letters)[0][:, -1:].argmax(-1)
            letters = torch.cat([letters, guess], 1)
        return "".join(chr(ord("a") + letter) for letter in letters[0, self.LENGTH :].tolist())

    def _numbers(self, word: str) -> Tensor:
        return torch.tensor([[ord(letter) - ord("a") for letter in word]], device=self._device)


class Novel(Program):
    """The next letter of a novel."""

    STEPS = PROGRAMS["novel"]["steps"]
    LAYERS, PLACES, SAMPLE, WARMTH = 2, 64, 240, 0.8
    # A sample sees fewer places than there are: in the last one, which has no next letter, even a
    # model without a mask has to learn.
    SEEN = PLACES // 2

    def _prepare(self) -> tuple[int, int]:
        text = torch.tensor(list(TEXT.encode()))
        known, numbers = text.unique(return_inverse=True)
        self._known = known.tolist()
        cut = int(0.9 * len(numbers))
        self._text, self._held_out = numbers[:cut], numbers[cut:]
        return len(known), self.PLACES

    def _batch(self, size: int = 16) -> Tensor:
        starts = torch.randint(len(self._text) - self.PLACES, (size,), generator=self._draw)
        return self._windows(self._text, starts)

    def _windows(self, text: Tensor, starts: Tensor) -> Tensor:
        places = torch.arange(self.PLACES + 1)
        return text[starts[:, None] + places].to(self._device)  # (B, T + 1)

    def guides(self) -> dict[str, float]:
        """The loss, in text that it has not seen, of whoever counts pairs of letters."""
        size = len(self._known)
        pairs = torch.bincount(self._text[:-1] * size + self._text[1:], minlength=size * size)
        counts = pairs.view(size, size) + 0.1
        shares = (counts / counts.sum(1, keepdim=True)).log()
        held_out = self._held_out
        return {"letter pairs": -shares[held_out[:-1], held_out[1:]].mean().item()}

    @torch.no_grad()
    def scores(self) -> dict[str, float]:
        """What a broken variant is compared by."""
        starts = torch.linspace(0, len(self._held_out) - self.PLACES - 1, 256).long()
        losses = [
            self._losses(self._windows(self._held_out, some)).mean().item()
            for some in starts.split(64)
        ]
        return {
            "loss in text it has not seen": sum(losses) / len(losses),
            "largest weight of a row at the start": self._sharpness,
        }

    @torch.no_grad()
    def sample(self) -> str:
        """Text that the model writes, letter by letter, after the novel's own beginning."""
        draw = torch.Generator().manual_seed(1)
        letters = self._text[: self.SEEN].tolist()
        for _ in range(self.SAMPLE):
            seen = torch.tensor([letters[-self.SEEN :]], device=self._device)
            scores = self._model(seen)[0][0, -1].cpu() / self.WARMTH
            letters.append(int(torch.multinomial(scores.softmax(-1), 1, generator=draw)))
        written = letters[self.SEEN :]
        text = bytes(self._known[letter] for letter in written).decode("ascii", "replace")
        return re.sub(r"\n{4,}", lambda gap: f"\n({len(gap[0]) - 1} empty lines)\n", text)
