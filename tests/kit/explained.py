"""How the kit explains the wrong answers of its corpus: `python -m tests.kit.explained [STAGE...]`.

Prints for each stage how many are named, how many are told a symptom, and which of the rest get no
reason. With --write it notes in answers/<slug>.diff what each one is `told`: whoever runs it reads
the change, and takes care that nothing untrue is told.
"""

import argparse
import re
from collections.abc import Iterable, Iterator

from grader.diagnosis.comparison.diagnose import diagnose
from grader.diagnosis.comparison.replay import Replays
from grader.read.misconceptions import read_known
from grader.run.answers import WorkerAnswers
from grader.run.collecting import with_checks
from grader.run.facts import StageFacts
from grader.run.importing import Import
from grader.run.session import Checks
from grader.run.solutions import local_solutions, solution_files
from grader.run.under_check import StageUnderCheck
from grader.run.workers import Interpreter
from grader.types.course import Stage
from grader.types.report import Diagnosis, Kind
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE
from tests.kit.wrong_answers import HEADING, WrongAnswer, table_file, wrong_answers

SEED = 20


class Explaining:
    """Explains the answers to one stage; what one diagnosis has found out serves the next."""

    def __init__(self, stage: Stage) -> None:
        self._replays = Replays()
        self._known = read_known(stage)
        self.solution = local_solutions(COURSE, stage)

    def reasons(self, facts: StageFacts) -> dict[str, Diagnosis]:
        """The reason of each failing check that has one."""
        return diagnose(facts, self._known, self.solution, self._replays)


def explained(
    slug: str, answers: Iterable[WrongAnswer], interpreter: Interpreter, checks: Checks
) -> Iterator[tuple[WrongAnswer, list[Diagnosis]]]:
    """Each answer with the reasons that its checks are given, each reason once."""
    stage, solutions = COURSE.stage(slug), solution_files(COURSE)
    explaining = Explaining(stage)
    for answer in answers:
        files = {**solutions, stage.file_name: answer.source.encode()}
        worker = WorkerAnswers(interpreter, Import(COURSE, stage, Submission(answer.name, files)))
        facts = checks.run(stage, StageUnderCheck(stage, worker), SEED, "cpu")
        reasons = explaining.reasons(facts)
        yield answer, list({reason.id: reason for reason in reasons.values()}.values())


def told(reasons: Iterable[Diagnosis]) -> tuple[str, ...]:
    """What is noted of an answer's reasons."""
    return tuple(sorted({reason.id for reason in reasons}))


def write(slug: str, found: dict[str, tuple[str, ...]]) -> None:
    """Note in a stage's table what each answer is told."""

    def noted(heading: re.Match[str]) -> str:
        base, name, wrong, before = heading.groups()
        ids = ", ".join(found[name]) if name in found and before != "?" else before
        return f"{base}.{name}: {wrong}" + (f" -> {ids}\n" if ids else "\n")

    file = table_file(slug)
    text = HEADING.sub(noted, file.read_text(encoding="utf-8"))
    file.write_text(text, encoding="utf-8", newline="\n")


def main() -> None:
    """Print the figures of the stages that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stages", nargs="*", help="default: all")
    parser.add_argument("--write", action="store_true", help="note what each answer is told")
    parser.add_argument("--texts", action="store_true", help="print what each answer is told")
    args = parser.parse_args()
    slugs = args.stages or [stage.slug for stage in COURSE.stages if not stage.fixture]

    def body(checks: Checks) -> None:
        for slug in slugs:
            found = dict(explained(slug, wrong_answers(slug), interpreter, checks))
            kinds = [{reason.kind for reason in reasons} for reasons in found.values()]
            named = sum(Kind.NAME in kind for kind in kinds)
            symptom = sum(Kind.NAME not in kind and bool(kind) for kind in kinds)
            print(
                f"{slug}: {len(found)} wrong answers, {named} named, {symptom} told a symptom, "
                f"{len(found) - named - symptom} without a reason",
                flush=True,
            )
            for answer, reasons in found.items():
                if args.texts or not reasons:
                    print(f"  {answer.name}: {answer.wrong}")
                for reason in reasons if args.texts else ():
                    print(f"    {reason.id}: {reason.text}")
            if args.write:
                write(slug, {answer.name: told(reasons) for answer, reasons in found.items()})

    with Interpreter(COURSE.preload, COURSE.limits, gpu=False) as interpreter:
        with_checks(COURSE, [COURSE.stage(slug) for slug in slugs], body)


if __name__ == "__main__":
    main()
