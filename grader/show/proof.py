"""What `grade verify` shows: each misconception's fate, then what is wrong with each stage."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from grader.types.proof import MisconceptionProof, StageProof


def proof_screen(proofs: Sequence[StageProof]) -> RenderableType:
    """The proofs as one table a stage and a summary."""
    tables: list[RenderableType] = [_table(proof) for proof in proofs]
    return Group(*tables, *(_summary(proof) for proof in proofs), Text(""))


def _table(proof: StageProof) -> RenderableType:
    table = Table(title=proof.slug, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("misconception")
    table.add_column("caught by", justify="right")
    table.add_column("named")
    for mistake in proof.misconceptions:
        caught = f"{len(mistake.caught_by)} of {proof.checks}"
        table.add_row(Text(mistake.id), caught, Text(_named(mistake)))
    return table


def _named(mistake: MisconceptionProof) -> str:
    if mistake.named == mistake.id:
        return "yes"
    return "no" if mistake.named is None else f"WRONG: {mistake.named}"


def _summary(proof: StageProof) -> RenderableType:
    known = proof.misconceptions
    caught = sum(bool(mistake.caught_by) for mistake in known)
    named = sum(mistake.named == mistake.id for mistake in known)
    line = Text(
        f"{'ok' if not proof.problems else 'NOT OK':<7}{proof.slug:<22}{proof.checks:>3} checks, "
        f"{caught} of {len(known)} mistakes caught, {named} named",
        style="" if not proof.problems else "bold red",
    )
    return Group(line, *(Text(f"         {problem}") for problem in proof.problems))
