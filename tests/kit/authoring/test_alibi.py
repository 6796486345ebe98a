"""A stage of two functions, written as a new author would: few lines by hand, the rest kept.

Everything that the author types goes through `typed`, which counts its lines: commands, what
replaces a TODO, and files of their own.
"""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.kit.support.files import edit, write_files
from tests.kit.support.tiny import Say

MOST = 150
FUNCTIONS = (
    'alibi_slopes(num_heads: int) -> "H"',
    'apply_alibi(scores: "B H Tq Tk", slopes: "H") -> "B H Tq Tk"',
)
ABOUT = """\
ALiBi tells attention where tokens stand without a vector of positions: each
head lowers its scores by a slope of its own times the distance of query and key."""
DETAILS = "TODO: the inputs and the result, with an example, the traps, and the errors it raises."
SLOPES = """\
For 2^n heads these are the powers of r = 2^(-8 / 2^n): r, r^2, and so on. For
    other numbers they are those of the next smaller power of two, and behind them
    every second slope of the next larger one, from its first on. In float32."""
BODY = "    # TODO: your own solution\n    raise NotImplementedError\n"
SLOPES_BODY = """\
    closest = 2 ** math.floor(math.log2(num_heads))
    steps = torch.arange(1, closest + 1)
    slopes = 2.0 ** (-8.0 * steps / closest)
    if closest == num_heads:
        return slopes
    more = torch.arange(1, 2 * (num_heads - closest), 2)
    return torch.cat([slopes, 2.0 ** (-4.0 * more / closest)])
"""
APPLY_BODY = """\
    queries = torch.arange(scores.shape[-2], device=scores.device)
    keys = torch.arange(scores.shape[-1], device=scores.device)
    distance = (queries[:, None] - keys).abs()
    return scores - slopes[:, None, None] * distance
"""
RIGHT_SLOPES = """\
    def powers(heads: int) -> list[float]:
        return [2 ** (-8 * step / heads) for step in range(1, heads + 1)]

    whole = 1
    while 2 * whole <= num_heads:
        whole *= 2
    more = powers(2 * whole)[::2]
    return torch.tensor(powers(whole) + more[: num_heads - whole])
"""
RIGHT_APPLY = """\
    result = scores.clone()
    for i in range(scores.shape[2]):
        for j in range(scores.shape[3]):
            result[:, :, i, j] = scores[:, :, i, j] - slopes * abs(i - j)
    return result
"""
FIT = "TODO: choose arguments of {} whose sizes differ, so that no mistake fits by chance."
RIGHT = "TODO: the right answer, in another style than the solution."
TITLE = "TODO: what makes an answer right, in at most 72 characters"
SAYS = "TODO: tell the learner what is wrong here, in one or two sentences."
# The suggestions that the author keeps, by their changed line, and the sentences for them.
KEPT = {
    "steps = torch.arange(closest)": "Your first slope is 1: the steps begin with 1.",
    "slopes = 2.0 * (-8.0 * steps / closest)": "You multiply where the steps are exponents of 2.",
    "return scores + slopes[:, None, None] * distance": "You favour distant keys: subtract.",
    "distance = (queries[:, None] - keys)": "Your distance has a sign; take its size.",
    "return scores": "You return the scores as they came.",
}
# What stands where the hints have a TODO, from the first on.
HINTS = (
    "A score falls by slope x distance. What does a head of slope 0 see, and one of slope 9?",
    "All tokens alike; only the nearest. Many slopes are many ranges of sight.",
    "With four heads r is 1/4. What are the four slopes? How far is query 2 from key 0?",
    "1/4, 1/16, 1/64, 1/256; two. Make a table of the distances, then scale it by head.",
    "How can two `arange`s become a table? Try `a[:, None]` beside `b`.",
    "Subtracting a row from a column broadcasts to a table; `abs` drops the sign.",
    "The slopes need shape (H, 1, 1), so that each meets a whole table: `slopes[:, ...]`.",
    "A bias on the scores can stand for positions. Each head has a range of its own.",
)
ACCEPTED = {
    "another": """\
import math
import torch

def alibi_slopes(num_heads):
    closest = 2 ** int(math.log2(num_heads))
    slopes = [2 ** (-8 * (head + 1) / closest) for head in range(closest)]
    if closest < num_heads:
        slopes += alibi_slopes(2 * closest)[0::2][: num_heads - closest].tolist()
    return torch.tensor(slopes)

def apply_alibi(scores, slopes):
    rows, columns = scores.shape[-2:]
    bias = torch.tensor([[abs(i - j) for j in range(columns)] for i in range(rows)])
    return scores + torch.einsum("h,ij->hij", -slopes, bias.to(scores))
""",
    "half_steps": """\
import torch

def alibi_slopes(num_heads):
    closest = 1 << (num_heads.bit_length() - 1)
    more = torch.arange(1, 2 * (num_heads - closest) + 1, 2)
    exponents = torch.cat([torch.arange(1, closest + 1) * 2, more])
    return torch.exp2(-4 * exponents / closest)

def apply_alibi(scores, slopes):
    i = torch.arange(scores.size(2)).view(-1, 1)
    j = torch.arange(scores.size(3))
    return scores.sub(slopes.view(-1, 1, 1) * torch.maximum(i - j, j - i))
""",
    "by_head": """\
import torch

def alibi_slopes(num_heads):
    closest = 1
    while closest * 2 <= num_heads:
        closest *= 2
    ratio = 0.5 ** (8 / closest)
    first = torch.tensor(ratio).repeat(closest).cumprod(0)
    rest = torch.tensor([ratio**0.5 * ratio**k for k in range(num_heads - closest)])
    return torch.cat([first, rest])

def apply_alibi(scores, slopes):
    near = torch.arange(scores.shape[-1]) - torch.arange(scores.shape[-2])[:, None]
    heads = [h - slope * near.abs().to(h) for h, slope in zip(scores.unbind(1), slopes)]
    return torch.stack(heads, 1)
""",
}
# Why a mutant that no check notices makes no difference, by what it changed.
REASONS = {
    ">= num_heads": "closest is never larger",
    "closest) + 1, 2)": "the last step is an odd number away from the end",
    "detach()": "whole numbers have no gradient",
    "abs_()": "the table is the function's own",
    "+2": "axis 2 is the last but one of four",
    "device=None": "there is no GPU here, and the CPU is the default",
    "], )": "there is no GPU here, and the CPU is the default",
    "slopes.device": "the slopes are where the scores are",
}


