"""What stands in the ledger of a class, to compare two runs."""

from __future__ import annotations

from pathlib import Path

from grader.classes.folder.ledger import open_ledger


def verdicts(out: Path) -> list[object]:
    """All that must be equal wherever a class was graded and however often; times are not."""
    with open_ledger(out, create=False) as ledger:
        return [
            (
                entry.record,
                entry.seed,
                entry.report
                and [
                    (check.id, check.outcome, check.score, check.message, check.diagnosis)
                    for stage in entry.report.stages
                    for check in stage.checks
                ],
            )
            for entry in ledger.latest()
        ]