class Author:
    """Somebody at a keyboard: counts the lines that they type."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self.lines = 0

    def typed(self, text: str) -> str:
        """The text, whose lines were typed."""
        self.lines += sum(bool(line.strip()) for line in text.splitlines())
        return text

    def grade(self, *words: str, code: int = 0) -> str:
        """What a command prints."""
        self.typed("grade ...")
        found, shown, errors = self._say(*words)
        assert found == code, shown + errors
        return shown

    def replace(self, file: str, old: str, new: str) -> None:
        """Type something in the first place of something else."""
        edit(Path(file), old, self.typed(new))


@pytest.mark.slow
@pytest.mark.usefixtures("checks_apart")
def test_a_new_author_types_at_most_150_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, say: Say
) -> None:
    author = Author(say)
    monkeypatch.chdir(tmp_path)
    course = ("--course", "course", "--title", "Positions", "--library", "torch")
    author.grade("new", *course)
    monkeypatch.chdir(tmp_path / "course")
    signatures = [word for function in FUNCTIONS for word in ("--function", function)]
    author.grade("new", "alibi", "--title", "ALiBi", "--bonus", *signatures)
    for function in FUNCTIONS:
        author.typed(function)

    solution = "solutions/alibi.py"
    author.replace(solution, "TODO: what this stage is about, and why it matters.", ABOUT)
    author.replace(solution, "import torch\n", "import math\n\nimport torch\n")
    author.replace(solution, "TODO: what it does, in a line.", "Give each head its slope.")
    author.replace(solution, DETAILS, SLOPES)
    author.replace(solution, BODY, SLOPES_BODY)
    line = "Subtract from each score its head's slope times the distance."
    author.replace(solution, "TODO: what it does, in a line.", line)
    author.replace(solution, DETAILS, "The distance of query i and key j is |i - j|.")
    author.replace(solution, BODY, APPLY_BODY)

    checks = "tests/checks/test_alibi.py"
    todo = "    raise NotImplementedError\n"
    author.replace(checks, FIT.format("alibi_slopes"), "A number of heads.")
    author.replace(checks, RIGHT, "Slope by slope, as the paper has it.")
    author.replace(checks, todo, RIGHT_SLOPES)
    author.replace(checks, "H=1)  # TODO: its sizes for these inputs", "H=4)")
    author.replace(checks, TITLE, "The slopes are powers of two, falling")
    author.replace(checks, FIT.format("apply_alibi"), "Scores, and a slope for each head.")
    author.replace(checks, RIGHT, "Pair by pair.")
    author.replace(checks, todo, RIGHT_APPLY)
    author.replace(checks, TITLE, "Each score falls by slope times distance")
    author.replace(checks, "H=1, Tq=1, Tk=1, scale", "H=1, Tq=1, Tk=2, scale")  # a distance

    shown = author.grade("suggest", "alibi")
    listed = re.findall(r"^ +(\d+)  \w+\n(?: +- .*\n)+ +\+ (.*)$", shown, re.M)
    kept = {number: KEPT[after] for number, after in listed if after in KEPT}
    assert len(kept) == len(KEPT), shown
    author.grade("suggest", "alibi", "--write", *kept)
    mistakes = "hints/misconceptions/alibi.py"
    for says in kept.values():
        author.replace(mistakes, SAYS, says)

    for name, answer in ACCEPTED.items():
        Path(f"tests/accepted/alibi/{name}.py").write_text(author.typed(answer), "utf-8")
    for text in HINTS:
        todo, *_ = re.findall("TODO: .*", Path("hints/alibi.md").read_text("utf-8"))
        author.replace("hints/alibi.md", todo, text)
    author.grade("stubs", "alibi")
    proven = author.grade("verify", "alibi")
    assert "5 of 5 caught" in proven and "The course is proven." in proven, proven

    if sys.platform == "linux":
        report = json.loads(author.grade("verify", "--mutants", "--json", code=1))
        [stage] = report["stages"]
        live = [trial["record"] for trial in stage["trials"] if trial["record"]]
        tables = [table(author, record) for record in live]
        write_files(Path("tests/mutants"), {"alibi.toml": "\n".join(tables)})
        author.grade("verify", "--mutants")
    assert author.lines <= MOST, author.lines


def table(author: Author, record: dict[str, object]) -> str:
    """A record as --needed prints it, with the reason that the author types."""
    before, after = ("\n".join(record[side]) for side in ("before", "after"))
    reason = next(why for sign, why in REASONS.items() if sign in after)
    pairs = {"where": record["where"], "before": before, "after": after}
    lines = [f"{name} = {json.dumps(value)}" for name, value in pairs.items()]
    typed = author.typed(f"reason = {json.dumps(reason)}")
    return "\n".join(["[[equivalent]]", *lines, typed, ""])
